"""A summarizer on your own pairs of document and summary: a small T5, scored by ROUGE.

    regard train summarizer articles.jsonl -o runs/summaries
    regard evaluate runs/summaries
    regard run runs/summaries "a document of yours, on one line" --num-beams 4

Pairs are a .tsv file, document<tab>summary, a .jsonl file of {"source": document, "target": summary}, or two text files
that correspond line by line: a document is one line, of at most 2,000 words (data.max_length). 9.6 million parameters
(width 256, 3 + 3 layers, 16,000 tokens); training stops after sixty minutes and the learning-rate schedule follows the
clock. `regard evaluate` reports ROUGE-1, ROUGE-2 and ROUGE-L (F1, stemmed) beside the scores of a translator. No full
run has been measured yet: there is no number to expect.
"""

from regard.models.t5 import T5Config
from regard.tasks.recipe import Recipe, TrainingInputs
from regard.tasks.translation.data import TranslationDataConfig, TranslationRun, prepare
from regard.tasks.translation.task import TranslationConfig
from regard.training.config import TrainingConfig


def settings(inputs: TrainingInputs) -> TranslationRun:
    return TranslationRun(
        model=T5Config(vocab_size=16_000, width=256, heads=4, layers=3, feed_forward=1024),
        # A summary is shorter than its document.
        task=TranslationConfig(label_smoothing=0.1, metrics=("rouge",), max_length_ratio=0.5),
        data=TranslationDataConfig(max_length=2000, validation=1000),
        training=TrainingConfig(
            steps=10_000,
            minutes=60,  # the schedule follows the clock: a longer run is training.minutes=240
            max_tokens=8192,  # four of the longest documents
            optimizer="muon",
            learning_rate=4e-3,
            warmup=100,
            schedule="linear",
            evaluate_every=500,
            evaluate_examples=200,
            checkpoint_every=500,
        ),
    )


RECIPE = Recipe("summarizer", settings, prepare, "a document of yours")
