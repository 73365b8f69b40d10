"""A training step on sentence pairs of real lengths, beside transformers' MarianMTModel with random padded batches.

    .venv/bin/python benchmarks/bench_training.py [PAIRS.tsv.gz]

The same size (width 256, 3+3 layers, 8,000 words): ours in batches of 4,096 positions of like length, as its recipe has
them, theirs in batches of 64 pairs; what counts is real target tokens a second. Without a file, lengths are drawn to be
spread like those of image captions: a mean of 13, few over 25.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # as the `regard` command sets it

import numpy as np
import torch
import transformers
from transformers import MarianConfig, MarianMTModel

from regard import runtime
from regard.data.batches import PairBatch, bucketed, collate_padded, shuffled
from regard.data.pairs import BadLines, read_pairs
from regard.huggingface import marian
from regard.models.symbols import Symbols
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.translation import Translation
from regard.text.tokenizer import Tokenizer
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers
from side_by_side import report, speeds

VOCABULARY, ROWS, BUDGET, ROUNDS, STEPS = 8000, 64, 4096, 9, 2
END, PADDING = 0, VOCABULARY - 1
CONFIG = TransformerConfig(
    vocabulary=VOCABULARY,
    width=256,
    heads=4,
    layers=3,
    feed_forward=1024,
    positions="halves",
    symbols=Symbols(padding=PADDING, begin=PADDING, end=END),
)
SYMBOLS = (PADDING, END, PADDING)  # begin, end, padding


class Words:
    """What the task asks of a tokenizer while training: its symbols."""

    padding, begin, end = PADDING, PADDING, END


def pairs(path: str | None) -> list[tuple[np.ndarray, np.ndarray]]:
    chance = np.random.default_rng(0)
    if path:
        texts = list(read_pairs([Path(path)], on_error="skip", report=BadLines(), longest=100))[:40_000]
        tokenizer = Tokenizer.train((side for pair in texts for side in pair), VOCABULARY)
        sides = [tokenizer.encode_all([pair[side] for pair in texts]) for side in (0, 1)]
        return [(np.array(source), np.array(target)) for source, target in zip(*sides, strict=True)]
    lengths = np.clip(chance.lognormal(np.log(12.3), 0.33, 40_000).round(), 3, 60).astype(int)
    others = np.clip((lengths * chance.normal(1.0, 0.15, len(lengths))).round(), 3, 60).astype(int)
    return [
        (chance.integers(2, PADDING, one), chance.integers(2, PADDING, other))
        for one, other in zip(lengths, others, strict=True)
    ]


def main() -> None:
    transformers.logging.set_verbosity_error()
    runtime.prepare()
    torch.manual_seed(0)
    ids = pairs(sys.argv[1] if len(sys.argv) > 1 else None)
    source, target = (np.array([len(pair[side]) for pair in ids]) for side in (0, 1))
    ours = Transformer(CONFIG).train()
    optimizers = make_optimizers(ours, kind="adamw", weight_decay=0.01)
    task = Translation(Words())  # type: ignore[arg-type]

    def in_buckets() -> Iterator[PairBatch]:
        for batch in bucketed(source, target, budget=BUDGET, seed=0, epoch=0):
            yield collate_padded(ids, batch, *SYMBOLS)

    mine = in_buckets()

    def with_regard() -> float:
        tokens = 0
        for _ in range(STEPS):
            batch = next(mine)
            take_step(ours, task, optimizers, [batch], 1e-4, 1.0)
            tokens += batch.tokens
        return tokens

    theirs = MarianMTModel(MarianConfig(**marian.to_theirs(CONFIG))).train()
    their_optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-4)
    order = iter(shuffled(len(ids), 0, 0, 0))

    def with_transformers() -> float:
        tokens = 0
        for _ in range(STEPS):
            batch = collate_padded(ids, [next(order) for _ in range(ROWS)], *SYMBOLS)
            labels = batch.target_out.masked_fill(batch.target_out == PADDING, -100)
            loss = theirs(input_ids=batch.source, attention_mask=batch.source != PADDING, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
            their_optimizer.step()
            their_optimizer.zero_grad()
            tokens += batch.tokens
        return tokens

    found = speeds({"regard": with_regard, "transformers": with_transformers}, ROUNDS)
    report(
        "train a translator",
        found["regard"],
        "transformers MarianMTModel, random padded batches",
        found["transformers"],
        "real target tokens/s",
    )


if __name__ == "__main__":
    main()
