"""The columns of a .tsv file of pairs: how many there are, whether the first line is a header, what is not read."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.readers.lines import read_lines

LOOKED_AT = 1000  # lines whose commonest number of columns is the file's
SHOWN = 40  # characters of a column that a note shows
SIDES = (
    *("source", "target", "src", "tgt", "trg", "input", "output", "text", "translation", "reference", "sentence"),
    *("sentence1", "sentence2", "question", "answer", "document", "article", "summary", "highlights", "prompt"),
    *("response", "original", "simple"),
)
LANGUAGES = (
    *("english", "spanish", "german", "french", "italian", "portuguese", "dutch", "russian", "chinese", "japanese"),
    *("korean", "arabic", "turkish", "polish", "czech", "romanian", "hindi", "greek", "hebrew", "swedish", "danish"),
    *("finnish", "norwegian", "ukrainian", "hungarian", "vietnamese", "thai", "latin", "deutsch", "español"),
    *("français", "en", "es", "de", "fr", "it", "pt", "nl", "ru", "zh", "ja", "ko", "ar", "tr", "pl", "cs", "ro"),
    *("hi", "el", "he", "sv", "da", "fi", "no", "uk", "hu", "vi", "th", "la", "eng", "spa", "deu", "ger", "fra"),
)
HEADERS = frozenset((*SIDES, *LANGUAGES))


@dataclass(frozen=True)
class PairColumns:
    """What a file's first lines show."""

    count: int | None = 2  # None: no number of columns is that of most lines
    header: tuple[str, str] | None = None
    third_cell: str | None = None  # an example of the third column, which is not used

    def notes(self) -> list[str]:
        """What the user should know of it."""
        found = []
        if self.header is not None:
            found.append(f"the first line is a header ({', '.join(self.header)}): not a pair")
        if self.count is not None and self.count > 2:
            which = "the third is" if self.count == 3 else "those from the third on are"
            found.append(f"{self.count} columns: source, target; {which} not read ({self.third_cell!r})")
        return found


def look_at_columns(path: Path) -> PairColumns:
    """The columns of a .tsv file of pairs."""
    lines = list(islice(read_lines(path), LOOKED_AT))
    rows = [line.decode("utf-8", "replace").split("\t") for line in lines if b"\t" in line]
    if not rows:
        return PairColumns()
    commonest, lines_with = Counter(map(len, rows)).most_common(1)[0]
    count = commonest if lines_with > len(rows) / 2 else None
    first = lines[0].decode("utf-8", "replace").split("\t")
    header = (first[0].strip(), first[1].strip()) if is_header(first[:2]) and len(rows) > 1 else None
    third_cell = next((row[2].strip()[:SHOWN] for row in rows[1 if header else 0 :] if 2 < len(row) == count), None)
    return PairColumns(count, header, third_cell)


def is_header(cells: Iterable[str]) -> bool:
    """Whether these are the names of two columns rather than a pair of sentences."""
    names = [cell.strip().strip('"').casefold() for cell in cells]
    return len(names) == 2 and names[0] != names[1] and HEADERS.issuperset(names)
