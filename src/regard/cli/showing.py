"""What `regard show` and `regard trace` share: open what is looked at, and print it."""

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
        return tasks_show.show_trace(Trace.open(model), name, choices)
    task, pipeline = open_model(model)
    for text in request.inputs:
        if not task.takes_images and is_image(text) and Path(text).is_file():
            raise InputError(f"{text} is an image, and {model} takes texts; wanted a text, or a model for images")
    return tasks_show.show(task, pipeline, request, name, choices)


def example(name: str) -> Figure:
    from regard.inspection.examples import draw_example

    return draw_example(name)


def print_list(model: Path, as_json: bool) -> None:
    """The views that a model has, and the names of its inner values."""
    from regard.inspection.capture import points
    from regard.inspection.trace import Trace, is_trace
    from regard.inspection.views import views_of
    from regard.tasks.show import describe

    if is_trace(model):
        trace = Trace.open(model)
        info, paths = trace.info, list(trace.values)
    else:
        task, pipeline = open_model(model)
        info, paths = describe(task, pipeline), list(points(pipeline.model))
    found = views_of(info)
    if as_json:
        print_json({"views": {one.name: one.summary for one in found}, "taps": paths})
        return
    show("views (--view):")
    for one in found:
        show(f"  {one.name:14} {one.summary}")
    show("inner values (regard trace --taps, regard.capture):")
    for path in paths:
        show(f"  {path}")


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
            "values": item.values.astype(float).tolist(),
        }
        for item in scene.items
        if isinstance(item, Matrix)
    ]
    texts = [item.text for item in scene.items if isinstance(item, Text)]
    return {"title": scene.title, "caption": scene.caption, "matrices": matrices, "texts": texts}
