"""A training step of a GPT, beside transformers' GPT2LMHeadModel and a plain eager loop, uncompiled and compiled.

    .venv/bin/python benchmarks/bench_gpt_training.py [--compiled]

6 layers, 6 heads, width 384, 256 tokens, batch 16, vocabulary 8,192, float32, AdamW. They take turns. With --compiled
(some minutes) torch.compile is used on both sides where it helps: ours block by block, theirs as a whole.
"""

import os
import sys

os.environ.setdefault("GOMP_SPINCOUNT", "3000")  # as the `regard` command sets it

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from regard import runtime
from regard.data.windows import TextBatch
from regard.evaluation.formulas import training_flops
from regard.models.gpt import GPT, GPTConfig
from regard.tasks.language_modeling import LanguageModeling
from regard.training.loop import take_step
from regard.training.optimizer import make_optimizers
from regard.training.scaling import scale
from side_by_side import report, speeds

VOCABULARY, CONTEXT, ROWS, ROUNDS = 8192, 256, 16, 7
CONFIG = GPTConfig(vocabulary=VOCABULARY, context=CONTEXT, width=384, heads=6, layers=6, dropout=0.0)


class PlainBlock(nn.Module):
    """What a student writes: fused projection, SDPA, GELU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.project, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, words: Tensor) -> Tensor:
        rows, length, width = words.shape
        parts = self.project(self.norms[0](words)).split(width, dim=2)
        query, key, value = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in parts)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        words = words + self.output(found.transpose(1, 2).reshape(rows, length, width))
        return words + self.contract(F.gelu(self.expand(self.norms[1](words))))


class PlainGPT(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(PlainBlock(config.width, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        words = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            words = block(words)
        return F.cross_entropy(self.head(self.norm(words)).flatten(0, 1), targets.flatten())


def main() -> None:
    compiled = "--compiled" in sys.argv
    transformers.logging.set_verbosity_error()
    runtime.prepare()
    torch.manual_seed(0)
    window = torch.randint(VOCABULARY, (ROWS, CONTEXT + 1))
    batch = TextBatch(window[:, :-1].contiguous(), window[:, 1:].contiguous(), None, ROWS * CONTEXT)
    ours = GPT(CONFIG).train()
    optimizers = make_optimizers(ours, kind="adamw", weight_decay=0.1)
    task = LanguageModeling(None)  # type: ignore[arg-type]  # only its loss is asked for
    if compiled:
        scale(ours, compiled=True, recompute=False)

    def with_regard() -> float:
        take_step(ours, task, optimizers, [batch], 1e-4, 1.0)  # type: ignore[arg-type]
        return batch.tokens

    plain = PlainGPT(CONFIG).train()
    theirs = GPT2LMHeadModel(
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
    ).train()
    loss_of_theirs = lambda: theirs(input_ids=batch.ids, labels=batch.ids).loss  # noqa: E731
    loss_of_plain = lambda: plain(batch.ids, batch.targets)  # noqa: E731
    if compiled:
        fast_theirs, fast_plain = torch.compile(theirs), torch.compile(plain)
        loss_of_theirs = lambda: fast_theirs(input_ids=batch.ids, labels=batch.ids).loss  # noqa: E731
        loss_of_plain = lambda: fast_plain(batch.ids, batch.targets)  # noqa: E731

    def stepping(model: nn.Module, loss_of):  # type: ignore[no-untyped-def]
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step() -> float:
            loss_of().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return batch.tokens

        return step

    ways = {
        "regard": with_regard,
        "transformers": stepping(theirs, loss_of_theirs),
        "plain": stepping(plain, loss_of_plain),
    }
    found = speeds(ways, ROUNDS)
    how = "compiled" if compiled else "eager"
    bench = f"train a GPT, {how}"
    report(bench, found["regard"], f"transformers GPT2LMHeadModel, {how}", found["transformers"], "tokens/s")
    report(bench, found["regard"], f"plain loop, {how}", found["plain"], "tokens/s")
    flops = (training_flops(ours, [batch]) or 0) / batch.tokens
    report(bench, found["regard"] * flops / 1e9, "a large matrix product", runtime.matrix_limit() / 1e9, "GFLOP/s")


if __name__ == "__main__":
    main()
