"""A training step of a GPT, beside transformers' GPT2LMHeadModel and a plain eager loop, uncompiled and compiled.

    .venv/bin/python benchmarks/bench_gpt_training.py [--compiled]

6 layers, 6 heads, width 384, 256 tokens, batch 16, vocabulary 8,192, float32, AdamW. They take turns, each peer in a
process of its own. With --compiled (some minutes) torch.compile is used on both sides: ours block by block, theirs as a
whole.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

if __name__ == "__main__":  # not in the processes of the peers
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # as the `regard` command sets it

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from regard import runtime
from regard.models.gpt import GPT, GPTConfig
from regard.tasks.language_modeling.dataset import TextBatch
from regard.tasks.language_modeling.task import LanguageModelTraining
from regard.training.flops import training_flops
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers
from regard.training.scaling import scale
from side_by_side import Way, apart, report, speeds

VOCABULARY, CONTEXT, ROWS, ROUNDS = 8192, 256, 16, 7
CONFIG = GPTConfig(vocab_size=VOCABULARY, context=CONTEXT, width=384, heads=6, layers=6, dropout=0.0)


class PlainBlock(nn.Module):
    """What a student writes: fused projection, SDPA, GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.project, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        rows, length, width = hidden.shape
        parts = self.project(self.norms[0](hidden)).split(width, dim=2)
        query, key, value = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in parts)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.output(found.transpose(1, 2).reshape(rows, length, width))
        return hidden + self.contract(F.gelu(self.expand(self.norms[1](hidden))))


class PlainGPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.hidden = nn.Embedding(config.vocab_size, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(PlainBlock(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.head.weight = self.hidden.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        hidden = self.hidden(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return F.cross_entropy(self.head(self.norm(hidden)).flatten(0, 1), targets.flatten())


def peer(model: nn.Module, loss_of: Callable[[Any, Tensor], Tensor], compile: bool) -> Way:
    """A step as a peer's user writes it: fused AdamW, gradients clipped."""
    ids = window()
    model = torch.compile(model.train()) if compile else model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> float:
        loss_of(model, ids).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return ROWS * CONTEXT

    return step


def with_transformers(compile: bool = False) -> Way:
    transformers.logging.set_verbosity_error()
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=CONTEXT,
            n_embd=CONFIG.width,
            n_layer=CONFIG.layers,
            n_head=CONFIG.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    return peer(model, lambda model, ids: model(input_ids=ids[:, :-1], labels=ids[:, :-1]).loss, compile)


def with_plain(compile: bool = False) -> Way:
    return peer(PlainGPT(CONFIG), lambda model, ids: model(ids[:, :-1], ids[:, 1:].contiguous()), compile)


def window() -> Tensor:
    torch.manual_seed(0)
    return torch.randint(VOCABULARY, (ROWS, CONTEXT + 1))


def with_regard(compile: bool) -> tuple[Way, float]:
    """A step of ours, and its multiply-adds."""
    runtime.prepare("cpu")
    ids = window()
    batch = TextBatch(ids[:, :-1].contiguous(), ids[:, 1:].contiguous(), None, ROWS * CONTEXT)
    model = GPT(CONFIG).train()
    flops = training_flops(model, [batch]) or 0
    optimizers = make_optimizers(model, kind="adamw", weight_decay=0.1)
    task = LanguageModelTraining(None)  # type: ignore[arg-type]  # only its loss is asked for
    if compile:
        scale(model, compile=True, activation_checkpointing=False)

    def step() -> float:
        take_step(model, task, optimizers, [batch], 1e-4, 1.0)  # type: ignore[arg-type]
        return batch.tokens

    return step, flops / batch.tokens


def main() -> None:
    compile = "--compiled" in sys.argv
    ours, flops = with_regard(compile)
    ways = {
        "regard": ours,
        "transformers GPT2LMHeadModel": apart(partial(with_transformers, compile)),
        "a plain loop": apart(partial(with_plain, compile)),
    }
    found = speeds(ways, ROUNDS)
    how = "compiled" if compile else "eager"
    for name in list(found)[1:]:
        report(f"train a GPT, {how}", found["regard"], f"{name}, {how}", found[name], "tokens/s")
    limit = runtime.matrix_limit(runtime.Runtime()) / 1e9
    report(f"train a GPT, {how}", found["regard"] * flops / 1e9, "a large matrix product", limit, "GFLOP/s")


if __name__ == "__main__":
    main()
