"""The C form of each op beside torch's, on tensors of the sizes of a decoding step.

    .venv/bin/python benchmarks/bench_ops.py

Matrices are taken in turn from so many that none is still in the processor's cache.
"""

import os
from collections.abc import Callable
from itertools import cycle

os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it

import torch
import torch.nn.functional as F

from regard import ops, runtime
from regard.ops.activation import activate
from regard.ops.attention import scaled_dot_product_attention, varlen_attention
from regard.ops.dropout import dropout
from regard.ops.linear import linear
from regard.ops.quantized import int8_is_supported, linear_int8, quantize_rows
from regard.ops.shortlist import ArgmaxShortlist
from regard.ops.topk import logsumexp, topk
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
    small, given = cycle([quantize_rows(matrix) for matrix in matrices]), cycle(matrices)
    for batch in (16, 64, 256):
        x = torch.randn(batch, width)
        work = 2.0 * batch * rows * width
        torchs = lambda x=x: F.linear(x, next(given))  # noqa: E731
        compare(f"{batch} rows, float32", lambda x=x: linear(x, next(given)), torchs, work, "GFLOP/s")
        if int8_is_supported():
            ours = lambda x=x: linear_int8(x, next(small))  # noqa: E731
            compare(f"{batch} rows, int8 beside float32", ours, torchs, work, "GFLOP/s")


def unpadded() -> None:
    """64 sequences of 26 positions, padded for torch, unpadded for ours."""
    count, length, heads, width = 64, 26, 8, 64
    query, key, value = (torch.randn(count, heads, length, width) for _ in range(3))
    flat = [part.transpose(0, 1).reshape(1, heads, count * length, width) for part in (query, key, value)]
    cu_seqlens = torch.arange(count + 1) * length
    compare(
        "varlen attention",
        lambda: varlen_attention(*flat, cu_seqlens, length, scale=0.125),
        lambda: F.scaled_dot_product_attention(query, key, value),
        4.0 * query.numel() * length,
        "GFLOP/s",
    )


def shortlist() -> None:
    weight, hidden = torch.randn(32_000, 512) / 512**0.5, F.layer_norm(torch.randn(64, 512), (512,))
    argmax_shortlist = ArgmaxShortlist(weight)
    work = 2.0 * len(hidden) * weight.numel()
    compare(
        "argmax of 32,000 logits",
        lambda: argmax_shortlist.argmax(hidden),
        lambda: F.linear(hidden, weight).argmax(-1),
        work,
        "GFLOP/s of all logits",
    )


def steps() -> None:
    query, key, value = (torch.randn(64, size, 8, 64).transpose(1, 2) for size in (1, 31, 31))
    attend = lambda: scaled_dot_product_attention(query, key, value, scale=0.125)  # noqa: E731
    compare(
        "attention of a decoding step",
        attend,
        lambda: F.scaled_dot_product_attention(query, key, value),
        8 * key.numel(),
        "GB/s",
    )
    logits = torch.randn(64, 32_000)
    size = 4.0 * logits.numel()
    compare("logsumexp of logits", lambda: logsumexp(logits), lambda: logits.logsumexp(-1), size, "GB/s")
    compare("top 8 of logits", lambda: topk(logits, 8), lambda: logits.topk(8), size, "GB/s")


def training() -> None:
    hidden = torch.randn(4096, 1536)
    size = 8.0 * hidden.numel()
    for name, plain in (("gelu", F.gelu), ("swish", F.silu)):
        ours = lambda name=name: activate(hidden, name)  # noqa: E731
        compare(name, ours, lambda plain=plain: plain(hidden), size, "GB/s")
    compare("dropout", lambda: dropout(hidden, 0.1), lambda: F.dropout(hidden, 0.1), size, "GB/s")


if __name__ == "__main__":
    runtime.prepare()
    if ops.why_disabled():
        raise SystemExit(f"no kernels: {ops.why_disabled()}")
    with torch.inference_mode():
        products()
        unpadded()
        steps()
        if int8_is_supported():
            shortlist()
        training()
