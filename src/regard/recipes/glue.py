"""A task of GLUE, from its folder as published: CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE or WNLI.

    regard train glue SST-2/ --from path/to/bert --seeds 3 -o runs/sst-2
    regard evaluate runs/sst-2/seed-1 runs/sst-2/seed-2 runs/sst-2/seed-3

The task is known by the folder's name (else data.task=sst-2), and scored by its own metric: Matthews' correlation,
accuracy, F1, or Pearson's and Spearman's. One seed says little: --seeds 3 gives mean and standard deviation.

all-MiniLM-L6-v2 (22 million parameters) on 6,000 sentences of movie reviews in SST-2's layout, labeled by the sign of
people's ratings: accuracy 84.5 ± 0.6 % on 1,000 others (training.epochs=1, 2 seeds, some five minutes each on two busy
cores).
"""

from regard.models.bert import BertForSequenceClassificationConfig
from regard.tasks.classification.corpus import GlueDataConfig
from regard.tasks.classification.data import prepare_glue
from regard.tasks.classification.task import ClassificationConfig
from regard.tasks.fine_tuning import encoder_with, training
from regard.tasks.recipe import Given, Recipe, Run


def settings(given: Given) -> Run:
    return Run(
        model=encoder_with(BertForSequenceClassificationConfig, given),
        task=ClassificationConfig(),
        data=GlueDataConfig(),
        training=training(given),
    )


RECIPE = Recipe("glue", settings, prepare_glue, "a text of yours", starts=True, judged=True)
