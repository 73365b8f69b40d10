"""A GLUE task, from its folder as published: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI.

    regard train glue SST-2/ --from path/to/bert --seeds 3 -o runs/sst-2
    regard evaluate runs/sst-2/seed-1 runs/sst-2/seed-2 runs/sst-2/seed-3

The folder's name says which task it is (else data.task=sst-2). Each has its own metric: Matthews correlation, accuracy,
F1, or Pearson and Spearman correlation. One seed says little: --seeds 3 gives mean and standard deviation.

all-MiniLM-L6-v2 (22 million parameters) on 6,000 sentences of movie reviews in SST-2's layout, labeled by the sign of
people's ratings: accuracy 84.5 ± 0.6 % on 1,000 others (training.epochs=1, 2 seeds, about five minutes each on two busy
cores).
"""

from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.data import GlueDataConfig, GlueRun, prepare_glue
from regard.tasks.classification.task import ClassificationConfig
from regard.tasks.fine_tuning import config_with_head, fine_tuning_config
from regard.tasks.recipe import Recipe, TrainingInputs


def settings(inputs: TrainingInputs) -> GlueRun:
    return GlueRun(
        model=config_with_head(BertForSequenceClassificationConfig, inputs),
        task=ClassificationConfig(),
        data=GlueDataConfig(),
        training=fine_tuning_config(inputs),
    )


RECIPE = Recipe("glue", settings, prepare_glue, "a text of yours", accepts_pretrained=True, evaluate_at_end=True)
