"""Tiny random models, traced on a short input, for the tests of views."""

from types import SimpleNamespace

import torch

from regard.inspection.drawing.scene import Line, Matrix, Scene
from regard.inspection.drawing.svg import to_svg
from regard.inspection.trace import Axis
from regard.inspection.tracing import TraceInputs, record
from regard.inspection.views.base import Subject
from tests.contracts.examples import Example, example_of

TEXT = ("[CLS]", "the", "animal", "·s", "it", "[SEP]")
SOURCE = ("the", "red", "house", "</s>")
TARGET = ("la", "casa", "·s", "roja", "</s>")


def subject_of(kind: str, number: int = 0) -> Subject:
    """The trace of a model of this kind, with large weights, so that its attention is not uniform."""
    example = example_of(kind, number)
    pipeline = SimpleNamespace(model=example.loud_model(), kind=kind)
    inputs = _inputs(example, pipeline.model)
    return Subject(record(pipeline, "test", inputs), pipeline, inputs)


def _inputs(example: Example, model) -> TraceInputs:
    if example.interface == "seq2seq":
        source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 5, 9, 8, 7]])
        axes = {
            "source": Axis(tokens=SOURCE, text="the red house"),
            "target": Axis(tokens=("<bos>", *TARGET[:-1]), next_tokens=TARGET, text="la casas roja"),
        }
        return TraceInputs(axes, lambda: model(source, target))
    ids = torch.tensor([[1, 5, 9, 8, 7, 2]])
    axes = {"text": Axis(tokens=TEXT, text="the animals it")}
    if example.interface == "vision_language":
        regions = torch.randn(1, 3, model.config.vision.feature_size)
        boxes = torch.rand(1, 3, 5) + 0.01
        axes["regions"] = Axis(tokens=("image", "box 1", "box 2"))
        return TraceInputs(axes, lambda: model(ids, torch.zeros_like(ids), regions, boxes))
    if example.interface == "encoder":
        return TraceInputs(axes, lambda: model(ids, torch.zeros_like(ids)))
    return TraceInputs(axes, lambda: model(ids))


def matrices(scene: Scene) -> dict[str, Matrix]:
    """The matrices of a scene by their names."""
    return {item.name: item for item in scene.items if isinstance(item, Matrix)}


def line_titles(scene: Scene) -> set[str]:
    return {item.title for item in scene.items if isinstance(item, Line)}


def has_title(scene: Scene, title: str) -> bool:
    return f"<title>{title}</title>" in to_svg(scene)
