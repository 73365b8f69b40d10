"""Small runs of `regard train`, one a kind of model, that take a second or two each."""

import hashlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.checkpoint import WEIGHTS
from tests.attack.harness import Finished, run, start

COMMON = [
    "training.minutes=none",
    "training.steps=30",
    "training.checkpoint_every=3",
    "training.evaluate_every=20",
    "training.keep_checkpoints=2",
    "training.warmup=2",
    "training.seed=3",
]
PAIRS = [
    "data.num_pairs=200",
    "data.max_sentences=1",
    "data.whole_word_tokens=100",
    "data.validation=20",
    "model.vocab_size=400",
    "training.evaluate_examples=4",
    "training.max_tokens=256",
]
SMALL = ["model.width=16", "model.heads=2", "model.layers=1"]
TEXT = "story.txt"
WORDS = ["the", "a", "boy", "queen", "sang", "waited", "walked", "home", "rain", "sea", "letter", "before", "dawn"]


@dataclass(frozen=True)
class Recipe:
    """A recipe with settings that make it short."""

    name: str
    settings: tuple[str, ...]
    data: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        return ["train", self.name, *self.data, "-o", "run", *COMMON, *self.settings]


class Place:
    """A folder in which a run is started and started again, with a cache of its own."""

    def __init__(self, outside: Path) -> None:
        self.outside = outside
        self.folder = outside / "case"
        self.run = self.folder / "run"
        self.folder.mkdir()
        (self.folder / TEXT).write_text(_story())

    def train(self, recipe: Recipe, prepare: Callable[[], None] = lambda: None) -> Finished:
        """Train to the end."""
        return run(recipe.arguments, self.folder, self.outside, prepare=prepare)

    def start(self, recipe: Recipe) -> int:
        """Start training; returns the process id."""
        return start(recipe.arguments, self.folder, self.outside)

    def differences(self, recipe: Recipe) -> list[str]:
        """Train to the end, and say how the result differs from that of an uninterrupted run."""
        done = self.train(recipe)
        if done.code != 0:
            return [f"started again, the run ended with exit code {done.code}: {done.last_line}"]
        differences = [f"{path.name} is left over" for path in self.run.rglob(".*") if path.name != ".lock"]
        if self.digest() != uninterrupted(recipe).digest:
            differences.append("other weights than those of an uninterrupted run")
        return differences

    def digest(self) -> str:
        """The SHA-256 of the trained weights."""
        return hashlib.sha256((self.run / WEIGHTS).read_bytes()).hexdigest()


@contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        yield Place(Path(name))


@dataclass(frozen=True)
class Uninterrupted:
    """What an uninterrupted run came to."""

    digest: str
    seconds: float


@cache
def uninterrupted(recipe: Recipe) -> Uninterrupted:
    with place() as whole:
        started = time.monotonic()
        done = whole.train(recipe)
        assert done.code == 0, done.errors
        return Uninterrupted(whole.digest(), time.monotonic() - started)


def _story() -> str:
    chance = random.Random(1)
    return "".join(" ".join(chance.choices(WORDS, k=12)) + ".\n" for _ in range(300))


RECIPES = [
    Recipe("gpt", (*SMALL, "model.context=16", "model.vocab_size=270", "training.max_tokens=128"), data=(TEXT,)),
    Recipe("transformer-translator", (*SMALL, "model.feed_forward=32", *PAIRS)),
    Recipe("rnn-attention-translator", ("model.width=16", *PAIRS)),
    Recipe("conv-translator", ("model.width=16", "model.layers=1", "model.decoder_layers=1", *PAIRS)),
    Recipe(
        "bert",
        (*SMALL, "model.context=48", "model.vocab_size=300", "data.stories=60", "training.max_tokens=256"),
    ),
    Recipe(
        "captioner",
        (
            "model.width=16",
            "model.heads=2",
            "model.feed_forward=16",
            "data.validation=8",
            "training.max_tokens=400",
            "training.evaluate_examples=4",
        ),
    ),
    Recipe(
        "vilbert",
        (
            *(f"model.{stream}.{size}" for stream in ("text", "regions") for size in ("width=16", "heads=2")),
            "model.co_attention_layers=1",
            "data.scenes=60",
            "data.validation=8",
            "training.max_tokens=128",
            "training.gradient_accumulation=1",
            "training.evaluate_examples=4",
        ),
    ),
]
