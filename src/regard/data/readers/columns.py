"""Find the columns of a table with the texts and the label: as the user names them, or by common names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from regard.config import Config
from regard.data.readers.lines import format_suffix
from regard.data.readers.tables import column_names
from regard.errors import DataError

# Common names; case is ignored.
TEXT_COLUMNS = (
    *("text", "text1", "text_a", "sentence", "sentence1", "sentence_a", "review", "review_text", "comment"),
    *("comment_text", "question", "question1", "premise", "content", "body", "tweet", "title", "message", "headline"),
    *("document", "query", "#1 string"),
)
SECOND_COLUMNS = (
    *("second", "text2", "text_b", "text_pair", "sentence2", "sentence_b", "question2", "hypothesis", "answer"),
    *("#2 string",),
)
LABEL_COLUMNS = (
    *("label", "labels", "class", "category", "sentiment", "target", "score", "rating", "stars", "gold_label"),
    *("is_duplicate", "quality", "polarity", "intent", "emotion"),
)
QUESTION_AND_ANSWER = ("question", "sentence")  # each is a common name of a text; together they are a pair
NO_COLUMN = "-"
HOW_TO_NAME = "data.text=… data.second=… data.label=… name them"


class Columns(Config):
    """The columns of the texts and the label: by name, or by number in a file without a header."""

    text: str | None = Field(None, description="column of the text: its name, or its number in a file without header")
    second: str | None = Field(
        None,
        description=f"column of the second text of a pair; {NO_COLUMN} for none, the default if only text is given",
    )
    label: str | None = Field(None, description="column of the label")

    @property
    def given(self) -> list[str]:
        """The columns that the user named."""
        return [column for column in (self.text, self.second, self.label) if column and column != NO_COLUMN]

    @property
    def are_numbers(self) -> bool:
        """Whether all are numbers: the file has no header."""
        return bool(self.given) and all(column.isdecimal() for column in self.given)


@dataclass(frozen=True)
class ChosenColumns:
    """The columns to read from one file, by index."""

    names: tuple[str, ...]
    header: bool
    text: int
    second: int | None
    label: int | None

    @property
    def indices(self) -> list[int]:
        return [index for index in (self.text, self.second, self.label) if index is not None]

    def note(self) -> str:
        """A note to the user about what is read."""
        columns = {"text": self.text, "second text": self.second, "label": self.label}
        read = [f"{what} from column {self.names[index]!r}" for what, index in columns.items() if index is not None]
        return f"{'single texts' if self.second is None else 'pairs of texts'}: {', '.join(read)}"


def choose_columns(path: Path, columns: Columns, *, labels_needed: bool = True) -> ChosenColumns:
    """The columns of a file that hold the texts and the label.

    DataError: a named column does not exist, none or several are found, one is chosen twice, or the first row is not a
    header (or is one, though columns are given by number).
    """
    header = not columns.are_numbers
    names = column_names(path, header=header)
    given = [_index_of(path, names, column) for column in (columns.text, columns.second, columns.label)]
    if header:
        text, second = _texts(path, names, columns, given)
        label = _label(path, names, given, labels_needed)
    else:
        text, second, label = _numbered(path, given, labels_needed)
    chosen = ChosenColumns(tuple(names), header, text, second, label)
    if len(set(chosen.indices)) < len(chosen.indices):
        raise DataError(f"{path}: one column is chosen twice ({chosen.note()}); {HOW_TO_NAME}")
    return chosen


def _index_of(path: Path, names: list[str], column: str | None) -> int | None:
    """The index of a column that the user named."""
    if not column or column == NO_COLUMN:
        return None
    folded = [name.casefold() for name in names]
    if names.count(column) == 1:
        return names.index(column)
    if folded.count(column.casefold()) == 1:
        return folded.index(column.casefold())
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return int(column) - 1
    found = "several columns" if column.casefold() in folded else "no column"
    raise DataError(f"{path}: has {found} {column!r}; its columns are {_listed(names)}")


def _texts(path: Path, names: list[str], columns: Columns, given: list[int | None]) -> tuple[int, int | None]:
    texts = _candidates(names, TEXT_COLUMNS, given) if given[0] is None else [given[0]]
    seconds = _candidates(names, SECOND_COLUMNS, given) if given[1] is None else [given[1]]
    if columns.second == NO_COLUMN or (
        given[0] is not None and given[1] is None
    ):  # who names the text must name the second too
        seconds = []
    elif sorted(names[index].casefold() for index in texts) == list(QUESTION_AND_ANSWER) and not seconds:
        texts.sort(key=lambda index: names[index].casefold())
        seconds = [texts.pop()]
    if not texts:
        raise _not_found(path, names, "the text")
    if len(texts) > 1 or len(seconds) > 1:
        several = [names[index] for index in (texts if len(texts) > 1 else seconds)]
        raise DataError(
            f"{path}: the {'' if len(texts) > 1 else 'second '}text may be {_either(several)}; {HOW_TO_NAME}"
        )
    return texts[0], seconds[0] if seconds else None


def _label(path: Path, names: list[str], given: list[int | None], needed: bool) -> int | None:
    labels = _candidates(names, LABEL_COLUMNS, given) if given[2] is None else [given[2]]
    if needed and not labels:
        raise _not_found(path, names, "the label")
    if needed and len(labels) > 1:
        raise DataError(f"{path}: the label may be {_either([names[index] for index in labels])}; {HOW_TO_NAME}")
    return labels[0] if len(labels) == 1 else None


def _candidates(names: list[str], known: Sequence[str], given: list[int | None]) -> list[int]:
    return [index for index, name in enumerate(names) if name.casefold() in known and index not in given]


def _numbered(path: Path, given: list[int | None], labels_needed: bool) -> tuple[int, int | None, int | None]:
    """The given columns of a file without a header. DataError: it has one."""
    text, second, label = given
    if text is None or (label is None and labels_needed):
        missing = "text=1" if text is None else "label=2"
        raise DataError(f"{path}: a file without header needs all its columns by number; data.{missing} is missing")
    first = column_names(path)
    if first[text].casefold() in TEXT_COLUMNS and (label is None or first[label].casefold() in LABEL_COLUMNS):
        raise DataError(f"{path}: has a header ({_listed(first)}), got columns by number; give them by name")
    return text, second, label


def _not_found(path: Path, names: list[str], what: str) -> DataError:
    if format_suffix(path) in (".csv", ".tsv") and _looks_like_data(names):
        return DataError(
            f"{path}: the first row looks like data ({_listed(names)}), wanted a header; "
            "without one, data.text=1 data.label=2 give the columns by number"
        )
    if len(names) == 1 and (sign := next((sign for sign in ";\t|" if sign in names[0]), "")):
        return DataError(f"{path}: the columns are separated by {sign!r}, wanted commas in .csv and tabs in .tsv")
    return DataError(
        f"{path}: no column for {what} among {_listed(names)}; {HOW_TO_NAME}, numbers if there is no header"
    )


def _looks_like_data(names: list[str]) -> bool:
    if any(name.casefold() in (*TEXT_COLUMNS, *SECOND_COLUMNS, *LABEL_COLUMNS) for name in names):
        return False
    return any(not name or len(name) > 40 or len(name.split()) > 3 or _is_number(name) for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name if len(name) <= 30 else f"{name[:30]}…" for name in names[:12]) + ", …" * (len(names) > 12)


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
