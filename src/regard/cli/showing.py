"""What `regard show` and `regard trace` share: open what is looked at, and print it."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

from regard.errors import InputError
from regard.inspection.drawing.files import check_path
from regard.inspection.drawing.scene import Figure, Matrix, Text
from regard.inspection.views import find_view
from regard.inspection.views.base import Choices
from regard.metrics.alignment import Link, parse_pharaoh
from regard.printing import print_json, show
from regard.progress import track
from regard.tasks.base import Task, TraceRequest
from regard.tasks.image_inputs import is_image

check_output = check_path


def open_model(model: Path, device: str, dtype: str) -> tuple[Task, Any]:
    """The task and the pipeline of a model folder."""
    from regard.runtime import prepare
    from regard.tasks.loading import load_with_task

    return load_with_task(model, runtime=prepare(device, dtype))


def view(model: Path, request: TraceRequest, name: str | None, choices: Choices, device: str, dtype: str) -> Figure:
    """A view of a model, or of a trace file."""
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
    if name is not None and find_view(name).of_a_run:
        return tasks_show.show_run(model, request, find_view(name), choices, lambda one: open_model(one, device, dtype))
    task, pipeline = open_model(model, device, dtype)
    for text in request.inputs:
        if not task.takes_images and is_image(text) and Path(text).is_file():
            raise InputError(f"{text} is an image, and {model} takes texts; wanted a text, or a model for images")
    return tasks_show.show(task, pipeline, request, name, choices, track)


def check_alone(taken: str, choices: Choices, request: TraceRequest, *others: Any) -> None:
    """InputError if anything else is given: a choice of a view, an input, or one of the others."""
    if choices != Choices() or request != TraceRequest([]) or any(other is not None for other in others):
        raise InputError(f"{taken}, nothing else; leave the rest out")


def read_gold(gold: str | None) -> tuple[Collection[Link], Collection[Link]]:
    """The sure and possible links of --gold, which are typed or stand in a file of one line."""
    if gold is None:
        return (), ()
    try:
        found = parse_pharaoh(gold)
    except ValueError as error:
        if not _is_file(gold):
            raise InputError(f"--gold: {error}, and there is no such file; wanted links such as 0-0 1-2 2?3") from error
        found = _read_links(Path(gold))
    if not any(found):
        raise InputError("--gold has no links; wanted links such as 0-0 1-2 2?3")
    return tuple(sorted(found[0])), tuple(sorted(found[1]))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a name
        return False


def _read_links(path: Path) -> tuple[frozenset[Link], frozenset[Link]]:
    from regard.data.readers.lines import read_lines

    lines = [line.decode(errors="replace") for line in read_lines(path) if line.strip()]
    if len(lines) != 1:
        raise InputError(f"--gold {path} has {len(lines)} lines of links; wanted one, of the pair that is shown")
    try:
        return parse_pharaoh(lines[0])
    except ValueError as error:
        raise InputError(f"--gold {path}: {error}; wanted links such as 0-0 1-2 2?3") from error


def example(name: str) -> Figure:
    from regard.inspection.examples import draw_example

    return draw_example(name)


def print_list(model: Path | None, as_json: bool) -> None:
    """The views and the names of the inner values of a model; without one, all views and examples."""
    from regard.inspection.examples import EXAMPLES
    from regard.inspection.views import VIEWS, views_of

    found, paths = _views_and_points(model) if model else (None, [])
    views = [find_view(name) for name in VIEWS] if found is None else views_of(found)
    if model is not None and not (model / "checkpoints").is_dir():
        views = [one for one in views if not one.of_a_run]
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
        info, paths = trace.info, list(trace.values)
    else:
        task, pipeline = open_model(model, "cpu", "float32")
        info, paths = describe(task, pipeline), list(points(pipeline.model))
    together = {path: f"{path} ({', then '.join(axes)})" for path, axes in info.joined.items()}
    return info, [together.get(path, path) for path in paths]


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
            **({"texts": [list(row) for row in item.texts]} if item.texts else {}),
        }
        for item in scene.items
        if isinstance(item, Matrix)
    ]
    texts = [item.text for item in scene.items if isinstance(item, Text) and not item.in_drawing]
    return {"title": scene.title, "caption": scene.caption, "matrices": matrices, "texts": texts}


def _json_number(value: float) -> float | str:
    """JSON has no infinity, which masked scores are, and no NaN: they are written as strings."""
    return value if math.isfinite(value) else str(value)
