"""Length-bucketed batches beside random padded ones, in real target tokens a second of training.

    .venv/bin/python benchmarks/bench_batching.py

The same model, sentences and about as many positions a batch; the two ways take turns, and medians are compared.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from regard import runtime
from regard.data.batches import PairBatch, bucket_by_length, collate_padded, shuffle_indices
from regard.models.transformer import Transformer, TransformerConfig
from regard.synthetic.translation.sentences import sentences
from regard.tasks.translation.task import TranslationTraining
from regard.tokenizers.bpe import BPETokenizer
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers

MAX_TOKENS, ROUNDS, STEPS = 4096, 7, 6


def main() -> None:
    runtime.prepare()
    world = [(pair.source, pair.target) for pair in sentences(20_000)]
    tokenizer = BPETokenizer.train((side for pair in world for side in pair), 1500)
    ids = [
        (np.array(source), np.array(target))
        for source, target in zip(
            *(tokenizer.encode_batch(list(side)) for side in zip(*world, strict=True)), strict=True
        )
    ]
    source, target = (np.array([len(pair[side]) for pair in ids]) for side in (0, 1))
    special_ids = (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)

    def in_buckets() -> Iterator[PairBatch]:
        for batch in bucket_by_length(source, target, max_tokens=MAX_TOKENS, seed=0, epoch=0):
            yield collate_padded(ids, batch, *special_ids)

    def at_random() -> Iterator[PairBatch]:
        order, height = shuffle_indices(len(ids), 0, 0, 0), MAX_TOKENS // 40
        for start in range(0, len(order), height):
            yield collate_padded(ids, order[start : start + height], *special_ids)

    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, width=128, heads=4, layers=2, feed_forward=512, dropout=0.0
    )
    speeds = measure(config, TranslationTraining(tokenizer), {"bucketed": in_buckets(), "random": at_random()})
    ours, theirs = speeds["bucketed"], speeds["random"]
    print(
        json.dumps(
            {
                "bench": "batching",
                "ours": round(ours),
                "peer": "random rows",
                "theirs": round(theirs),
                "ratio": round(ours / theirs, 2),
                "unit": "real target tokens/s",
            }
        )
    )


def measure(
    config: TransformerConfig, task: TranslationTraining, ways: dict[str, Iterator[PairBatch]]
) -> dict[str, float]:
    """Each way's median speed; they take turns, so that a slow minute slows all of them."""
    steps: dict[str, Callable[[], int]] = {}
    for name, batches in ways.items():
        model = Transformer(config).train()
        optimizers = make_optimizers(model, kind="adamw", weight_decay=0.01)

        def step(model: Transformer = model, optimizers=optimizers, batches: Iterator[PairBatch] = batches) -> int:
            batch = next(batches)
            take_step(model, task, optimizers, [batch], 1e-3, 1.0)
            return batch.tokens

        steps[name] = step
        step()
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            begun = time.perf_counter()
            tokens = sum(step() for _ in range(STEPS))
            speeds[name].append(tokens / (time.perf_counter() - begun))
    return {name: statistics.median(values) for name, values in speeds.items()}


if __name__ == "__main__":
    main()
