"""A GPT on any text of yours; without text, on the Python documentation of this machine.

    regard train gpt novel.txt -o runs/novel
    regard train gpt "books/*.txt" corpus.jsonl.zst -o runs/books model.layers=12 training.steps=20000
    regard train gpt novel.txt --from path/to/gpt2 -o runs/novel
    regard run runs/novel "Once upon a time" --num-samples 10

4.2 million parameters (4 layers of width 256, windows of 128 tokens, 4,096 tokens of BPE); training stops after six
minutes and the learning-rate schedule follows the clock; about 3,100 tokens a second on two cores, 58 % of what a large
matrix product reaches. On the Python documentation (556,000 tokens to train on): 531 steps, held-out loss 4.445 a
token, 1.840 bits a byte. Its sentences read like documentation and mean little. More time: training.minutes=60
training.steps=20000.
"""

from regard.data.text_corpus import TextDataConfig
from regard.models.gpt import GPTConfig
from regard.tasks.language_modeling.data import (
    DEFAULT_DATA,
    EXAMPLE,
    LanguageModelingRun,
    prepare,
    pretrained_config,
)
from regard.tasks.language_modeling.task import LanguageModelingConfig
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.training.config import TrainingConfig


def settings(inputs: TrainingInputs) -> LanguageModelingRun:
    if inputs.pretrained:
        return _from_pretrained(inputs)
    return LanguageModelingRun(
        model=GPTConfig(vocab_size=4096, context=128, width=256, heads=4, layers=4, dropout=0.0),
        task=LanguageModelingConfig(),
        data=TextDataConfig(),
        training=TrainingConfig(
            steps=2000,
            minutes=6,  # the schedule follows the clock: a longer run is training.minutes=60
            max_tokens=2048,
            optimizer="muon",
            learning_rate=8e-3,
            warmup=50,
            schedule="linear",
            evaluate_every=500,
            checkpoint_every=500,
        ),
    )


def _from_pretrained(inputs: TrainingInputs) -> LanguageModelingRun:
    """A low learning rate: what the model knows should change slowly."""
    return LanguageModelingRun(
        model=pretrained_config(inputs),
        task=LanguageModelingConfig(),
        data=TextDataConfig(),
        training=TrainingConfig(
            steps=500,
            max_tokens=2048,
            learning_rate=1e-4,
            warmup=20,
            schedule="linear",
            evaluate_every=100,
            checkpoint_every=100,
        ),
    )


RECIPE = Recipe("gpt", settings, prepare, EXAMPLE, default_data=DEFAULT_DATA, accepts_pretrained=True)
