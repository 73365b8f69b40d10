"""One part of a GPT switched off at a time: residual connections, norm, √d, mask, positions, depth and heads.

The lectures give a reason for every part of the block. Here each claim is an experiment: a small language model of
characters is trained with the part and without it, everything else alike (data, steps, learning rate, seeds), three
seeds each. The model is a file of its own so that the real ones need no such switches.

Two losses are measured on held-out text. `loss` is that of training: every position of a window predicts its next
character. `written` is the loss that matters for generation: of the character after the last one, with nothing after it
given. Only for a model without a mask are they different things. `gradient` is the norm of the loss's gradient at the
hidden states of the first block, divided by that at the last one, before training: 1 where it passes unchanged.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.inspection.curves import Curve, Panel
from regard.layers.attention import Dot, ScaledDot
from regard.layers.positions import LearnedPositions, sinusoidal
from regard.runtime import seed_everything
from regard.synthetic.translation.sentences import sentences
from regard.training.schedule import learning_rate

CONTEXT, ROWS, WIDTH = 48, 12, 48
PEAK, WARMUP = 3e-3, 30
PREFIXES = range(7, CONTEXT, 8)  # positions at which the `written` loss is measured
EVALUATED = 64  # windows of held-out text
EVALUATE_EVERY = 100


@dataclass(frozen=True)
class Variant:
    """The switches of the small model; the defaults are those of every lecture's block."""

    residual: bool = True
    norm: Literal["pre", "post", "none"] = "pre"
    scale: bool = True
    mask: bool = True
    positions: Literal["learned", "sinusoidal", "concatenated", "none"] = "learned"
    layers: int = 4
    heads: int = 4


BASE = Variant()
# name -> what is claimed, and the variants that are compared
ABLATIONS: dict[str, tuple[str, dict[str, Variant]]] = {
    "residual": (
        "residual connections let gradients pass and make deep models trainable",
        {"with": replace(BASE, layers=8), "without": replace(BASE, layers=8, residual=False)},
    ),
    "norm": (
        "layer norm stabilizes training",
        {"pre-norm": BASE, "post-norm": replace(BASE, norm="post"), "none": replace(BASE, norm="none")},
    ),
    "scale": (
        "without 1/√d softmax saturates and learns worse",
        {"q · k / √d": replace(BASE, heads=1), "q · k": replace(BASE, heads=1, scale=False)},
    ),
    "mask": (
        "without the mask the model copies the next token and cannot write",
        {"masked": BASE, "unmasked": replace(BASE, mask=False)},
    ),
    "positions": (
        "without positions the order is lost; learned, sinusoidal, added or concatenated hardly differ",
        {
            "learned": BASE,
            "sinusoidal": replace(BASE, positions="sinusoidal"),
            "concatenated": replace(BASE, positions="concatenated"),
            "none": replace(BASE, positions="none"),
        },
    ),
    "depth": ("more layers are better", {f"{n} layers": replace(BASE, layers=n) for n in (1, 2, 4)}),
    "heads": ("several heads are better than one", {f"{n} heads": replace(BASE, heads=n) for n in (1, 4, 8)}),
}


@dataclass(frozen=True)
class Row:
    """What one variant reached: means and standard deviations over the seeds."""

    variant: str
    loss: float
    loss_deviation: float
    written: float
    written_deviation: float
    gradient: float
    seconds: float  # of one run
    steps: list[int]
    curve: list[float]  # validation loss after these steps, mean over the seeds


class Block(nn.Module):
    """Attention, then feed-forward, with the switches of a variant."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.variant = variant
        self.qkv, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def attend(self, hidden: Tensor) -> Tensor:
        split = self.qkv(hidden).unflatten(-1, (3, self.variant.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)  # (B, H, T, K) each
        scale = (ScaledDot() if self.variant.scale else Dot()).scale(query.shape[-1])
        heads = F.scaled_dot_product_attention(query, key, value, is_causal=self.variant.mask, scale=scale)
        return self.output(heads.transpose(1, 2).flatten(2))

    def feed(self, hidden: Tensor) -> Tensor:
        return self.contract(F.gelu(self.expand(hidden)))

    def forward(self, hidden: Tensor) -> Tensor:
        for part, norm in zip((self.attend, self.feed), self.norms, strict=True):
            update = part(norm(hidden) if self.variant.norm == "pre" else hidden)
            hidden = hidden + update if self.variant.residual else update
            hidden = norm(hidden) if self.variant.norm == "post" else hidden
        return hidden


class SmallLM(nn.Module):
    """A language model of characters in the form of a variant: `model(ids)` returns logits (B, T, V)."""

    def __init__(self, variant: Variant, vocab_size: int) -> None:
        super().__init__()
        self.variant = variant
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        self.learned = LearnedPositions(CONTEXT, WIDTH)
        self.join = nn.Linear(2 * WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Block(variant) for _ in range(variant.layers))
        self.norm = nn.Identity() if variant.norm == "none" else nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, vocab_size)
        for parameter in self.parameters():  # keeps the variance of what passes through
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embed(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.output(self.norm(hidden))

    def embed(self, ids: Tensor) -> Tensor:
        hidden, length = WIDTH**0.5 * self.embedding(ids), ids.shape[1]
        if self.variant.positions == "none":
            return hidden
        if self.variant.positions == "sinusoidal":
            return hidden + sinusoidal(length, WIDTH)
        positions = WIDTH**0.5 * self.learned(0, length)
        if self.variant.positions == "concatenated":
            return self.join(torch.cat([hidden, positions.expand_as(hidden)], dim=-1))
        return hidden + positions


def synthetic_text(count: int = 6000) -> str:
    """English sentences of the package's grammar, one a line."""
    return "\n".join(pair.source for pair in sentences(count))


