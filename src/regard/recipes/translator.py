"""A Transformer that translates: on the built-in English-Spanish world, or on your own sentence pairs."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.pairs import DataConfig
from regard.models.transformer import TransformerConfig
from regard.recipes.parallel_text import prepare
from regard.recipes.run import Recipe, Run
from regard.tasks.translation import TranslationConfig
from regard.training.loop import TrainingConfig


def settings(paths: Sequence[Path]) -> Run:
    return on_pairs() if paths else on_world()


def on_world() -> Run:
    """The demo's run."""
    return Run(
        model=TransformerConfig(
            vocabulary=1500, width=128, heads=4, layers=2, feed_forward=512, norm="pre", dropout=0.1
        ),
        task=TranslationConfig(label_smoothing=0.1),
        data=DataConfig(sentences=150_000, heldout=1000),
        training=TrainingConfig(
            steps=2000,
            batch_tokens=4096,
            learning_rate=3e-3,
            warmup=100,
            schedule="linear",
            evaluate_every=200,
            checkpoint_every=200,
        ),
    )


def on_pairs() -> Run:
    """A corpus of about a hundred thousand pairs on a laptop."""
    return Run(
        model=TransformerConfig(
            vocabulary=8000, width=256, heads=4, layers=3, feed_forward=1024, norm="pre", dropout=0.1
        ),
        task=TranslationConfig(label_smoothing=0.1),
        data=DataConfig(),
        training=TrainingConfig(
            steps=6000,
            batch_tokens=6144,
            learning_rate=2e-3,
            warmup=400,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )


RECIPE = Recipe("translator", settings, prepare)
