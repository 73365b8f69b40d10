"""Sentences with a label for each word, split in two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from regard.config import Config, whole_path
from regard.data.readers.conll import Tagged, read_tagged
from regard.data.readers.pairs import BadLines, is_validation
from regard.errors import DataError
from regard.tasks.classification.corpus import unlearned


class TaggedDataConfig(Config):
    """How tagged sentences are read and split."""

    word: int | None = Field(None, ge=1, description="column of the word; none: the first (.conllu: the second)")
    column: int | None = Field(None, ge=1, description="column of the label; none: the last (.conllu: the fourth)")
    on_error: Literal["stop", "skip"] = Field("stop", description="at a bad sentence: stop there, or skip it")
    validation: float = Field(0.1, gt=0, lt=1, description="share of the sentences kept out of training")
    dev: Path | None = Field(None, description="a file to measure on, instead of sentences kept out")

    _whole_path = field_validator("dev")(whole_path)


@dataclass(frozen=True)
class TaggedCorpus:
    """What is learned from, and what is measured on."""

    training: list[Tagged]
    validation: list[Tagged]
    labels: tuple[str, ...]
    notes: list[str]


def read_tagged_corpus(paths: Sequence[Path], config: TaggedDataConfig) -> TaggedCorpus:
    """The user's files. A sentence that occurs twice is on one side."""
    bad = BadLines()

    def read(files: Sequence[Path]) -> list[Tagged]:
        return list(read_tagged(files, on_error=config.on_error, report=bad, word=config.word, column=config.column))

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
            "give more sentences, a larger data.validation, or data.dev=FILE to measure on"
        )
    labels = tuple(
        sorted({label for one in sentences for label in one.labels or ()}, key=lambda one: (one != "O", one))
    )
    if len(labels) < 2:
        raise DataError(f"all words have the label {labels[0]!r}; wanted two tags at least")
    check_tags(validation, labels, config.dev or "what is held out")
    learned = {label for one in training for label in one.labels or ()}
    return TaggedCorpus(training, validation, labels, [*bad.summary(), *unlearned(labels, learned)])


def check_tags(sentences: Iterable[Tagged], labels: Sequence[str], where: object) -> None:
    """DataError: a tag the model does not have."""
    for number, one in enumerate(sentences, 1):
        for word, label in zip(one.words, one.labels or (), strict=True):
            if label not in labels:
                raise DataError(
                    f"{where}: {word!r} in sentence {number:,} has the tag {label!r}, which the model was not trained "
                    f"on; wanted one of {', '.join(labels[:20])}"
                )
