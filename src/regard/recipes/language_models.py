"""The language models before the Transformer: n-grams, Bengio's network, an RNN; small, on any text."""

from pathlib import Path

import torch
from torch import nn

from regard.data.text_corpus import TextDataConfig
from regard.models.base import CausalLMConfig
from regard.models.bengio import BengioConfig
from regard.models.ngram import NGram, NGramConfig
from regard.models.rnn_lm import RNNLMConfig
from regard.tasks.language_modeling.data import DEFAULT_DATA, EXAMPLE, LanguageModelingRun, prepare
from regard.tasks.language_modeling.task import LanguageModelingConfig, LanguageModelTraining
from regard.tasks.recipe import PreparedTask, Recipe, TrainingInputs
from regard.training.config import TrainingConfig


def _characters(model: CausalLMConfig, learning_rate: float) -> LanguageModelingRun:
    """The budget of `regard train shakespeare-char`: 2,000 steps of 12 windows of 64 characters."""
    return LanguageModelingRun(
        model=model,
        task=LanguageModelingConfig(),
        data=TextDataConfig(tokenizer="characters"),
        training=TrainingConfig(
            steps=2000,
            max_tokens=12 * 64,
            optimizer="muon",
            learning_rate=learning_rate,
            warmup=50,
            schedule="linear",
            weight_decay=0.0,
            evaluate_every=1000,
            checkpoint_every=1000,
        ),
    )


def ngram(inputs: TrainingInputs) -> LanguageModelingRun:
    return _characters(NGramConfig(context=64, order=6), 1e-3)


def bengio(inputs: TrainingInputs) -> LanguageModelingRun:
    return _characters(BengioConfig(context=64, window=8, width=32, hidden=256), 1e-2)


def rnn(inputs: TrainingInputs) -> LanguageModelingRun:
    return _characters(RNNLMConfig(context=64, width=256), 1e-2)


def prepare_by_counting(run: LanguageModelingRun, inputs: TrainingInputs, tokenizer_file: Path) -> PreparedTask:
    """Count the n-grams of the text to train on; nothing is left for the training loop."""
    prepared = prepare(run, inputs, tokenizer_file)
    assert isinstance(prepared.task, LanguageModelTraining)
    assert isinstance(prepared.model, NGramConfig)
    text = prepared.task.data.training
    fitted = NGram.fit(prepared.model, torch.from_numpy(text.tokens(0, len(text)).astype("int64")))

    def fill(model: nn.Module) -> str:
        model.load_state_dict(fitted.state_dict())
        entries = ", ".join(f"{count:,}" for count in fitted.config.entries)
        return f"counted {len(text):,} tokens: {entries} different n-grams of 1 to {fitted.config.order} tokens"

    return PreparedTask(prepared.task, fitted.config, prepared.notes, fill)


NGRAM = Recipe("ngram", ngram, prepare_by_counting, EXAMPLE, default_data=DEFAULT_DATA)
"""An n-gram model with interpolated Kneser-Ney smoothing, of characters: it counts, and is done.

    regard train ngram tinyshakespeare.txt -o runs/ngram
    regard train ngram novel.txt -o runs/trigrams model.order=3
    regard run runs/ngram "ROMEO:" --max-new-tokens 300

Three seconds of one core, start and scoring included. On the last tenth of Shakespeare, in windows of 64 characters:
validation loss 1.606 a character with six characters, which is less than the GPT of `shakespeare-char` reaches in 2,000
steps (1.627 to 1.641).
"""

BENGIO = Recipe("bengio", bengio, prepare, EXAMPLE, default_data=DEFAULT_DATA)
"""Bengio's neural language model of 2001, of characters: a feed-forward network on the last eight.

    regard train bengio tinyshakespeare.txt -o runs/bengio
    regard run runs/bengio "ROMEO:" --max-new-tokens 300

100,000 parameters, Muon. Validation loss on the last tenth of Shakespeare: 1.784 after 2,000 steps, 29 s of one core.
"""

RNN = Recipe("rnn-lm", rnn, prepare, EXAMPLE, default_data=DEFAULT_DATA)
"""A recurrent language model of characters, with a GRU; model.cell=lstm or elman.

    regard train rnn-lm tinyshakespeare.txt -o runs/rnn
    regard run runs/rnn "ROMEO:" --max-new-tokens 300

A GRU of width 256, 0.5 million parameters, Muon. Validation loss on the last tenth of Shakespeare: 1.645 after 2,000
steps, 120 s of one core; the GPT of the same budget (`shakespeare-char`) has 1.63 to 1.64 and takes 155 s.
"""
