"""Data of a classifier: labeled texts from the user's tables or a GLUE folder, split and tokenized.

The texts are held in memory: a few hundred megabytes for the largest GLUE task.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator
from torch import Tensor

from regard.config import Config, absolute_path
from regard.data import look
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.columns import Columns, choose_columns
from regard.data.readers.glue import TRAINING, GlueTask, find_glue_task, read_glue
from regard.data.readers.labeled import LabeledText, read_labeled
from regard.data.rows import RowDataset, RowSplits
from regard.data.splits import is_validation
from regard.errors import ConfigError, DataError
from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.task import ClassificationConfig, ClassificationTraining, balancing_weights
from regard.tasks.fine_tuning import (
    check_lengths,
    encoder_tokenizer,
    encoder_weights,
    fit_to_tokenizer,
    labels_without_training,
    warm_start,
)
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs
from regard.tokenizers.wordpiece import WordPieceTokenizer

MAX_LABELS = 50  # more different labels than this are doubted
MAX_INTEGER_LABELS = 20  # more different whole numbers than this are scores


class LabeledDataConfig(Columns):
    """How labeled texts are read and split."""

    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad row: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the rows held out for validation")
    dev: Path | None = Field(None, description="a file to evaluate on, instead of held-out rows")
    kind: Literal["auto", "classes", "score"] = Field("auto", description="what the label is; auto: by its values")
    max_length: int | None = Field(None, ge=8, description="tokens of a row; none: the model's context")
    too_long: Literal["cut", "stop"] = Field("cut", description="truncate a longer row, or stop there")

    _whole_path = field_validator("dev")(absolute_path)


class GlueDataConfig(Config):
    """How a folder of GLUE is read."""

    task: str | None = Field(None, description="which GLUE task it is; none: by the folder's name")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad row: stop there, or skip it")
    max_length: int | None = Field(128, ge=8, description="tokens of a row; none: the model's context")
    too_long: Literal["cut", "stop"] = Field("cut", description="truncate a longer row, or stop there")


LabeledRun = RunConfig[LabeledDataConfig, BertForSequenceClassificationConfig, ClassificationConfig]
GlueRun = RunConfig[GlueDataConfig, BertForSequenceClassificationConfig, ClassificationConfig]


def prepare(
    run: RunConfig[LabeledDataConfig, Any, ClassificationConfig], inputs: TrainingInputs, tokenizer_file: Path
) -> PreparedTask:
    """The classification task on the user's tables."""
    return _prepare(run, inputs, tokenizer_file, read_corpus(inputs.paths, run.data))


