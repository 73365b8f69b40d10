"""What `regard show` and `regard trace` share: open what is looked at, and print it."""

import math
from pathlib import Path
from typing import Any

from regard.inspection.drawing.files import check_path
from regard.inspection.drawing.scene import Figure, Matrix, Text
from regard.inspection.views.base import Choices
from regard.printing import print_json, show
from regard.tasks.base import Task, TraceRequest
from regard.tasks.image_inputs import is_image

check_output = check_path


def open_model(model: Path) -> tuple[Task, Any]:
    """The task and the pipeline of a model folder."""
    from regard import runtime
    from regard.tasks.loading import load_with_task

    runtime.prepare()
    return load_with_task(model)


def view(model: Path, request: TraceRequest, name: str | None, choices: Choices) -> Figure:
    """A view of a model, or of a trace file."""
    from regard.errors import InputError
    from regard.inspection.trace import Trace, is_trace
    from regard.tasks import show as tasks_show

    if is_trace(model):
        if request.inputs:
            raise InputError(f"{model} is a trace, which has its input already; leave {request.inputs[0]!r} out")
        if request.switched_off or request.target is not None or request.max_new_tokens or request.boxes:
            raise InputError(
                f"{model} is a trace: --off, --target, --max-new-tokens and --boxes need the model's folder"
            )
        return tasks_show.show_trace(Trace.open(model), name, choices)
    task, pipeline = open_model(model)
    for text in request.inputs:
        if not task.takes_images and is_image(text) and Path(text).is_file():
            raise InputError(f"{text} is an image, and {model} takes texts; wanted a text, or a model for images")
    return tasks_show.show(task, pipeline, request, name, choices)


def example(name: str) -> Figure:
    from regard.inspection.examples import draw_example

    return draw_example(name)


def print_list(model: Path | None, as_json: bool) -> None:
    """The views and the names of the inner values of a model; without one, all views and examples."""
    from regard.inspection.examples import EXAMPLES
    from regard.inspection.views import VIEWS, find_view, views_of

    found, paths = _views_and_points(model) if model else (None, [])
    views = [find_view(name) for name in VIEWS] if found is None else views_of(found)
    listed: dict[str, Any] = {"views": {one.name: one.summary for one in views}}
    listed |= {"taps": paths} if model else {"examples": EXAMPLES}
    if as_json:
        print_json(listed)
        return
    show("views (--view):")
    for name, summary in listed["views"].items():
        show(f"  {name:18} {summary}")
    if model is None:
        show("figures of the lectures (--example):")
        for name, summary in EXAMPLES.items():
            show(f"  {name:18} {summary}")
        return
    show("inner values (regard trace --taps, regard.capture):")
    for path in paths:
        show(f"  {path}")


def _views_and_points(model: Path) -> tuple[Any, list[str]]:
    """What a model or a trace says of itself, and the names of its inner values."""
    from regard.inspection.capture import points
    from regard.inspection.trace import Trace, is_trace
    from regard.tasks.show import describe

    if is_trace(model):
        trace = Trace.open(model)
        return trace.info, list(trace.values)
    task, pipeline = open_model(model)
    return describe(task, pipeline), list(points(pipeline.model))


def print_figure(figure: Figure) -> None:
    from rich.console import Console

    from regard.inspection.drawing.terminal import to_terminal

    Console(highlight=False).print(to_terminal(figure.scene), soft_wrap=True)


def to_data(figure: Figure) -> dict[str, Any]:
    """The figure as data: its matrices with their labels, and its text."""
    scene = figure.scene
    matrices = [
        {
            "name": item.name,
            "rows": [item.row(number) for number in range(len(item.values))],
            "columns": [item.column(number) for number in range(item.values.shape[1])],
            "values": [[_json_number(value) for value in row] for row in item.values.astype(float).tolist()],
        }
        for item in scene.items
        if isinstance(item, Matrix)
    ]
    texts = [item.text for item in scene.items if isinstance(item, Text)]
    return {"title": scene.title, "caption": scene.caption, "matrices": matrices, "texts": texts}


def _json_number(value: float) -> float | str:
    """JSON has no infinity, which masked scores are, and no NaN: they are written as strings."""
    return value if math.isfinite(value) else str(value)
