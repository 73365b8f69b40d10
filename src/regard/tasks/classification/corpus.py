"""Labeled texts to learn from, split in two: the user's tables, or a folder of GLUE as it is published.

Both are held in memory as text: a few hundred megabytes for the largest task of GLUE.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from regard.config import Config, whole_path
from regard.data.readers.columns import Columns, choose_columns
from regard.data.readers.glue import TRAINING, GlueTask, read_glue, task_of
from regard.data.readers.labeled import Labeled, read_labeled
from regard.data.readers.pairs import BadLines, is_validation
from regard.errors import DataError

MANY = 50  # labels from which on it is asked whether they are labels at all
SCORES = 20  # different whole numbers from which on they are scores


class LabeledDataConfig(Columns):
    """How labeled texts are read and split."""

    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad row: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the rows kept out of training")
    dev: Path | None = Field(None, description="a file to measure on, instead of rows kept out")
    kind: Literal["auto", "classes", "score"] = Field("auto", description="what the label is; auto: as it looks")
    longest: int | None = Field(None, ge=8, description="pieces of a row at most; none: as many as the model reads")
    too_long: Literal["cut", "stop"] = Field("cut", description="a longer row is cut, and counted, or is an error")

    _whole_path = field_validator("dev")(whole_path)


class GlueDataConfig(Config):
    """How a folder of GLUE is read."""

    task: str | None = Field(None, description="which one it is; none: as the folder is called")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad row: stop there, or skip it")
    longest: int | None = Field(128, ge=8, description="pieces of a row at most; none: as many as the model reads")
    too_long: Literal["cut", "stop"] = Field("cut", description="a longer row is cut, and counted, or is an error")


class LabeledCorpus:
    """What is learned from, and what is measured on: one part or several, by name.

    `labels` are the classes in their order; empty: the label is a score.
    """

    def __init__(
        self,
        training: Sequence[Labeled],
        validation: Mapping[str, Sequence[Labeled]],
        labels: tuple[str, ...],
        metrics: tuple[str, ...],
        notes: Sequence[str] = (),
    ) -> None:
        self.training, self.validation = training, validation
        self.labels, self.metrics = labels, metrics
        self.notes = list(notes)


def read_corpus(paths: Sequence[Path], config: LabeledDataConfig) -> LabeledCorpus:
    """The user's tables. Rows with the same text are on one side."""
    bad = BadLines()
    columns = Columns(text=config.text, second=config.second, label=config.label)
    rows = list(read_labeled(paths, columns=columns, on_error=config.on_error, report=bad))
    if config.dev is None:
        kept = [is_validation(f"{row.text}\t{row.second or ''}", config.validation) for row in rows]
        validation = [row for row, out in zip(rows, kept, strict=True) if out]
        training = [row for row, out in zip(rows, kept, strict=True) if not out]
        if not training or not validation:
            raise DataError(
                f"{len(training)} rows to train on and {len(validation)} held out: too few; "
                "give more rows, a larger data.validation, or data.dev=FILE to measure on"
            )
    else:
        training = rows
        validation = list(read_labeled([config.dev], columns=columns, on_error=config.on_error, report=bad))
        _check_alike(training, validation, config.dev)
    where = "what is held out"
    chosen = [choose_columns(path, columns).note() for path in [*paths, *([config.dev] if config.dev else [])]]
    notes = [*dict.fromkeys(chosen), *bad.summary()]
    if _is_score(rows, config.kind):
        check_scores(validation, where)
        notes.append("the labels are numbers: it learns a score; data.kind=classes makes classes of them")
        return LabeledCorpus(training, {"validation": validation}, (), metrics_of(()), notes)
    labels = labels_of(rows)
    if config.kind == "auto" and len(labels) > 2 and all(map(_is_number, labels)):
        notes.append("the labels are numbers, learned as classes; data.kind=score learns them as a score")
    check_labels(validation, labels, where)
    notes += unlearned(labels, {row.label or "" for row in training})
    if len({row.label for row in validation}) == 1:
        wanted = "more rows, a larger data.validation, or data.dev=FILE to measure on"
        notes.append(
            f"{config.dev or where} has {validation[0].label!r} alone ({len(validation):,} rows): its scores say "
            f"little; give {'it rows of other labels' if config.dev else wanted}"
        )
    return LabeledCorpus(training, {"validation": validation}, labels, metrics_of(labels), notes)