def prepare_glue(run: GlueRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """The classification task on a GLUE folder."""
    if len(inputs.paths) != 1:
        raise DataError(f"got {len(inputs.paths)} folders, wanted one, such as SST-2/ as GLUE publishes it")
    return _prepare(run, inputs, tokenizer_file, read_glue_corpus(Path(inputs.paths[0]), run.data))


def _prepare(
    run: RunConfig[Any, Any, ClassificationConfig],
    inputs: TrainingInputs,
    tokenizer_file: Path,
    corpus: "LabeledCorpus",
) -> PreparedTask:
    config, has_pairs = run.model, corpus.training[0].second is not None
    if config.labels not in ((), corpus.labels):
        raise ConfigError(f"model.labels={config.labels}, but the data has {corpus.labels}; leave them out")
    if config.num_segments < 2 and has_pairs:
        raise ConfigError("the data has pairs, but this model has one segment only (model.num_segments=1)")
    texts = (text for row in corpus.training for text in (row.text, row.second or ""))
    tokenizer = encoder_tokenizer(inputs, texts, config.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(config, inputs, tokenizer).model_copy(update={"labels": corpus.labels})
    max_length = min(run.data.max_length or config.context, config.context)
    encoder = _RowEncoder(tokenizer, max_length, run.data.too_long, corpus.labels)
    first = next(iter(corpus.validation.values()))
    training, notes = encoder.rows(corpus.training, "to train on")
    validation, others = encoder.rows(first, "held out")
    weights = _class_weights(run.task, corpus)
    task = ClassificationTraining(RowSplits(training, validation), corpus.labels, corpus.metrics, weights)
    what = f"{len(corpus.labels)} classes ({', '.join(corpus.labels[:10])})" if corpus.labels else "a score"
    notes = [
        *corpus.notes,
        f"{len(training):,} rows to train on, {len(validation):,} held out; {what}",
        *notes,
        *others,
    ]
    start = warm_start(inputs, encoder_weights(inputs, config, score=_mean_score(corpus)))
    return PreparedTask(task, config, notes, start, {"pairs": has_pairs, "max_length": max_length})


def _mean_score(corpus: "LabeledCorpus") -> float | None:
    """The initial bias of a regression head; None for classes."""
    return None if corpus.labels else float(np.mean([float(row.label or 0) for row in corpus.training]))


@dataclass(frozen=True)
class _RowEncoder:
    """Labeled texts to rows of ids."""

    tokenizer: WordPieceTokenizer
    max_length: int
    too_long: str
    labels: tuple[str, ...]

    def rows(self, labeled: Sequence[LabeledText], which: str) -> tuple[RowDataset, list[str]]:
        pairs = labeled[0].second is not None
        encoded = self.tokenizer.encode_batch(
            [row.text for row in labeled],
            [row.second or "" for row in labeled] if pairs else None,
            max_length=self.max_length,
        )
        notes = check_lengths(encoded, self.max_length, self.too_long, which, [row.location for row in labeled])
        return RowDataset(encoded, self._targets(labeled), self.tokenizer.pad_id), notes

    def _targets(self, labeled: Sequence[LabeledText]) -> np.ndarray:
        if not self.labels:
            return np.array([float(row.label or 0) for row in labeled], np.float32)
        numbers = {label: number for number, label in enumerate(self.labels)}
        return np.array([numbers[row.label or ""] for row in labeled], np.int64)


def _class_weights(settings: ClassificationConfig, corpus: "LabeledCorpus") -> Tensor | None:
    if not settings.class_weights:
        return None
    if not corpus.labels:
        raise ConfigError("task.class_weights=true, but the label is a score; leave it out")
    return balancing_weights([sum(row.label == label for row in corpus.training) for label in corpus.labels])


class LabeledCorpus:
    """Rows to train on, and rows to evaluate on: one part or several, by name.

    `labels` are the classes in order; empty: the label is a score.
    """

    def __init__(
        self,
        training: Sequence[LabeledText],
        validation: Mapping[str, Sequence[LabeledText]],
        labels: tuple[str, ...],
        metrics: tuple[str, ...],
        notes: Sequence[str] = (),
    ) -> None:
        self.training, self.validation = training, validation
        self.labels, self.metrics = labels, metrics
        self.notes = list(notes)


def read_corpus(paths: Sequence[Path], config: LabeledDataConfig) -> LabeledCorpus:
    """The user's tables. Rows with the same text are on one side of the split."""
    bad = BadRows()
    columns = Columns(text=config.text, second=config.second, label=config.label)
    rows = list(read_labeled(paths, columns=columns, on_error=config.on_error, report=bad))
    if config.dev is None:
        kept = [is_validation(f"{row.text}\t{row.second or ''}", config.validation) for row in rows]
        validation = [row for row, out in zip(rows, kept, strict=True) if out]
        training = [row for row, out in zip(rows, kept, strict=True) if not out]
        if not training or not validation:
            raise DataError(
                f"{len(training)} rows to train on and {len(validation)} held out: too few; "
                "give more rows, a larger data.validation, or data.dev=FILE to evaluate on"
            )
    else:
        training = rows
        validation = list(read_labeled([config.dev], columns=columns, on_error=config.on_error, report=bad))
        _check_same_kind(training, validation, config.dev)
    where = "the held-out part"
    chosen = [choose_columns(path, columns).note() for path in [*paths, *([config.dev] if config.dev else [])]]
    notes = [*dict.fromkeys(chosen), *bad.summary()]
    if _is_score(rows, config.kind):
        check_scores(validation, where)
        notes.append("the labels are numbers: training a score (regression); data.kind=classes makes them classes")
        return LabeledCorpus(training, {"validation": validation}, (), metrics_of(()), notes)
    labels = labels_of(rows)
    if config.kind == "auto" and len(labels) > 2 and all(map(_is_number, labels)):
        notes.append("the labels are numbers, taken as classes; data.kind=score makes them a score")
    check_labels(validation, labels, where)
    notes += labels_without_training(labels, {row.label or "" for row in training})
    notes += _look(training, validation, is_own=config.dev is not None)
    if len({row.label for row in validation}) == 1:
        wanted = "more rows, a larger data.validation, or data.dev=FILE to evaluate on"
        notes.append(
            f"{config.dev or where} has the label {validation[0].label!r} only ({len(validation):,} rows): its scores "
            f"say little; give {'it rows of other labels' if config.dev else wanted}"
        )
    return LabeledCorpus(training, {"validation": validation}, labels, metrics_of(labels), notes)


def _look(training: Sequence[LabeledText], validation: Sequence[LabeledText], *, is_own: bool) -> list[str]:
    """Notes on lengths and balance, and on what to mind; `is_own`: the validation data is a file of the user's."""
    texts = [[f"{row.text} {row.second or ''}".strip() for row in part] for part in (training, validation)]
    labels = [[row.label or "" for row in part] for part in (training, validation)]
    balance = ", ".join(f"{name} {count}" for name, count in list(look.classes(labels[0]).items())[:5])
    notes = [look.summary("a text", texts[0]), f"classes: {balance}", *look.warn_of_classes(*labels)]
    return notes + (look.warn_of_straddling(*texts) if is_own else [])


def metrics_of(labels: Sequence[str]) -> tuple[str, ...]:
    """The metrics of the user's own labels; no labels: of a score. Of two labels the second is the positive class."""
    if not labels:
        return "pearson", "spearman"
    return "accuracy", f"f1_{labels[1]}" if len(labels) == 2 else "macro_f1", "matthews"


def read_glue_corpus(folder: Path, config: GlueDataConfig) -> LabeledCorpus:
    """A folder of GLUE."""
    task = find_glue_task(folder, config.task)
    if not task.training:
        raise DataError(f"{task.name} has nothing to train on; train on MNLI, then: regard evaluate MODEL {folder}")
    bad = BadRows()
    training = list(read_glue(folder, task, TRAINING, on_error=config.on_error, report=bad))
    validation = read_glue_validation(folder, task, config.on_error, bad)
    return LabeledCorpus(training, validation, task.labels or (), task.metrics, [task.name, *bad.summary()])


def read_glue_validation(
    folder: Path, task: GlueTask, on_error: Literal["stop", "skip"], bad: BadRows
) -> dict[str, list[LabeledText]]:
    """The parts of a GLUE folder to evaluate on."""
    return {part: list(read_glue(folder, task, part, on_error=on_error, report=bad)) for part in task.validation}


def labels_of(rows: Iterable[LabeledText]) -> tuple[str, ...]:
    """The classes of the rows, sorted: numbers by value, else alphabetically. DataError unless there are two."""
    counts = Counter(row.label or "" for row in rows)
    if len(counts) == 1:
        (only,) = counts
        raise DataError(f"all {counts.total():,} rows have the label {only!r}; wanted two classes at least")
    if len(counts) > MAX_LABELS and len(counts) > counts.total() / 4:
        raise DataError(
            f"{len(counts):,} different labels in {counts.total():,} rows; is data.label=… the right column? "
            "data.kind=score if it is a number"
        )
    return tuple(
        sorted(counts, key=lambda label: (not _is_number(label), float(label) if _is_number(label) else 0, label))
    )


def check_labels(rows: Iterable[LabeledText], labels: Sequence[str], where: str) -> None:
    """DataError: a label the model does not have. `where` says what the rows are."""
    for number, row in enumerate(rows, 1):
        if row.label not in labels:
            raise DataError(
                f"{where}: {row.location or f'row {number:,}'} has the label {row.label!r}, "
                f"which the model was not trained on; wanted one of {', '.join(labels[:20])}"
            )


def check_scores(rows: Iterable[LabeledText], where: str) -> None:
    """DataError: a label that is not a number."""
    for number, row in enumerate(rows, 1):
        if not _is_number(row.label or ""):
            raise DataError(
                f"{where}: {row.location or f'row {number:,}'} has the label {row.label!r}, wanted a number"
            )


def _check_same_kind(training: Sequence[LabeledText], validation: Sequence[LabeledText], dev: Path) -> None:
    pairs = training[0].second is not None
    if pairs != (validation[0].second is not None):
        kinds = ("pairs", "single texts") if pairs else ("single texts", "pairs")
        raise DataError(
            f"{dev} has {kinds[1]}, but the training data has {kinds[0]}; wanted the same in both (data.second=…)"
        )


def _is_score(rows: Sequence[LabeledText], kind: str) -> bool:
    labels = {row.label or "" for row in rows}
    numbers = all(_is_number(label) for label in labels)
    if kind == "score" and not numbers:
        odd = next(label for label in sorted(labels) if not _is_number(label))
        raise DataError(f"data.kind=score, but {odd!r} is not a number; leave it out for classes")
    if kind != "auto":
        return kind == "score"
    return numbers and (len(labels) > MAX_INTEGER_LABELS or any(not float(label).is_integer() for label in labels))


def _is_number(label: str) -> bool:
    try:
        return abs(float(label)) < 1e30  # not nan, not infinite
    except ValueError:
        return False
