"""The road to attention: five translators of one size on one budget: the same data, tokens, steps and seeds.

On the built-in world they have about a million parameters each and read passages of up to four sentences; on the
user's own pairs about four million.
"""

from dataclasses import dataclass

from regard.config import Config
from regard.data.readers.pairs import DataConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.recipes import translator
from regard.tasks.recipe import Given, Recipe, Run
from regard.tasks.translation.data import EXAMPLE, OWN_EXAMPLE, WITHOUT_DATA, prepare
from regard.tasks.translation.task import TranslationConfig
from regard.training.loop import TrainingConfig
from regard.training.optimizer import Kind


@dataclass(frozen=True)
class Spec:
    """One of the five: its models, within a tenth of the others' in parameters, and what it learns with.

    Optimizer and `world_rate` were found by a few short runs, not equally many for each; `pairs_rate` was not tried out
    (docs/decisions/011-translator-comparison.md). All else is the same for all.
    """

    on_world: Config
    on_pairs: Config
    optimizer: Kind
    world_rate: float
    pairs_rate: float


SPECS = {
    "rnn": Spec(
        RNNConfig(vocab_size=3000, width=192, bridge="last_state", dropout=0.0),
        RNNConfig(vocab_size=4000, width=424, bridge="last_state"),
        "adamw",
        8e-3,
        3e-3,
    ),
    "rnn-context": Spec(
        RNNConfig(vocab_size=3000, width=168, bridge="fixed_context", dropout=0.0),
        RNNConfig(vocab_size=4000, width=376, bridge="fixed_context"),
        "adamw",
        8e-3,
        3e-3,
    ),
    "rnn-attention": Spec(
        RNNConfig(vocab_size=3000, width=160, bridge="attention", dropout=0.0),
        RNNConfig(vocab_size=4000, width=360, bridge="attention"),
        "adamw",
        8e-3,
        3e-3,
    ),
    "conv": Spec(
        ConvConfig(vocab_size=3000, width=128, layers=3, decoder_layers=2, dropout=0.0),
        ConvConfig(vocab_size=4000, width=224, layers=6, decoder_layers=3),
        "adamw",
        8e-3,
        3e-3,
    ),
    "transformer": Spec(
        translator.on_world().model,  # the demo's
        TransformerConfig(vocab_size=4000, width=192, heads=4, layers=3, feed_forward=768, zero_init_residual=True),
        "muon",
        1.2e-2,
        6e-3,
    ),
}


def rung(name: str) -> Recipe:
    """The recipe of a rung; `regard train` calls it `<rung>-translator`."""

    def settings(given: Given) -> Run:
        return _on_pairs(SPECS[name]) if given.paths else _on_world(SPECS[name])

    return Recipe(f"{name}-translator", settings, prepare, EXAMPLE, without_data=WITHOUT_DATA, own_example=OWN_EXAMPLE)


def _on_world(rung: Spec) -> Run:
    return Run(
        model=rung.on_world,
        task=TranslationConfig(label_smoothing=0.0),
        data=DataConfig(sentences=100_000, joined=4, validation=1000, whole_words=2650),
        training=TrainingConfig(
            steps=800,
            max_tokens=4096,
            optimizer=rung.optimizer,
            learning_rate=rung.world_rate,
            warmup=50,
            schedule="linear",
            evaluate_every=400,
            checkpoint_every=400,
        ),
    )


def _on_pairs(rung: Spec) -> Run:
    return Run(
        model=rung.on_pairs,
        task=TranslationConfig(label_smoothing=0.1),
        data=DataConfig(),
        training=TrainingConfig(
            steps=3000,
            max_tokens=4096,
            optimizer=rung.optimizer,
            learning_rate=rung.pairs_rate,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )
