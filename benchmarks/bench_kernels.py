"""Our own kernels beside torch's operations, on tensors of the sizes that a step meets.

    .venv/bin/python benchmarks/bench_kernels.py

Matrices are taken in turn out of so many that none is still in the processor's cache.
"""

import os
from collections.abc import Callable
from itertools import cycle

os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it

import torch
import torch.nn.functional as F

from regard import kernels, runtime
from side_by_side import report, speeds

ROUNDS, TIMES = 7, 20


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], work: float, unit: str) -> None:
    def way(run: Callable[[], object]) -> Callable[[], float]:
        def several() -> float:
            for _ in range(TIMES):
                run()
            return TIMES * work / 1e9

        return several

    found = speeds({"ours": way(ours), "torch": way(theirs)}, ROUNDS)
    report(name, found["ours"], "torch", found["torch"], unit)


def products() -> None:
    rows, width = 2304, 768
    matrices = [torch.randn(rows, width) for _ in range(16)]
    small, given = cycle([kernels.rounded(matrix) for matrix in matrices]), cycle(matrices)
    for hidden in (16, 64, 256):
        x = torch.randn(hidden, width)
        work = 2.0 * hidden * rows * width
        torchs = lambda x=x: F.linear(x, next(given))  # noqa: E731
        compare(f"{hidden} words, float32", lambda x=x: kernels.linear(x, next(given)), torchs, work, "GFLOP/s")
        if kernels.int8_here():
            ours = lambda x=x: kernels.linear_int8(x, next(small))  # noqa: E731
            compare(f"{hidden} words, int8 beside float32", ours, torchs, work, "GFLOP/s")


def texts() -> None:
    """64 texts of 26 words, side by side for torch, behind each other for ours."""
    count, length, heads, width = 64, 26, 8, 64
    query, key, value = (torch.randn(count, heads, length, width) for _ in range(3))
    flat = [part.transpose(0, 1).reshape(1, heads, count * length, width) for part in (query, key, value)]
    bounds = torch.arange(count + 1) * length
    compare(
        "attention of whole texts",
        lambda: kernels.attend_blocks(*flat, bounds, length, 0.125),
        lambda: F.scaled_dot_product_attention(query, key, value),
        4.0 * query.numel() * length,
        "GFLOP/s",
    )


def screening() -> None:
    table, hidden = torch.randn(32_000, 512) / 512**0.5, F.layer_norm(torch.randn(64, 512), (512,))
    near = kernels.rounded(table)
    work = 2.0 * len(hidden) * table.numel()
    compare(
        "the likeliest of 32,000 words",
        lambda: kernels.likeliest(hidden, table, near),
        lambda: F.linear(hidden, table).argmax(-1),
        work,
        "GFLOP/s of all logits",
    )


def steps() -> None:
    query, key, value = (torch.randn(64, size, 8, 64).transpose(1, 2) for size in (1, 31, 31))
    attend = lambda: kernels.attend(query, key, value, None, 0.125)  # noqa: E731
    compare(
        "attention of a step",
        attend,
        lambda: F.scaled_dot_product_attention(query, key, value),
        8 * key.numel(),
        "GB/s",
    )
    logits = torch.randn(64, 32_000)
    size = 4.0 * logits.numel()
    compare("totals of logits", lambda: kernels.log_totals(logits), lambda: logits.logsumexp(-1), size, "GB/s")
    compare("the 8 best of logits", lambda: kernels.top(logits, 8), lambda: logits.topk(8), size, "GB/s")


def training() -> None:
    hidden = torch.randn(4096, 1536)
    size = 8.0 * hidden.numel()
    for name, plain in (("gelu", F.gelu), ("swish", F.silu)):
        ours = lambda name=name: kernels.activate(hidden, name)  # noqa: E731
        compare(name, ours, lambda plain=plain: plain(hidden), size, "GB/s")
    compare("dropout", lambda: kernels.dropout(hidden, 0.1, (1, 2)), lambda: F.dropout(hidden, 0.1), size, "GB/s")


if __name__ == "__main__":
    runtime.prepare()
    if not kernels.here():
        raise SystemExit(f"no kernels here: {kernels.why_not()}")
    with torch.inference_mode():
        products()
        texts()
        steps()
        if kernels.int8_here():
            screening()
        training()
