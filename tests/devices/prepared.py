"""The task of each recipe with a little data, and a tiny model for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard import recipes
from regard.checkpoint import TOKENIZER
from regard.config import override
from regard.data.batches import DataPosition
from regard.models import build
from regard.runtime import seed_everything
from regard.tasks.recipe import TrainingInputs

READER = ["model.width=32", "model.heads=2", "model.layers=1", "model.context=48", "model.vocab_size=300"]
STREAM = ["width=16", "heads=2", "layers=0", "feed_forward=16"]
SCENES = [
    *(f"model.{stream}.{fact}" for stream in ("text", "regions") for fact in STREAM),
    "model.co_attention_layers=1",
    "model.joint_width=16",
    "model.vision.patch_size=4",
    "model.vision.inner=16",
    "data.scenes=12",
    "data.validation=4",
]
PAIRS = [
    "model.width=32",
    "model.heads=2",
    "model.layers=1",
    "model.feed_forward=64",
    "model.vocab_size=400",
    "data.num_pairs=600",
    "data.whole_word_tokens=100",
    "data.validation=6",
]
CAPTIONS = ["model.image_size=64", "model.cell_size=16", "model.width=16", "data.validation=4"]


@dataclass(frozen=True)
class Case:
    """A recipe with the settings that make it small."""

    name: str
    recipe: str
    settings: Sequence[str]
    data: str = ""  # the fixture with the path of its data
    max_tokens: int = 400


@dataclass
class Prepared:
    """A task, and a fresh model for it."""

    task: Any
    model: Any
    max_tokens: int

    def batch(self) -> Any:
        batches = self.task.training_batches(max_tokens=self.max_tokens, seed=1, start=DataPosition(0, 0))
        return next(iter(batches))[1]

    def validation(self) -> Any:
        return self.task.validation_batches(max_tokens=self.max_tokens, most=4)


CASES = [
    Case("translator", "translator", [*PAIRS, "task.label_smoothing=0.1"]),
    Case("scheduled-sampling", "translator", [*PAIRS, "task.scheduled_sampling=0.5"]),
    Case("gpt", "gpt", ["model.width=32", "model.heads=2", "model.layers=1", "model.context=32"], "story"),
    Case("bert", "bert", [*READER, "data.stories=60"]),
    Case("classifier", "classifier", [*READER, "task.class_weights=true"], "reviews"),
    Case("tagger", "tagger", READER, "people"),
    Case("captioner", "captioner", [*CAPTIONS, "model.heads=2", "model.feed_forward=16"]),
    Case("vilbert", "vilbert", SCENES),
    Case("vqa", "vqa", SCENES),
    Case("statements", "statements", SCENES),
    Case("grounding", "grounding", SCENES),
    Case("retrieval", "retrieval", SCENES),
]


def prepare(case: Case, folder: Path, data: Sequence[Path]) -> Prepared:
    """What `train_recipe` does before it trains."""
    recipe, inputs = recipes.find(case.recipe), TrainingInputs(data)
    run = override(recipe.settings(inputs), case.settings)
    folder.mkdir(exist_ok=True)
    prepared = recipe.prepare(run, inputs, folder / TOKENIZER)
    seed_everything(1, 0)
    return Prepared(prepared.task, build(prepared.model), case.max_tokens)
