"""A larger GPT that writes Shakespeare letter by letter: 6 layers of width 384 on windows of 256 characters.

    regard train shakespeare-char-large tinyshakespeare.txt -o runs/shakespeare-large

10.7 million parameters. A step of 16 windows takes about 3.4 s on two cores (benchmarks/bench_gpt_training.py has this
size), so the 500 steps take about half an hour. No full run has been measured yet: there is no number to expect.
"""

from regard.data.text_corpus import TextDataConfig
from regard.models.gpt import GPTConfig
from regard.tasks.language_modeling.data import prepare
from regard.tasks.language_modeling.task import LanguageModelingConfig
from regard.tasks.recipe import Given, Recipe, Run
from regard.training.loop import TrainingConfig


def settings(given: Given) -> Run:
    return Run(
        model=GPTConfig(context=256, width=384, heads=6, layers=6, dropout=0.2),
        task=LanguageModelingConfig(),
        data=TextDataConfig(tokenizer="characters"),
        training=TrainingConfig(
            steps=500,
            max_tokens=16 * 256,
            optimizer="muon",
            learning_rate=6e-3,
            warmup=50,
            schedule="linear",
            evaluate_every=250,
            checkpoint_every=250,
        ),
    )


RECIPE = Recipe("shakespeare-char-large", settings, prepare, example="ROMEO:")
