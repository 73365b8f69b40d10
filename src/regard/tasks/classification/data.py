"""Labeled texts made ready for a classifier."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from regard.data.readers.labeled import Labeled
from regard.data.rows import RowData, Rows
from regard.errors import ConfigError, DataError
from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.corpus import (
    GlueDataConfig,
    LabeledCorpus,
    LabeledDataConfig,
    read_corpus,
    read_glue_corpus,
)
from regard.tasks.classification.task import Classification, ClassificationConfig, balancing_weights
from regard.tasks.fine_tuning import check_lengths, fitted, start_of, words_of
from regard.tasks.recipe import Given, Prepared, Run
from regard.tokenizers.wordpiece import WordPieceTokenizer


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The classification task on the user's tables."""
    settings: LabeledDataConfig = run.data  # type: ignore[assignment]
    return _prepare(run, given, tokenizer_file, read_corpus(given.paths, settings), settings)


def prepare_glue(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    """The classification task on a folder of GLUE."""
    settings: GlueDataConfig = run.data  # type: ignore[assignment]
    if len(given.paths) != 1:
        raise DataError(f"got {len(given.paths)} folders, wanted one, such as SST-2/ as GLUE publishes it")
    return _prepare(run, given, tokenizer_file, read_glue_corpus(Path(given.paths[0]), settings), settings)


def _prepare(
    run: Run, given: Given, tokenizer_file: Path, corpus: LabeledCorpus, settings: LabeledDataConfig | GlueDataConfig
) -> Prepared:
    config: BertForSequenceClassificationConfig = run.model  # type: ignore[assignment]
    if config.labels not in ((), corpus.labels):
        raise ConfigError(f"model.labels={config.labels}, but the data has {corpus.labels}; leave them out")
    if config.num_segments < 2 and corpus.training[0].second is not None:
        raise ConfigError("the data has pairs, but this model tells no second text from a first (model.sentences=1)")
    texts = (text for row in corpus.training for text in (row.text, row.second or ""))
    tokenizer = words_of(given, texts, config.vocab_size, tokenizer_file)
    config = fitted(config, given, tokenizer).model_copy(update={"labels": corpus.labels})
    maker = _Maker(tokenizer, min(settings.longest or config.context, config.context), settings.too_long, corpus.labels)
    first = next(iter(corpus.validation.values()))
    training, notes = maker.rows(corpus.training, "to train on")
    validation, others = maker.rows(first, "held out")
    task = Classification(RowData(training, validation), corpus.labels, corpus.metrics, _class_weights(run, corpus))
    what = f"{len(corpus.labels)} classes ({', '.join(corpus.labels[:10])})" if corpus.labels else "a score"
    notes = [
        *corpus.notes,
        f"{len(training):,} rows to train on, {len(validation):,} held out; {what}",
        *notes,
        *others,
    ]
    facts = {"pairs": corpus.training[0].second is not None, "longest": maker.longest}
    return Prepared(task, config, notes, start_of(given, config, score=_mean(corpus)), facts)


def _mean(corpus: LabeledCorpus) -> float | None:
    """Where a score begins."""
    return None if corpus.labels else float(np.mean([float(row.label or 0) for row in corpus.training]))


@dataclass(frozen=True)
class _Maker:
    """Labeled texts to rows of pieces."""

    tokenizer: WordPieceTokenizer
    longest: int
    too_long: str
    labels: tuple[str, ...]

    def rows(self, labeled: Sequence[Labeled], which: str) -> tuple[Rows, list[str]]:
        pairs = labeled[0].second is not None
        encoded = self.tokenizer.encode_batch(
            [row.text for row in labeled],
            [row.second or "" for row in labeled] if pairs else None,
            max_length=self.longest,
        )
        notes = check_lengths(encoded, self.longest, self.too_long, which, [row.place for row in labeled])
        return Rows(encoded, self._targets(labeled), self.tokenizer.pad_id), notes

    def _targets(self, labeled: Sequence[Labeled]) -> np.ndarray:
        if not self.labels:
            return np.array([float(row.label or 0) for row in labeled], np.float32)
        numbers = {label: number for number, label in enumerate(self.labels)}
        return np.array([numbers[row.label or ""] for row in labeled], np.int64)


def _class_weights(run: Run, corpus: LabeledCorpus) -> Tensor | None:
    settings: ClassificationConfig = run.task  # type: ignore[assignment]
    if not settings.class_weights:
        return None
    if not corpus.labels:
        raise ConfigError("task.class_weights=true, but the label is a score; leave it out")
    return balancing_weights([sum(row.label == label for row in corpus.training) for label in corpus.labels])
