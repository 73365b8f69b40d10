"""A tagger of words on your own CoNLL files, from any BERT: names, parts of speech, whatever the labels are.

    regard train tagger ner.conll --from path/to/bert -o runs/tagger
    regard train tagger train.conllu data.dev=dev.conllu -o runs/parts-of-speech
    regard run runs/tagger "Ada Lovelace lived in London"

A word a line with its label, a blank line between sentences. Labels such as B-PER and I-PER are scored as whole
entities. Without --from it begins from nothing, with a small encoder and a vocabulary of your words.
"""

from regard.models.bert import BertForTokenClassificationConfig
from regard.tasks.fine_tuning import encoder_with, training
from regard.tasks.recipe import Given, Recipe, Run
from regard.tasks.tagging.corpus import TaggedDataConfig
from regard.tasks.tagging.data import prepare
from regard.tasks.tagging.task import TaggingConfig


def settings(given: Given) -> Run:
    return Run(
        model=encoder_with(BertForTokenClassificationConfig, given),
        task=TaggingConfig(),
        data=TaggedDataConfig(),
        training=training(given),
    )


RECIPE = Recipe("tagger", settings, prepare, "Ada Lovelace lived in London", starts=True, judged=True)
