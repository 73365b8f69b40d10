"""`regard data`: what files of data are, as the readers of the recipes see them."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.look import count_duplicates, labeled_facts, lengths, pair_facts, scripts
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import folder_and_file, read_captions
from regard.data.readers.columns import LABEL_COLUMNS, Columns, choose_columns
from regard.data.readers.conll import read_tagged
from regard.data.readers.documents import expand_patterns, read_documents
from regard.data.readers.glue import TRAINING, find_glue_task, read_glue
from regard.data.readers.labeled import read_labeled
from regard.data.readers.lines import format_suffix, read_lines
from regard.data.readers.pairs import read_pairs
from regard.errors import DataError

TABLES = (".csv", ".parquet")
MAX_WORDS = 2000  # of a side of a pair
EXAMPLES = 2


def describe_data(paths: Sequence[Path], columns: Columns | None = None) -> dict[str, Any]:
    """What the files are, how many examples they have and of which kind, what would be left out and what to mind."""
    bad = BadRows()
    columns = columns or Columns()
    if len(paths) == 1 and paths[0].is_dir() and (paths[0] / "train.tsv").is_file():
        facts = _glue(paths[0], bad)
    elif any(path.is_dir() for path in paths) and len(paths) == 2:
        facts = _captions(paths, bad)
    elif columns.given or _is_labeled(paths):
        facts = _labeled(paths, columns, bad)
    elif format_suffix(paths[0]) in (".conll", ".conllu", ".bio", ".iob"):
        facts = _tagged(paths, bad)
    elif _are_pairs(paths):
        facts = _pairs(paths, bad)
    else:
        facts = _text(paths, bad)
    notes = bad.summary()
    return {"data": ", ".join(map(str, paths)), **facts, **({"notes": notes} if notes else {})}


def _is_labeled(paths: Sequence[Path]) -> bool:
    kind = format_suffix(paths[0])
    if kind in TABLES:
        return True
    if paths[0].is_dir() or kind not in (".tsv", ".jsonl"):
        return False
    first = next(iter(read_lines(paths[0])), b"").decode("utf-8", "replace").casefold()
    if kind == ".jsonl":
        return any(f'"{name}"' in first for name in LABEL_COLUMNS) and '"source"' not in first
    return any(cell.strip() in LABEL_COLUMNS for cell in first.split("\t")) and "target" not in first.split("\t")


def _are_pairs(paths: Sequence[Path]) -> bool:
    if any(path.is_dir() for path in paths):
        return False
    if len(paths) == 2 and format_suffix(paths[0]) != format_suffix(paths[1]):
        return True
    kind = format_suffix(paths[0])
    first = next(iter(read_lines(paths[0])), b"") if kind == ".jsonl" and paths[0].is_file() else b""
    return kind == ".tsv" or b'"source"' in first


def _labeled(paths: Sequence[Path], columns: Columns, bad: BadRows) -> dict[str, Any]:
    chosen = choose_columns(paths[0], columns, labels_needed=False)
    rows = list(read_labeled(paths, columns=columns, on_error="skip", report=bad, labels_needed=False))
    texts = [row.text if row.second is None else f"{row.text}\t{row.second}" for row in rows]
    what = {"kind": "labeled texts: regard train classifier", "columns": chosen.note()}
    return (
        what
        | labeled_facts(texts, [row.label for row in rows])
        | _examples(f"{row.label}: {row.text}" for row in rows[:EXAMPLES])
    )


def _glue(folder: Path, bad: BadRows) -> dict[str, Any]:
    task = find_glue_task(folder)
    rows = list(read_glue(folder, task, TRAINING, on_error="skip", report=bad))
    facts = labeled_facts([f"{row.text}\t{row.second or ''}".strip() for row in rows], [row.label for row in rows])
    facts.pop("warnings", None)  # of a split that GLUE does not need
    return {"kind": f"{task.name} of GLUE: regard train glue"} | facts


def _pairs(paths: Sequence[Path], bad: BadRows) -> dict[str, Any]:
    pairs = list(read_pairs(paths, on_error="skip", report=bad, longest=MAX_WORDS))
    return (
        {"kind": "sentence pairs: regard train translator"}
        | pair_facts(pairs)
        | _examples(f"{source} → {target}" for source, target in pairs[:EXAMPLES])
    )


def _tagged(paths: Sequence[Path], bad: BadRows) -> dict[str, Any]:
    found = list(read_tagged(paths, on_error="skip", report=bad, word=None, column=None))
    tags = [tag for one in found for tag in one.labels or ()]
    texts = [" ".join(one.words) for one in found]
    facts = labeled_facts(tags, tags)
    return {
        "kind": "tagged sentences: regard train tagger",
        "sentences": len(found),
        "words of a sentence": lengths(texts),
        "scripts": scripts(texts),
        "duplicates": count_duplicates(texts),
        "tags": facts["classes"],
    }


def _captions(paths: Sequence[Path], bad: BadRows) -> dict[str, Any]:
    found = read_captions(*folder_and_file(paths), on_error="skip", report=bad)
    texts = [caption for one in found for caption in one.captions]
    return {
        "kind": "images with captions: regard train captioner, or vilbert",
        "images": len(found),
        "captions": len(texts),
        "words of a caption": lengths(texts),
        "scripts": scripts(texts),
        "duplicates": f"{count_duplicates(texts):,} captions",
    } | _examples(f"{one.name}: {one.captions[0]}" for one in found[:EXAMPLES])


def _text(paths: Sequence[Path], bad: BadRows) -> dict[str, Any]:
    files = expand_patterns(paths)
    documents, parts = [], []
    for chunk in read_documents(files, on_error="skip", report=bad):
        parts.append(chunk.text)
        if chunk.is_last:
            documents.append("".join(parts))
            parts = []
    if not documents:
        raise DataError(f"{paths[0]}: has no text")
    lines = [line for text in documents for line in text.splitlines() if line.strip()]
    return {
        "kind": "text: regard train gpt, or bert",
        "files": len(files),
        "documents": len(documents),
        "characters": sum(map(len, documents)),
        "words of a line": lengths(lines),
        "scripts": scripts(documents),
        "lines that repeat": count_duplicates(line for line in lines if len(line.split()) > 5),
    } | _examples(islice(lines, EXAMPLES))


def _examples(examples: Any) -> dict[str, Any]:
    return {"examples": {f"{number}": text[:100].replace("\t", " | ") for number, text in enumerate(examples, 1)}}
