"""A classifier of sentences or pairs on your own labels, from any BERT.

    regard train classifier reviews.csv --from path/to/bert -o runs/sentiment
    regard train classifier train.tsv data.dev=dev.tsv --from runs/bert -o runs/pairs task.class_weights=true
    regard run runs/sentiment "what a waste of an evening"

Reads .csv, .tsv, .jsonl and .parquet; text, second text and label are found by the names of their columns, or given:
data.text=… data.second=… data.label=…. Numbers with fractions are learned as a score. Four passes over the data at
most; it ends early when five evaluations bring nothing better, and keeps the best. Without --from it begins from
nothing, with a small encoder and a vocabulary of your texts. See `regard recipes glue` for a figure.
"""

from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.corpus import LabeledDataConfig
from regard.tasks.classification.data import prepare
from regard.tasks.classification.task import ClassificationConfig
from regard.tasks.fine_tuning import encoder_with, training
from regard.tasks.recipe import Given, Recipe, Run


def settings(given: Given) -> Run:
    return Run(
        model=encoder_with(BertForSequenceClassificationConfig, given),
        task=ClassificationConfig(),
        data=LabeledDataConfig(),
        training=training(given),
    )


RECIPE = Recipe("classifier", settings, prepare, "a text of yours", starts=True, judged=True)
