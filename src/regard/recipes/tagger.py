"""A tagger (token classification) on your own CoNLL files, from any BERT: named entities, parts of speech, any labels.

    regard train tagger ner.conll --from path/to/bert -o runs/tagger
    regard train tagger train.conllu data.dev=dev.conllu -o runs/parts-of-speech
    regard run runs/tagger "Ada Lovelace lived in London"

A word a line with its label, a blank line between sentences. Labels such as B-PER and I-PER are scored as whole
entities. Without --from it trains from scratch, with a small encoder and a vocabulary of your words.
"""

from regard.models.bert import BertForTokenClassificationConfig
from regard.tasks.fine_tuning import config_with_head, fine_tuning_config
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.tasks.tagging.data import TaggedDataConfig, TaggingRun, prepare
from regard.tasks.tagging.task import TaggingConfig


def settings(inputs: TrainingInputs) -> TaggingRun:
    return TaggingRun(
        model=config_with_head(BertForTokenClassificationConfig, inputs),
        task=TaggingConfig(),
        data=TaggedDataConfig(),
        training=fine_tuning_config(inputs),
    )


RECIPE = Recipe(
    "tagger", settings, prepare, "Ada Lovelace lived in London", accepts_pretrained=True, evaluate_at_end=True
)
