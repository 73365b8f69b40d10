"""Recurrent readers: a class for a text (many to one), a tag for each word (many to many), as before BERT."""

from typing import Any

from regard.models.base import EncoderIds
from regard.models.rnn_reader import RNNForSequenceClassificationConfig, RNNForTokenClassificationConfig
from regard.tasks.classification.data import LabeledDataConfig
from regard.tasks.classification.data import prepare as prepare_labeled
from regard.tasks.classification.task import ClassificationConfig
from regard.tasks.fine_tuning import fine_tuning_config
from regard.tasks.recipe import Recipe, RunConfig, TrainingInputs
from regard.tasks.tagging.data import TaggedDataConfig
from regard.tasks.tagging.data import prepare as prepare_tagged
from regard.tasks.tagging.task import TaggingConfig

SMALL: dict[str, Any] = {
    "vocab_size": 4096,
    "context": 128,
    "width": 128,
    "special_ids": EncoderIds(bos_id=2, eos_id=3, mask_id=4),
}
LabeledRun = RunConfig[LabeledDataConfig, RNNForSequenceClassificationConfig, ClassificationConfig]
TaggedRun = RunConfig[TaggedDataConfig, RNNForTokenClassificationConfig, TaggingConfig]


def classifier(inputs: TrainingInputs) -> LabeledRun:
    return LabeledRun(
        model=RNNForSequenceClassificationConfig(**SMALL),
        task=ClassificationConfig(),
        data=LabeledDataConfig(),
        training=fine_tuning_config(inputs),
    )


def tagger(inputs: TrainingInputs) -> TaggedRun:
    return TaggedRun(
        model=RNNForTokenClassificationConfig(**SMALL),
        task=TaggingConfig(),
        data=TaggedDataConfig(),
        training=fine_tuning_config(inputs),
    )


CLASSIFIER = Recipe("rnn-classifier", classifier, prepare_labeled, "a text of yours", evaluate_at_end=True)
"""A recurrent classifier of texts or text pairs with your own labels: the twin of `classifier`, without attention.

    regard train rnn-classifier reviews.csv -o runs/rnn-sentiment
    regard run runs/rnn-sentiment "what a waste of an evening"

A bidirectional GRU of width 128 whose last states are classified, trained from scratch with a vocabulary of your texts.
Data, stopping and scores are those of `regard recipes classifier`. model.cell=lstm takes another cell.
"""

TAGGER = Recipe("rnn-tagger", tagger, prepare_tagged, "Ada Lovelace lived in London", evaluate_at_end=True)
"""A recurrent tagger on your own CoNLL files: the twin of `tagger`, without attention.

    regard train rnn-tagger ner.conll -o runs/rnn-tagger
    regard run runs/rnn-tagger "Ada Lovelace lived in London"

A bidirectional GRU of width 128 with a head on every token, trained from scratch with a vocabulary of your words. Data
and scores are those of `regard recipes tagger`. model.cell=lstm takes another cell.
"""
