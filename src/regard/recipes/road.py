"""The road to attention: five translators of one size on one budget, so that only what is between them differs.

On the built-in world they have about a million parameters each and read passages of up to four sentences; on the
user's own pairs about seven and a half million.
"""

from collections.abc import Sequence
from pathlib import Path

from regard.data.pairs import DataConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.symbols import Writer
from regard.models.transformer import TransformerConfig
from regard.recipes.parallel_text import prepare
from regard.recipes.run import Recipe, Run
from regard.tasks.translation import TranslationConfig
from regard.training.loop import TrainingConfig

# rung -> (the model on the built-in world, the model on the user's own pairs): within a tenth in parameters
RUNGS: dict[str, tuple[Writer, Writer]] = {
    "rnn": (
        RNNConfig(vocabulary=3000, width=192, bridge="last_state", dropout=0.0),
        RNNConfig(vocabulary=8000, width=528, bridge="last_state"),
    ),
    "rnn-context": (
        RNNConfig(vocabulary=3000, width=168, bridge="fixed_context", dropout=0.0),
        RNNConfig(vocabulary=8000, width=480, bridge="fixed_context"),
    ),
    "rnn-attention": (
        RNNConfig(vocabulary=3000, width=160, bridge="attention", dropout=0.0),
        RNNConfig(vocabulary=8000, width=456, bridge="attention"),
    ),
    "conv": (
        ConvConfig(vocabulary=3000, width=128, layers=3, decoder_layers=2, dropout=0.0),
        ConvConfig(vocabulary=8000, width=288, layers=6, decoder_layers=3),
    ),
    "transformer": (
        TransformerConfig(
            vocabulary=3000,
            width=128,
            heads=8,
            layers=3,
            decoder_layers=1,
            feed_forward=256,
            dropout=0.0,
            norm="pre",
            quiet_start=True,
        ),
        TransformerConfig(vocabulary=8000, width=256, heads=4, layers=3, feed_forward=1024, quiet_start=True),
    ),
}


def rung(name: str) -> Recipe:
    """The recipe of a rung; `regard train` calls it `<rung>-translator`."""

    def settings(paths: Sequence[Path]) -> Run:
        on_world, on_pairs = RUNGS[name]
        return _on_pairs(on_pairs) if paths else _on_world(on_world)

    return Recipe(f"{name}-translator", settings, prepare)


def _on_world(model: Writer) -> Run:
    return Run(
        model=model,
        task=TranslationConfig(label_smoothing=0.0),
        data=DataConfig(sentences=100_000, joined=4, heldout=1000, whole_words=2650),
        training=TrainingConfig(
            steps=1000,
            batch_tokens=4096,
            optimizer="muon",
            learning_rate=6e-3,
            warmup=50,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )


def _on_pairs(model: Writer) -> Run:
    return Run(
        model=model,
        task=TranslationConfig(label_smoothing=0.1),
        data=DataConfig(),
        training=TrainingConfig(
            steps=1500,
            batch_tokens=4096,
            optimizer="muon",
            learning_rate=4e-3,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )
