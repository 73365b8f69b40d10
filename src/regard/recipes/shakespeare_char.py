"""Two GPTs that write Shakespeare character by character: nanoGPT's recipe for a CPU, and a larger model."""

from regard.data.text_corpus import TextDataConfig
from regard.models.base import CausalLMConfig
from regard.models.gpt import GPTConfig
from regard.tasks.language_modeling.data import LanguageModelingRun, prepare
from regard.tasks.language_modeling.task import LanguageModelingConfig
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.training.config import TrainingConfig


def small(inputs: TrainingInputs) -> LanguageModelingRun:
    training = TrainingConfig(
        steps=2000,
        max_tokens=12 * 64,
        optimizer="muon",
        learning_rate=1e-2,
        warmup=50,
        schedule="linear",
        weight_decay=0.0,
        evaluate_every=1000,
        checkpoint_every=1000,
    )
    return _characters(GPTConfig(context=64, width=128, heads=4, layers=4, dropout=0.0), training)


def large(inputs: TrainingInputs) -> LanguageModelingRun:
    training = TrainingConfig(
        steps=500,
        max_tokens=16 * 256,
        optimizer="muon",
        learning_rate=6e-3,
        warmup=50,
        schedule="linear",
        evaluate_every=250,
        checkpoint_every=250,
    )
    return _characters(GPTConfig(context=256, width=384, heads=6, layers=6, dropout=0.2), training)


def _characters(model: CausalLMConfig, training: TrainingConfig) -> LanguageModelingRun:
    data = TextDataConfig(tokenizer="characters")
    return LanguageModelingRun(model=model, task=LanguageModelingConfig(), data=data, training=training)


SMALL = Recipe("shakespeare-char", small, prepare, example="ROMEO:")
"""A small GPT that writes Shakespeare character by character: nanoGPT's recipe for a CPU, with a better optimizer.

    regard train shakespeare-char tinyshakespeare.txt -o runs/shakespeare
    regard run runs/shakespeare "ROMEO:" --max-new-tokens 500

4 layers of width 128 on windows of 64 characters, 2,000 steps of 12 windows: the budget of nanoGPT's recipe for a CPU,
whose loss on the last tenth of the text is 1.92.

0.8 million parameters, Muon. Loss over the whole last tenth (111,540 characters): 1.641 after 2,000 steps, 119 s on
two cores, start and four evaluations included; 1.825 after half of that. On an older machine and before some kernels it
was 1.637 in 186 s, and 1.885 after 700 steps and 75 s, where nanoGPT's recipe took about 200 s to its 1.92. The
learning rate was the first one tried; with twice that rate the loss was 1.862 after 1,000 steps, against 1.790.
"""

LARGE = Recipe("shakespeare-char-large", large, prepare, example="ROMEO:")
"""A larger GPT that writes Shakespeare character by character: 6 layers of width 384 on windows of 256 characters.

    regard train shakespeare-char-large tinyshakespeare.txt -o runs/shakespeare-large

10.7 million parameters. A step of 16 windows takes about 3.4 s on two cores (benchmarks/bench_gpt_training.py has this
size), so the 500 steps take about half an hour. No full run has been measured yet: there is no number to expect.
"""
