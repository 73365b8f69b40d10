"""Look inside a model: what `regard show`, `regard trace` and `pipeline.show` do."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from regard.errors import InputError
from regard.inspection.capture import points
from regard.inspection.drawing.scene import Figure
from regard.inspection.interventions import intervene, parse_switch
from regard.inspection.trace import Trace, TraceInfo, attentions_of, modules_of
from regard.inspection.tracing import record
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices, Subject, View
from regard.tasks import find_task
from regard.tasks.base import Task, TraceRequest


class Showable:
    """A pipeline that can be looked into; `regard.load` says which task it is for."""

    task_name: str = ""

    def show(self, *inputs: str, view: str | None = None, max_new_tokens: int | None = None, **choices: Any) -> Figure:
        """A view of the model on an input, which displays itself in a notebook; `.save("figure.svg")` writes it."""
        request = TraceRequest(inputs, max_new_tokens=max_new_tokens)
        return show(find_task(self.task_name), self, request, view, Choices(**choices))


def show(task: Task, pipeline: Any, request: TraceRequest, view: str | None, choices: Choices) -> Figure:
    """The figure of a view; without a name the view that says most about such a model."""
    chosen = choose_view(view, describe(task, pipeline), choices.token)
    if not request.inputs:
        raise InputError(f"nothing to look at; the view {chosen.name} needs an input, such as a text")
    if request.max_new_tokens is None and pipeline.model.interface == "causal_lm":
        request = replace(request, max_new_tokens=chosen.max_new_tokens)
    with intervene(pipeline.model, [parse_switch(text) for text in request.switched_off]):
        if not chosen.several_inputs:
            return chosen.draw(trace_subject(task, pipeline, request, chosen), choices)
        subjects = [trace_subject(task, pipeline, replace(request, inputs=[one]), chosen) for one in request.inputs]
        others = [one.trace for one in subjects[1:]]
        return chosen.draw(replace(subjects[0], others=others, names=request.inputs), choices)


def trace_subject(task: Task, pipeline: Any, request: TraceRequest, view: View) -> Subject:
    """One input traced as a view needs it."""
    inputs = task.trace_inputs(pipeline, request)
    paths = [path for path in points(pipeline.model) if any(fnmatchcase(path, pattern) for pattern in view.taps)]
    trace = record(pipeline, task.name, inputs, paths, interventions=request.switched_off)
    return Subject(trace, pipeline, inputs)


def show_trace(trace: Trace, view: str | None, choices: Choices) -> Figure:
    """A view of a trace that was saved."""
    return choose_view(view, trace.info, choices.token).draw(Subject(trace), choices)


def trace(task: Task, pipeline: Any, request: TraceRequest, patterns: Sequence[str]) -> Trace:
    """All values of one pass whose path matches a pattern."""
    with intervene(pipeline.model, [parse_switch(text) for text in request.switched_off]) as changes:
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
    )
