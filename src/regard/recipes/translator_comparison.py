"""Five translators of the same size on the same budget: data, tokens, steps and seeds. `regard compare` runs them all.

On synthetic passages of up to four sentences they have about a million parameters each; on the user's own pairs about
four million.
"""

from dataclasses import dataclass

from regard.models.base import Seq2SeqConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.recipes import translator
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.tasks.translation.data import (
    DEFAULT_DATA,
    EXAMPLE,
    OWN_EXAMPLE,
    TranslationDataConfig,
    TranslationRun,
    prepare,
)
from regard.tasks.translation.task import TranslationConfig
from regard.training.config import TrainingConfig
from regard.training.optimizer import Kind

TranslatorRecipe = Recipe[TranslationDataConfig, Seq2SeqConfig, TranslationConfig]


@dataclass(frozen=True)
class Spec:
    """One of the five: its models, within a tenth of the others' parameters, its optimizer and learning rates.

    Optimizer and `synthetic_rate` were found by a few short runs, not equally many for each; `pairs_rate` was not tuned
    (docs/decisions/011-translator-comparison.md). All else is the same for all.
    """

    on_synthetic: Seq2SeqConfig
    on_pairs: Seq2SeqConfig
    optimizer: Kind
    synthetic_rate: float
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
        translator.on_synthetic().model,  # the demo's
        TransformerConfig(vocab_size=4000, width=192, heads=4, layers=3, feed_forward=768, zero_init_residual=True),
        "muon",
        1.2e-2,
        6e-3,
    ),
}


def recipe_of(name: str) -> TranslatorRecipe:
    """The recipe of one of SPECS; `regard train` calls it NAME-translator."""

    def settings(inputs: TrainingInputs) -> TranslationRun:
        return _on_pairs(SPECS[name]) if inputs.paths else _on_synthetic(SPECS[name])

    return Recipe(f"{name}-translator", settings, prepare, EXAMPLE, default_data=DEFAULT_DATA, own_example=OWN_EXAMPLE)


def _on_synthetic(spec: Spec) -> TranslationRun:
    return TranslationRun(
        model=spec.on_synthetic,
        task=TranslationConfig(label_smoothing=0.0),
        data=TranslationDataConfig(num_pairs=100_000, max_sentences=4, validation=1000, whole_word_tokens=2650),
        training=TrainingConfig(
            steps=800,
            max_tokens=4096,
            optimizer=spec.optimizer,
            learning_rate=spec.synthetic_rate,
            warmup=50,
            schedule="linear",
            evaluate_every=400,
            checkpoint_every=400,
        ),
    )


def _on_pairs(spec: Spec) -> TranslationRun:
    return TranslationRun(
        model=spec.on_pairs,
        task=TranslationConfig(label_smoothing=0.1),
        data=TranslationDataConfig(),
        training=TrainingConfig(
            steps=3000,
            max_tokens=4096,
            optimizer=spec.optimizer,
            learning_rate=spec.pairs_rate,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )


RNN = recipe_of("rnn")
"""A recurrent translator whose decoder gets the encoder's last state and nothing more: s₀ = h_T.

    regard train rnn-translator -o runs/rnn
    regard train rnn-translator pairs.tsv.gz -o runs/mine

On synthetic passages of one to four sentences: 1.0 million parameters; 800 steps, about two and a half minutes on two
cores (10,600 target tokens a second). BLEU 10.5 ± 0.7 and 1.8 % exactly right on 1,000 held-out passages, three seeds:
38 for passages of up to five words, 6 for those of more than thirty. The fall with length is the bottleneck that
attention removes; that it starts at 38 shows that the model is undertrained, too. On your pairs: about four million
parameters, 3,000 steps. `regard compare` compares it with the others.
"""

RNN_CONTEXT = recipe_of("rnn-context")
"""A recurrent translator with a fixed context: the encoder's last state is an input of every decoder step.

    regard train rnn-context-translator -o runs/rnn-context
    regard train rnn-context-translator pairs.tsv.gz -o runs/mine

On synthetic passages of one to four sentences: 1.0 million parameters; 800 steps, about two and a half minutes on two
cores (10,800 target tokens a second). BLEU 22.7 ± 1.1 and 13.3 % exactly right on 1,000 held-out passages, three seeds:
85 for passages of up to five words, 11 for those of more than thirty. On your pairs: about four million parameters,
3,000 steps. `regard compare` compares it with the others.
"""

RNN_ATTENTION = recipe_of("rnn-attention")
"""A recurrent translator with attention: a context vector for every decoder step (Bahdanau 2015).

    regard train rnn-attention-translator -o runs/rnn-attention
    regard train rnn-attention-translator pairs.tsv.gz -o runs/mine

On synthetic passages of one to four sentences: 1.0 million parameters; 800 steps, three to four minutes on two cores
(7,600 target tokens a second). BLEU 95.6 ± 0.3, 78.1 % exactly right and alignment error rate 0.170 on 1,000 held-out
passages, three seeds: 98 for passages of up to five words, 92 for those of more than thirty. On your pairs: about four
million parameters, 3,000 steps. `regard compare` compares it with the others.
"""

CONV = recipe_of("conv")
"""A convolutional translator: gated convolutions, and attention in every decoder layer (Gehring 2017).

    regard train conv-translator -o runs/conv
    regard train conv-translator pairs.tsv.gz -o runs/mine

On synthetic passages of one to four sentences: 1.0 million parameters; 800 steps, about two minutes on two cores
(12,700 target tokens a second). BLEU 94.2 ± 0.7, 73.9 % exactly right and alignment error rate 0.077 on 1,000 held-out
passages, three seeds. On your pairs: about four million parameters, 3,000 steps. `regard compare` compares it with the
others.
"""

TRANSFORMER = recipe_of("transformer")
"""The Transformer on the same budget as the recurrent and convolutional translators.

    regard train transformer-translator -o runs/transformer
    regard train transformer-translator pairs.tsv.gz -o runs/mine

On synthetic passages of one to four sentences: 1.0 million parameters; 800 steps, about two and a half minutes on two
cores (9,700 target tokens a second). BLEU 96.6 ± 0.6, 85.3 % exactly right and alignment error rate 0.054 on 1,000
held-out passages, three seeds. On your pairs: about four million parameters, 3,000 steps. `regard compare` compares it
with the others.
"""
