"""Look inside a model: what `regard show`, `regard trace` and `pipeline.show` do."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from regard.errors import InputError
from regard.inspection.capture import points
from regard.inspection.drawing.scene import Figure
from regard.inspection.interventions import intervene, parse_switches
from regard.inspection.trace import Trace, TraceInfo, attentions_of, modules_of
from regard.inspection.tracing import joined_axes, record
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices, Subject, Track, View
from regard.tasks import find_task
from regard.tasks.base import Task, TraceRequest

MAX_NEW_TOKENS = 256  # of a view, which has a drawing for each


class Showable:
    """A pipeline that can be looked into; `regard.load` says which task it is for."""

    task_name: str = ""

    def show(self, *inputs: str, view: str | None = None, max_new_tokens: int | None = None, **choices: Any) -> Figure:
        """A view of the model on an input, which displays itself in a notebook; `.save("figure.svg")` writes it."""
        request = TraceRequest(inputs, max_new_tokens=max_new_tokens)
        return show(find_task(self.task_name), self, request, view, Choices(**choices))


def show(
    task: Task, pipeline: Any, request: TraceRequest, view: str | None, choices: Choices, track: Track = list
) -> Figure:
    """The figure of a view; without a name the view that says most about such a model. `track`: see `Subject`."""
    chosen = choose_view(view, describe(task, pipeline), choices)
    _check_request(request, chosen)
    if not request.inputs:
        raise InputError(f"nothing to look at; the view {chosen.name} needs an input, such as a text")
    if request.max_new_tokens is None and pipeline.model.interface == "causal_lm":
        request = replace(request, max_new_tokens=chosen.max_new_tokens)
    with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)):
        batch = request.inputs if chosen.padded and len(request.inputs) > 1 and not task.takes_images else ()
        if not (chosen.several_inputs or batch):
            subject = trace_subject(task, pipeline, request, chosen)
            return chosen.draw(replace(subject, track=track), choices)
        subjects = [
            trace_subject(task, pipeline, replace(request, inputs=[one], batch=batch), chosen) for one in request.inputs
        ]
        others = [one.trace for one in subjects[1:]]
        return chosen.draw(replace(subjects[0], others=others, names=request.inputs), choices)


def show_run(
    folder: Path, request: TraceRequest, view: View, choices: Choices, open_model: Callable[[Path], tuple[Task, Any]]
) -> Figure:
    """The figure of a view of the checkpoints of a run, which may be under way.

    Where the model writes, all of them are shown with what the last one writes.
    """
    _check_request(request, view)
    from regard.training.run_folder import RunFolder  # its log needs tensorboard, which takes long to import

    folders = RunFolder(folder).folders()
    if len(folders) < 2:
        raise InputError(
            f"{folder} has {len(folders)} checkpoints; the view {view.name} needs two or more of a run of "
            "`regard train`, and training.keep_checkpoints=10 keeps ten"
        )
    if not request.inputs:
        raise InputError(f"nothing to look at; the view {view.name} needs an input, such as a text")
    traces: list[Trace] = []
    for one in reversed(folders):
        task, pipeline = open_model(one)
        choose_view(view.name, describe(task, pipeline), choices)
        with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)):
            if request.target is None and pipeline.model.interface in ("seq2seq", "captioner"):
                request = replace(request, target=task.trace_inputs(pipeline, request).answer["text"])
            traces.append(trace_subject(task, pipeline, request, view).trace)
    first, *others = reversed(traces)
    return view.draw(Subject(first, others=others, names=[one.name.replace("-", " ") for one in folders]), choices)


def _check_request(request: TraceRequest, view: View) -> None:
    """InputError for an option that does not change the view, or asks for more than it can draw."""
    static = ["--off"] * bool(request.switched_off)
    static += [option for name, option in request.given().items() if name != "boxes"]  # boxes are input
    if view.static and static:
        raise InputError(f"the view {view.name} does not take {static[0]}, which does not change it; leave it out")
    if request.max_new_tokens is not None and request.max_new_tokens > MAX_NEW_TOKENS:
        raise InputError(f"--max-new-tokens {request.max_new_tokens}: a view shows at most {MAX_NEW_TOKENS} new tokens")


def trace_subject(task: Task, pipeline: Any, request: TraceRequest, view: View) -> Subject:
    """One input traced as a view needs it."""
    inputs = task.trace_inputs(pipeline, request)
    paths = [path for path in points(pipeline.model) if any(fnmatchcase(path, pattern) for pattern in view.taps)]
    trace = record(pipeline, task.name, inputs, paths, interventions=request.switched_off)
    return Subject(trace, pipeline, inputs)


def show_trace(trace: Trace, view: str | None, choices: Choices) -> Figure:
    """A view of a trace that was saved."""
    return choose_view(view, trace.info, choices).draw(Subject(trace), choices)


def trace(task: Task, pipeline: Any, request: TraceRequest, patterns: Sequence[str]) -> Trace:
    """All values of one pass whose path matches a pattern."""
    with intervene(pipeline.model, parse_switches(request.switched_off, pipeline.model)) as changes:
        return record(pipeline, task.name, task.trace_inputs(pipeline, request), patterns, interventions=changes)


def describe(task: Task, pipeline: Any) -> TraceInfo:
    """What a trace of this model would say, without an input."""
    model = pipeline.model
    return TraceInfo(
        kind=pipeline.kind,
        task=task.name,
        interface=model.interface,
        config=model.config.model_dump(mode="json"),
        axes={},
        attentions=tuple(attentions_of(model)),
        modules=modules_of(model),
        joined=joined_axes(model),
    )
