"""Long memory: small models of every kind learn to copy, to reverse and to recall, and are asked over distances."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from regard.generation import Greedy, generate
from regard.generation.decode import Limits
from regard.models import build
from regard.models.base import Seq2SeqConfig, SpecialIds
from regard.models.conv_seq2seq import ConvConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.recipes.translator_comparison import SPECS
from regard.runtime import seed_everything
from regard.synthetic.memory import BOS_ID, EOS_ID, PAD_ID, TASKS, VOCAB_SIZE, MemoryTask, exercise
from regard.training.loop import take_step
from regard.training.optimizer import Kind, make_optimizers
from regard.training.schedule import learning_rate

ROWS = 48
RATES: dict[Kind, float] = {"adamw": 5e-3, "muon": 1e-2}  # not tried out against others
WARMUP = 30
SYMBOLS = SpecialIds(pad_id=PAD_ID, bos_id=BOS_ID, eos_id=EOS_ID)

# About 88,000 parameters each.
SMALL: dict[str, Seq2SeqConfig] = {
    "rnn": RNNConfig(vocab_size=VOCAB_SIZE, width=86, bridge="last_state", dropout=0.0, special_ids=SYMBOLS),
    "rnn-context": RNNConfig(vocab_size=VOCAB_SIZE, width=72, bridge="fixed_context", dropout=0.0, special_ids=SYMBOLS),
    "rnn-attention": RNNConfig(vocab_size=VOCAB_SIZE, width=68, bridge="attention", dropout=0.0, special_ids=SYMBOLS),
    "conv": ConvConfig(vocab_size=VOCAB_SIZE, width=50, layers=3, decoder_layers=2, dropout=0.0, special_ids=SYMBOLS),
    "transformer": TransformerConfig(
        vocab_size=VOCAB_SIZE,
        width=64,
        heads=4,
        layers=1,
        feed_forward=128,
        dropout=0.0,
        norm="pre",
        zero_init_residual=True,
        special_ids=SYMBOLS,
    ),
}


@dataclass(frozen=True)
class Remembered:
    """What one kind of model gets right of one task at one distance."""

    rung: str
    task: MemoryTask
    distance: int  # letters read before the first must be written
    accuracy: float  # share of the answer's letters that stand at their place, on the model's own words


@dataclass(frozen=True)
class Lesson:
    """A batch of one task and length, as the training step wants it."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor

    @property
    def tokens(self) -> int:
        return self.target_out.numel()


class Remembering:
    """The task, as the training step wants it."""

    def loss(self, model: nn.Module, batch: Lesson) -> Tensor:
        logits = model(batch.source, batch.target_in)
        return cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), reduction="sum")


def study(rung: str, *, longest: int, steps: int, distances: Sequence[int], seed: int = 1) -> Iterator[Remembered]:
    """Train one kind on all three tasks with up to `longest` letters, then ask it over each distance."""
    seed_everything(seed, 0)
    model = build(SMALL[rung])
    kind = SPECS[rung].optimizer
    optimizers = make_optimizers(model, kind=kind, weight_decay=0.0)
    lengths = torch.randint(1, longest + 1, (steps,), generator=torch.Generator().manual_seed(seed)).tolist()
    for step, length in enumerate(lengths, 1):
        rate = learning_rate(step, schedule="linear", peak=RATES[kind], warmup=WARMUP, total=steps)
        lessons = [_lesson(task, length, seed=seed * 1_000_003 + step) for task in TASKS]
        take_step(model, Remembering(), optimizers, lessons, rate, max_grad_norm=1.0)  # type: ignore[arg-type]
    model.eval()
    for task in TASKS:
        for distance in distances:
            yield Remembered(rung, task, distance, accuracy(model, task, distance))


def _lesson(task: MemoryTask, length: int, seed: int) -> Lesson:
    source, answer = exercise(task, length, ROWS // len(TASKS), seed)
    begin = torch.full((len(answer), 1), BOS_ID)
    return Lesson(source, torch.cat([begin, answer[:, :-1]], dim=1), answer)


def accuracy(model: Any, task: MemoryTask, distance: int, rows: int = 64) -> float:
    """The share of letters that stand at their place in what the model writes; by chance, 1 in LETTERS."""
    source, answer = exercise(task, distance, rows, seed=-1 - distance)
    letters = answer[:, :-1]
    found = generate(model, source, Greedy(scored=False), Limits([answer.shape[1]] * rows))
    pairs = ((best.tokens, wanted) for (best,), wanted in zip(found, letters.tolist(), strict=True))
    return sum(a == b for written, wanted in pairs for a, b in zip(written, wanted, strict=False)) / letters.numel()
