"""A classifier of texts or text pairs with your own labels, from any BERT.

    regard train classifier reviews.csv --from path/to/bert -o runs/sentiment
    regard train classifier train.tsv data.dev=dev.tsv --from runs/bert -o runs/pairs task.class_weights=true
    regard run runs/sentiment "what a waste of an evening"

Reads .csv, .tsv, .jsonl and .parquet; text, second text and label are found by the names of their columns, or given:
data.text=… data.second=… data.label=…. Numbers with fractions are a score (regression). Four epochs at most; early
stopping after five evaluations without improvement, and the best model is kept. Without --from it trains from scratch,
with a small encoder and a vocabulary of your texts. See `regard recipes glue` for a figure.
"""

from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.data import LabeledDataConfig, LabeledRun, prepare
from regard.tasks.classification.task import ClassificationConfig
from regard.tasks.fine_tuning import config_with_head, fine_tuning_config
from regard.tasks.recipe import Recipe, TrainingInputs


def settings(inputs: TrainingInputs) -> LabeledRun:
    return LabeledRun(
        model=config_with_head(BertForSequenceClassificationConfig, inputs),
        task=ClassificationConfig(),
        data=LabeledDataConfig(),
        training=fine_tuning_config(inputs),
    )


RECIPE = Recipe("classifier", settings, prepare, "a text of yours", accepts_pretrained=True, evaluate_at_end=True)
