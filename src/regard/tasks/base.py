"""What a task is: one value, which `regard.load`, `run`, `evaluate` and `export` all go by.

Each task package has its `Task` in `__init__.py`, and `regard.tasks.TASKS` lists them. Whatever needs torch is named as
"module:attribute" and imported when it is first used, so that `regard run --help` can list the options of every task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.errors import ConfigError, InputError
from regard.tasks.options import RunOptions

if TYPE_CHECKING:
    from regard.checkpoint import ModelFolder
    from regard.generation import Strategy
    from regard.huggingface.folder import Loaded
    from regard.inspection.tracing import TraceInputs


def resolve(path: str) -> Any:
    """The object that "module:attribute" names."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Answer:
    """One answer as `regard run` prints it: the text, or with --json the data as one line."""

    text: str
    data: Any
    end: str = "\n"
    colored: bool = False  # the text has our escape sequences; all others in it are written out


@dataclass(frozen=True)
class Note:
    """A remark beside the answers, for standard error."""

    text: str


@dataclass(frozen=True)
class RunRequest:
    """What `regard run` hands to a task."""

    inputs: Sequence[str]
    options: Any  # of the task's own class of RunOptions
    source: Literal["arguments", "lines", "text"] = "arguments"  # lines: of standard input; text: all of it
    as_json: bool = False
    on_text: Callable[[str], None] | None = None  # takes text as it is generated; None: answers are shown whole


@dataclass(frozen=True)
class EvaluationRequest:
    """What `regard evaluate` hands to a task: one model, the data to score it on, and how."""

    folder: Path
    paths: Sequence[Path] = ()  # none: the validation data of the folder's run
    strategy: "Strategy | None" = None  # how to decode; None: as the model does by default
    limit: int | None = None  # score only this many pairs, rows, tokens, …, the first ones
    assignments: Sequence[str] = ()  # how the files are read: data.label=stars
    gold: Path | None = None  # gold word alignments of the pairs
    alignments: Path | None = None  # a file to write word alignments to

    def given(self) -> dict[str, str]:
        """The requests that only some tasks take, each with what the user typed for it."""
        named = {
            "strategy": self.strategy and "--num-beams or --seeds",
            "gold": self.gold and "--gold",
            "alignments": self.alignments and "--alignments",
            "assignments": self.assignments and self.assignments[0],
        }
        return {name: str(typed) for name, typed in named.items() if typed}


@dataclass(frozen=True)
class TraceRequest:
    """What `regard show` and `regard trace` hand to a task: one input of a model to look inside."""

    inputs: Sequence[str]  # a text; a text and a second one; an image and a text about it
    max_new_tokens: int | None = None  # of what generates; a language model: None stands for no new tokens
    target: str | None = None  # of a translator: look at this translation instead of its own
    boxes: Path | None = None  # bounding boxes of the image
    switched_off: Sequence[str] = ()  # heads, as PATH:HEAD
    batch: Sequence[str] = ()  # texts that share a batch with this one: it is padded to the longest of them

    def given(self) -> dict[str, str]:
        """The requests that only some tasks take, each with the option that asks for it."""
        named = {"max_new_tokens": "--max-new-tokens", "target": "--target", "boxes": "--boxes"}
        return {name: option for name, option in named.items() if getattr(self, name) is not None}


@dataclass(frozen=True)
class Task:
    """A task by its name in config.json, and where its parts are ("module:attribute")."""

    name: str
    options: type[RunOptions]  # of `regard run`
    pipeline: str  # the class that `regard.load` returns an instance of
    runner: str  # (pipeline, RunRequest) -> an iterator of Answers and Notes
    evaluator: str | None = None  # (pipeline, EvaluationRequest) -> metrics; None: there is nothing to score
    evaluation_takes: frozenset[str] = frozenset()  # which of EvaluationRequest.given() the evaluator takes
    exporter: str | None = None  # (pipeline) -> settings that a Hugging Face folder keeps beside the weights
    tracer: str | None = None  # (pipeline, TraceRequest) -> TraceInputs; None: there is nothing to look inside of
    tracer_takes: frozenset[str] = frozenset()  # which of TraceRequest.given() the tracer takes
    takes_images: bool = False

    @cached_property
    def pipeline_class(self) -> Any:
        return resolve(self.pipeline)

    def open(self, folder: "ModelFolder") -> Any:
        """The pipeline of a model folder of ours."""
        return self.pipeline_class.open(folder)

    def adopt(self, foreign: "Loaded") -> Any:
        """The pipeline of a model in another format."""
        return self.pipeline_class.adopt(foreign)

    def run(self, pipeline: Any, request: RunRequest) -> "Iterator[Answer | Note]":
        found: Iterator[Answer | Note] = resolve(self.runner)(pipeline, request)
        return found

    def evaluate(self, pipeline: Any, request: EvaluationRequest) -> dict[str, Any]:
        """The metrics; ConfigError for a request that this task does not take."""
        if self.evaluator is None:
            raise ConfigError(f"{request.folder} is a {pipeline.kind}, which has no scores; wanted one with a head")
        for name, typed in request.given().items():
            if name not in self.evaluation_takes:
                raise ConfigError(f"{typed} is not for {request.folder}, a model for {self.name}; leave it out")
        metrics: dict[str, Any] = resolve(self.evaluator)(pipeline, request)
        return metrics

    def trace_inputs(self, pipeline: Any, request: TraceRequest) -> "TraceInputs":
        """One input prepared for a trace; ConfigError if this task has no tracer."""
        if self.tracer is None:
            raise ConfigError(f"a model for {self.name} cannot be traced: its task has no tracer")
        for name, option in request.given().items():
            if name not in self.tracer_takes:
                raise ConfigError(f"{option} has no meaning for a model for {self.name}; leave it out")
        for text in request.inputs:
            if not text or (not text.strip() and pipeline.model.interface != "causal_lm"):
                raise InputError(f"got an empty input, {text!r}; wanted a text or an image that the model can look at")
        found: TraceInputs = resolve(self.tracer)(pipeline, request)
        return found

    def export_settings(self, pipeline: Any) -> Mapping[str, Any]:
        return {} if self.exporter is None else resolve(self.exporter)(pipeline)
