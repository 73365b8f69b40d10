"""Tiny random models, traced as `regard show` traces them, without a folder or a trained tokenizer."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from regard.inspection.capture import points
from regard.inspection.drawing.scene import Figure, Matrix, Rectangle, Scene, Text
from regard.inspection.trace import Axis
from regard.inspection.tracing import TraceInputs, record
from regard.inspection.views.base import Subject, View
from tests.contracts.examples import example_of

SOURCE = [5, 9, 12, 30, 2]
TARGET = [1, 7, 21, 33]
TASKS = {"seq2seq": "translation", "causal_lm": "language-modeling", "captioner": "captioning"}


class Labels:
    """A tokenizer whose labels are the ids: "t7"; id 3 is the mask token."""

    vocab_size = 40
    pad_id, bos_id, eos_id, mask_id, unk_id = 0, 1, 2, 3, 4
    is_continuation = (False,) * 40

    def token_labels(self, ids: Sequence[int]) -> list[str]:
        return ["[MASK]" if number == self.mask_id else f"t{number}" for number in ids]


def axis_of(ids: Sequence[int], **facts: Any) -> Axis:
    return Axis(tokens=tuple(Labels().token_labels(ids)), **facts)


def pipeline_of(model: nn.Module, kind: str) -> Any:
    return SimpleNamespace(model=model, kind=kind, tokenizer=Labels())


def traced(
    kind: str, view: View, *, number: int = 0, ids: Sequence[int] = SOURCE, task: str = "", num_prompt: int = 0
) -> Subject:
    """A loud random model of this kind on one input, traced with the taps of a view."""
    model = example_of(kind, number).loud_model()
    text, target = torch.tensor([list(ids)]), torch.tensor([TARGET])
    chosen = {"next_tokens": ("t7", "t21", "t33", "t2")}
    if model.interface == "seq2seq":
        axes = {"source": axis_of(ids), "target": axis_of(TARGET, **chosen)}
        inputs = TraceInputs(axes, lambda: model(text, target))
    elif model.interface == "captioner":
        size = model.config.image_size
        pixels = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(4))
        grid = Axis(tokens=tuple(map(str, range(model.config.num_cells))), grid=(model.config.grid,) * 2)
        axes = {"image": grid, "target": axis_of(TARGET, **chosen), "patches": Axis(tokens=("[CLS]", *grid.tokens))}
        inputs = TraceInputs(axes, lambda: model(pixels, target))
    else:
        segments = torch.tensor([[0] * 3 + [1] * (len(ids) - 3)])
        facts: dict[str, Any] = {"segment_ids": tuple(segments[0].tolist())}
        if model.interface == "causal_lm":
            facts = {"num_prompt": num_prompt or len(ids), "next_tokens": tuple(Labels().token_labels([*ids[1:], 2]))}
        second = segments if model.interface == "encoder" else None
        inputs = TraceInputs({"text": axis_of(ids, **facts)}, lambda: model(text, second))
    pipeline = pipeline_of(model, kind)
    paths = [path for path in points(model) if any(fnmatchcase(path, pattern) for pattern in view.taps)]
    return Subject(record(pipeline, task or TASKS.get(model.interface, "masked-lm"), inputs, paths), pipeline, inputs)


def matrices(scene: Scene) -> dict[str, Matrix]:
    """The matrices of a scene by name."""
    return {item.name: item for item in scene.items if isinstance(item, Matrix)}


def texts(scene: Scene) -> list[str]:
    return [item.text for item in scene.items if isinstance(item, Text)]


def titles(scene: Scene) -> dict[str, float]:
    """The numbers that titles state: "label: number"."""
    found = {}
    for item in scene.items:
        if isinstance(item, Text | Rectangle) and ": " in item.title:
            label, _, number = item.title.rpartition(": ")
            found[label] = float(number)
    return found


def check_inside(figure: Figure) -> None:
    """Everything that is drawn is inside its scene."""
    for frame in figure.frames:
        scene = frame.draw()
        for item in scene.items:
            if isinstance(item, Rectangle | Matrix):
                assert item.x >= 0
                assert item.x + item.width <= scene.width + 0.5, (frame.name, item)
                assert item.y + item.height <= scene.height + 0.5, (frame.name, item)
            elif isinstance(item, Text):
                assert -1 <= item.x <= scene.width, (frame.name, item)
                assert 0 <= item.y <= scene.height, (frame.name, item)
