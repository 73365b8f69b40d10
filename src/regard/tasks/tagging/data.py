"""Data of a tagger: sentences with a label for each word, read from CoNLL files, split and tokenized."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from regard.config import Config, absolute_path
from regard.data.batches import IGNORE_INDEX
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.conll import TaggedSentence, read_tagged
from regard.data.rows import RowDataset, RowSplits
from regard.data.splits import is_validation
from regard.errors import DataError
from regard.models.bert import BertForTokenClassificationConfig
from regard.tasks.fine_tuning import (
    encoder_tokenizer,
    encoder_weights,
    fit_to_tokenizer,
    labels_without_training,
    warm_start,
)
from regard.tasks.recipe import PreparedTask, RunConfig, TrainingInputs
from regard.tasks.tagging.task import TaggingConfig, TaggingTraining
from regard.tokenizers.wordpiece import WordPieceTokenizer, encode_in_rows, first_token_positions


class TaggedDataConfig(Config):
    """How tagged sentences are read and split."""

    word_column: int | None = Field(None, ge=1, description="of the word; none: the first (.conllu: the second)")
    label_column: int | None = Field(None, ge=1, description="of the label; none: the last (.conllu: the fourth)")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad sentence: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the sentences held out for validation")
    dev: Path | None = Field(None, description="a file to evaluate on, instead of held-out sentences")

    _whole_path = field_validator("dev")(absolute_path)


TaggingRun = RunConfig[TaggedDataConfig, BertForTokenClassificationConfig, TaggingConfig]


def prepare(
    run: RunConfig[TaggedDataConfig, Any, TaggingConfig], inputs: TrainingInputs, tokenizer_file: Path
) -> PreparedTask:
    """The tagging task on the user's files."""
    corpus = read_tagged_corpus(inputs.paths, run.data)
    texts = (" ".join(sentence.words) for sentence in corpus.training)
    tokenizer = encoder_tokenizer(inputs, texts, run.model.vocab_size, tokenizer_file)
    config = fit_to_tokenizer(run.model, inputs, tokenizer).model_copy(update={"labels": corpus.labels})
    training, _ = rows_of(corpus.training, corpus.labels, tokenizer, config.context)
    validation, sentences = rows_of(corpus.validation, corpus.labels, tokenizer, config.context)
    task = TaggingTraining(RowSplits(training, validation), corpus.labels, sentences)
    notes = [
        *corpus.notes,
        f"{len(corpus.training):,} sentences to train on, {len(corpus.validation):,} held out; "
        f"{len(corpus.labels)} tags ({', '.join(corpus.labels[:10])})",
    ]
    return PreparedTask(task, config, notes, warm_start(inputs, encoder_weights(inputs, config)))


def rows_of(
    sentences: Sequence[TaggedSentence], labels: Sequence[str], tokenizer: WordPieceTokenizer, max_length: int
) -> tuple[RowDataset, list[int]]:
    """A row for each sentence, several for a long one; a word's label is the target of its first token. Returns the
    rows, and the sentence each row is from."""
    numbers = {label: number for number, label in enumerate(labels)}
    encoded, targets, owners = [], [], []
    for number, sentence in enumerate(sentences):
        for start, row in encode_in_rows(tokenizer, sentence.words, max_length):
            target = [IGNORE_INDEX] * len(row.ids)
            for word, position in first_token_positions(row).items():
                target[position] = numbers[(sentence.labels or ())[start + word]]
            if any(one != IGNORE_INDEX for one in target):  # a lone accent gives no token
                encoded.append(row)
                targets.append(target)
                owners.append(number)
    return RowDataset(encoded, targets, tokenizer.pad_id), owners


@dataclass(frozen=True)
class TaggedCorpus:
    """Sentences to train on, and sentences to evaluate on."""

    training: list[TaggedSentence]
    validation: list[TaggedSentence]
    labels: tuple[str, ...]
    notes: list[str]


def read_tagged_corpus(paths: Sequence[Path], config: TaggedDataConfig) -> TaggedCorpus:
    """The user's files. A sentence that occurs twice is on one side of the split."""
    bad = BadRows()

    def read(files: Sequence[Path]) -> list[TaggedSentence]:
        found = read_tagged(
            files, on_error=config.on_error, report=bad, word=config.word_column, column=config.label_column
        )
        return list(found)

    sentences = read(paths)
    if config.dev is None:
        kept = [is_validation(" ".join(one.words), config.validation) for one in sentences]
        validation = [one for one, out in zip(sentences, kept, strict=True) if out]
        training = [one for one, out in zip(sentences, kept, strict=True) if not out]
    else:
        training, validation = sentences, read([config.dev])
    if not training or not validation:
        raise DataError(
            f"{len(training)} sentences to train on and {len(validation)} held out: too few; "
            "give more sentences, a larger data.validation, or data.dev=FILE to evaluate on"
        )
    labels = tuple(
        sorted({label for one in sentences for label in one.labels or ()}, key=lambda one: (one != "O", one))
    )
    if len(labels) < 2:
        raise DataError(f"all words have the label {labels[0]!r}; wanted two tags at least")
    check_tags(validation, labels, config.dev or "the held-out part")
    trained = {label for one in training for label in one.labels or ()}
    return TaggedCorpus(training, validation, labels, [*bad.summary(), *labels_without_training(labels, trained)])


def check_tags(sentences: Iterable[TaggedSentence], labels: Sequence[str], where: object) -> None:
    """DataError: a tag the model does not have."""
    for number, one in enumerate(sentences, 1):
        for word, label in zip(one.words, one.labels or (), strict=True):
            if label not in labels:
                raise DataError(
                    f"{where}: {word!r} in sentence {number:,} has the tag {label!r}, which the model was not trained "
                    f"on; wanted one of {', '.join(labels[:20])}"
                )