def metrics_of(labels: Sequence[str]) -> tuple[str, ...]:
    """How the user's own classes are measured; without any, a score. The second of two is the one to be found."""
    if not labels:
        return "pearson", "spearman"
    return "accuracy", f"f1_{labels[1]}" if len(labels) == 2 else "macro_f1", "matthews"


def read_glue_corpus(folder: Path, config: GlueDataConfig) -> LabeledCorpus:
    """A folder of GLUE."""
    task = task_of(folder, config.task)
    if not task.training:
        raise DataError(f"{task.name} has nothing to train on; train on MNLI, then: regard evaluate MODEL {folder}")
    bad = BadLines()
    training = list(read_glue(folder, task, TRAINING, on_error=config.on_error, report=bad))
    validation = read_glue_validation(folder, task, config.on_error, bad)
    return LabeledCorpus(training, validation, task.labels or (), task.metrics, [task.name, *bad.summary()])


def read_glue_validation(
    folder: Path, task: GlueTask, on_error: Literal["stop", "skip"], bad: BadLines
) -> dict[str, list[Labeled]]:
    """The parts of a GLUE folder that are measured on."""
    return {part: list(read_glue(folder, task, part, on_error=on_error, report=bad)) for part in task.validation}


def labels_of(rows: Iterable[Labeled]) -> tuple[str, ...]:
    """The classes of rows in their order: numbers by value, else by the alphabet. DataError unless there are two."""
    counts = Counter(row.label or "" for row in rows)
    if len(counts) == 1:
        (only,) = counts
        raise DataError(f"all {counts.total():,} rows have the label {only!r}; wanted two classes at least")
    if len(counts) > MANY and len(counts) > counts.total() / 4:
        raise DataError(
            f"{len(counts):,} different labels in {counts.total():,} rows; is data.label=… the right column? "
            "data.kind=score if it is a number"
        )
    return tuple(
        sorted(counts, key=lambda label: (not _is_number(label), float(label) if _is_number(label) else 0, label))
    )


def check_labels(rows: Iterable[Labeled], labels: Sequence[str], where: str) -> None:
    """DataError: a label that no class of the model has. `where` says what the rows are."""
    for number, row in enumerate(rows, 1):
        if row.label not in labels:
            raise DataError(
                f"{where}: {row.place or f'row {number:,}'} has the label {row.label!r}, "
                f"which the model was not trained on; wanted one of {', '.join(labels[:20])}"
            )


def check_scores(rows: Iterable[Labeled], where: str) -> None:
    """DataError: a label that is no number."""
    for number, row in enumerate(rows, 1):
        if not _is_number(row.label or ""):
            raise DataError(f"{where}: {row.place or f'row {number:,}'} has the label {row.label!r}, wanted a number")


def unlearned(labels: Sequence[str], learned: Collection[str]) -> list[str]:
    """A note on classes that occur in what is held out alone."""
    without = [label for label in labels if label not in learned]
    return [f"nothing to train on for {', '.join(without[:10])}: all of it is held out"] if without else []


def _check_alike(training: Sequence[Labeled], validation: Sequence[Labeled], dev: Path) -> None:
    pairs = training[0].second is not None
    if pairs != (validation[0].second is not None):
        kinds = ("pairs", "single texts") if pairs else ("single texts", "pairs")
        raise DataError(f"{dev} has {kinds[1]}, but what is trained on has {kinds[0]}; wanted one kind (data.second=…)")


def _is_score(rows: Sequence[Labeled], kind: str) -> bool:
    labels = {row.label or "" for row in rows}
    numbers = all(_is_number(label) for label in labels)
    if kind == "score" and not numbers:
        odd = next(label for label in sorted(labels) if not _is_number(label))
        raise DataError(f"data.kind=score, but {odd!r} is no number; leave it out for classes")
    if kind != "auto":
        return kind == "score"
    return numbers and (len(labels) > SCORES or any(not float(label).is_integer() for label in labels))


def _is_number(label: str) -> bool:
    try:
        return abs(float(label)) < 1e30  # not nan, not infinite
    except ValueError:
        return False