def run(name: str, text: str, *, seeds: Sequence[int] = (1, 2, 3), steps: int = 600) -> Iterator[tuple[str, Row]]:
    """Train every variant of an ablation with every seed; yields the name of each variant with what it reached."""
    ids, vocab_size = encode(text)
    for variant_name, variant in variants_of(name).items():
        start = time.process_time()
        runs = [train(variant, ids, vocab_size, seed=seed, steps=steps) for seed in seeds]
        yield variant_name, _row(variant_name, runs, (time.process_time() - start) / len(runs))


def variants_of(name: str) -> dict[str, Variant]:
    """The variants of an ablation; ConfigError with all names for an unknown one."""
    if name not in ABLATIONS:
        raise ConfigError(f"there is no ablation {name!r}; wanted one of {', '.join(ABLATIONS)}")
    return ABLATIONS[name][1]


def encode(text: str) -> tuple[Tensor, int]:
    """The characters of a text as ids (N,), and how many different ones there are. ConfigError: it is too short."""
    alphabet = {character: number for number, character in enumerate(sorted(set(text)))}
    if len(text) < 40 * CONTEXT:
        raise ConfigError(f"the text has {len(text):,} characters; an ablation needs {40 * CONTEXT:,} at least")
    return torch.tensor([alphabet[character] for character in text]), len(alphabet)


def train(variant: Variant, ids: Tensor, vocab_size: int, *, seed: int, steps: int) -> dict[str, Any]:
    """One run: its losses on the last tenth of the text, the gradient's way through the blocks, and the curve."""
    seed_everything(seed, 0)
    model = SmallLM(variant, vocab_size)
    training, validation = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    generator = torch.Generator().manual_seed(seed)
    held_out = validation.unfold(0, CONTEXT + 1, CONTEXT + 1)[:EVALUATED]
    found: dict[str, Any] = {"gradient": gradient_ratio(model, held_out[:ROWS]), "curve": {}}
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(1, steps + 1):
        starts = torch.randint(len(training) - CONTEXT, (ROWS,), generator=generator)
        windows = training[starts[:, None] + torch.arange(CONTEXT + 1)]
        rate = learning_rate(step, schedule="linear", peak=PEAK, warmup=WARMUP, total=steps)
        optimizer.param_groups[0]["lr"] = rate
        loss_of(model, windows).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % EVALUATE_EVERY == 0 or step == steps:
            with torch.no_grad():
                found["curve"][step] = loss_of(model, held_out).item()
    return found | {"loss": found["curve"][steps], "written": written_loss(model, held_out)}


def loss_of(model: nn.Module, windows: Tensor) -> Tensor:
    """Mean cross-entropy of the next character at every position."""
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def written_loss(model: nn.Module, windows: Tensor) -> float:
    """The same at the end of texts cut off there: nothing after the position is given."""
    losses = [F.cross_entropy(model(windows[:, : end + 1])[:, -1], windows[:, end + 1]).item() for end in PREFIXES]
    return statistics.fmean(losses)


def gradient_ratio(model: SmallLM, windows: Tensor) -> float:
    """The norm of the gradient after the first block over that after the last one."""
    hidden, kept = model.embed(windows[:, :-1]), []
    for block in model.blocks:
        hidden = block(hidden)
        hidden.retain_grad()
        kept.append(hidden)
    F.cross_entropy(model.output(model.norm(hidden)).flatten(0, 1), windows[:, 1:].flatten()).backward()
    first, last = (float(one.grad.norm()) for one in (kept[0], kept[-1]) if one.grad is not None)
    model.zero_grad()
    return first / last


def _row(name: str, runs: Sequence[Mapping[str, Any]], seconds: float) -> Row:
    def both(key: str) -> tuple[float, float]:
        values = [one[key] for one in runs]
        return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0

    steps = list(runs[0]["curve"])
    curve = [statistics.fmean([one["curve"][step] for one in runs]) for step in steps]
    return Row(name, *both("loss"), *both("written"), both("gradient")[0], seconds, steps, curve)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """For the terminal."""
    lines = [["variant", "loss", "written", "gradient first/last", "seconds a run"]]
    for row in rows:
        losses = [f"{row.loss:.3f} ± {row.loss_deviation:.3f}", f"{row.written:.3f} ± {row.written_deviation:.3f}"]
        lines.append([row.variant, *losses, f"{row.gradient:.2g}", f"{row.seconds:.0f}"])
    return lines


def panel(name: str, rows: Sequence[Row]) -> Panel:
    """The validation loss over the steps, a curve a variant."""
    curves = {row.variant: Curve(row.steps, row.curve) for row in rows}
    return Panel(f"{name}: validation loss", "step", "loss a character", curves)


def as_dict(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
