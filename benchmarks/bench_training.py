"""A training step on sentence pairs of real lengths, beside transformers' MarianMTModel with random padded batches.

    .venv/bin/python benchmarks/bench_training.py [PAIRS.tsv.gz]

The same size (width 256, 3+3 layers, 8,000 words): ours in batches of 4,096 positions of like length, as its recipe has
them, theirs, in a process of its own, in batches of 64 pairs; what counts is real target tokens a second. Without a
file, lengths are drawn to be spread like those of image captions: a mean of 13, few over 25.
"""

import os
import sys
from functools import partial
from itertools import islice
from pathlib import Path

if __name__ == "__main__":  # not in the process of the peer
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # as the `regard` command sets it

import numpy as np
import torch
import transformers
from transformers import MarianConfig, MarianMTModel

from regard import runtime
from regard.data.batches import bucket_by_length, collate_padded, shuffle_indices
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.pairs import read_pairs
from regard.huggingface import marian
from regard.models.base import SpecialIds
from regard.models.transformer import Transformer, TransformerConfig
from regard.tasks.translation.task import TranslationTraining
from regard.tokenizers.bpe import BPETokenizer
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers
from side_by_side import Way, apart, report, speeds

VOCABULARY, ROWS, BUDGET, ROUNDS, STEPS = 8000, 64, 4096, 9, 2
END, PADDING = 0, VOCABULARY - 1
CONFIG = TransformerConfig(
    vocab_size=VOCABULARY,
    width=256,
    heads=4,
    layers=3,
    feed_forward=1024,
    positions="halves",
    special_ids=SpecialIds(pad_id=PADDING, bos_id=PADDING, eos_id=END),
)
SYMBOLS = (PADDING, END, PADDING)  # begin, end, padding


class SpecialTokens:
    """What the task asks of a tokenizer while training: its special tokens."""

    pad_id, bos_id, eos_id = PADDING, PADDING, END


def pairs(path: str | None) -> list[tuple[np.ndarray, np.ndarray]]:
    chance = np.random.default_rng(0)
    if path:
        texts = list(read_pairs([Path(path)], on_error="skip", report=BadRows(), longest=100))[:40_000]
        tokenizer = BPETokenizer.train((side for pair in texts for side in pair), VOCABULARY)
        sides = [tokenizer.encode_batch([pair[side] for pair in texts]) for side in (0, 1)]
        return [(np.array(source), np.array(target)) for source, target in zip(*sides, strict=True)]
    lengths = np.clip(chance.lognormal(np.log(12.3), 0.33, 40_000).round(), 3, 60).astype(int)
    others = np.clip((lengths * chance.normal(1.0, 0.15, len(lengths))).round(), 3, 60).astype(int)
    return [
        (chance.integers(2, PADDING, one), chance.integers(2, PADDING, other))
        for one, other in zip(lengths, others, strict=True)
    ]


def with_regard(path: str | None) -> Way:
    runtime.prepare()
    torch.manual_seed(0)
    ids = pairs(path)
    source, target = (np.array([len(pair[side]) for pair in ids]) for side in (0, 1))
    model = Transformer(CONFIG).train()
    optimizers = make_optimizers(model, kind="adamw", weight_decay=0.01)
    task = TranslationTraining(SpecialTokens())  # type: ignore[arg-type]
    batches = (
        collate_padded(ids, rows, *SYMBOLS)
        for rows in bucket_by_length(source, target, max_tokens=BUDGET, seed=0, epoch=0)
    )

    def way() -> float:
        tokens = 0
        for batch in islice(batches, STEPS):
            take_step(model, task, optimizers, [batch], 1e-4, 1.0)
            tokens += batch.tokens
        return tokens

    return way


def with_transformers(path: str | None) -> Way:
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    ids = pairs(path)
    model = MarianMTModel(MarianConfig(**marian.to_theirs(CONFIG))).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    order = iter(shuffle_indices(len(ids), 0, 0, 0))

    def way() -> float:
        tokens = 0
        for _ in range(STEPS):
            batch = collate_padded(ids, [next(order) for _ in range(ROWS)], *SYMBOLS)
            labels = batch.target_out.masked_fill(batch.target_out == PADDING, -100)
            loss = model(input_ids=batch.source, attention_mask=batch.source != PADDING, labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            tokens += batch.tokens
        return tokens

    return way


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else None
    peer = "transformers MarianMTModel, random padded batches"
    found = speeds({"regard": with_regard(path), peer: apart(partial(with_transformers, path))}, ROUNDS)
    lengths = "lengths of a file" if path else "lengths as of captions"
    report(f"train a translator, {lengths}", found["regard"], peer, found[peer], "real target tokens/s")


if __name__ == "__main__":
    main()
