"""What a recipe is, and how one is trained: settings, data, model, training loop, model folder.

A recipe gives the settings of a run and a function that prepares its task; `train_recipe` does the rest. Running the
same command again resumes the run.
"""

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from pydantic import SerializeAsAny
from torch import Tensor, nn

from regard import extensions, processes, renamed
from regard.checkpoint import (
    FORMAT,
    SETTINGS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    model_files,
    read_settings,
)
from regard.config import Config, override
from regard.data.stores.cache import changed_since, fingerprint
from regard.errors import ConfigError, FolderError
from regard.files import MANIFEST, Files, encode_json, verify, write_file, write_files
from regard.models import build, kind_of
from regard.runtime import Runtime, seed_everything
from regard.tasks.loading import load
from regard.training.config import TrainingConfig
from regard.training.loop import Report, evaluate, train
from regard.training.parallel import Parallel
from regard.training.run_folder import Progress, RunFolder
from regard.training.schedule import is_over

# Settings that may change when a run is resumed.
MAY_CHANGE = {
    "training.steps",
    "training.epochs",
    "training.minutes",
    "training.evaluate_every",
    "training.evaluate_examples",
    "training.checkpoint_every",
    "training.keep_checkpoints",
    "training.patience",
    # How a step is computed, not what: activation checkpointing gives the same up to the last bits. So does
    # torch.compile, except that compiled blocks draw other random numbers for dropout.
    "training.activation_checkpointing",
    "training.compile",
    # Nor do the processes that share it: the losses are those of one.
    "training.parallel",
    "training.backend",
    "training.timeout",
}

Data = TypeVar("Data", bound=Config)
Model = TypeVar("Model", bound=Config)
Task = TypeVar("Task", bound=Config)


class RunConfig(Config, Generic[Data, Model, Task]):
    """The settings of one run. The command line changes them by their dotted names: model.layers=4."""

    model: SerializeAsAny[Model]
    task: SerializeAsAny[Task]
    data: SerializeAsAny[Data]
    training: TrainingConfig


@dataclass(frozen=True)
class TrainingInputs:
    """What the user gives a recipe: data files, and a pretrained model to start from."""

    paths: Sequence[Path] = ()
    pretrained: Path | None = None

    @cached_property
    def pipeline(self) -> Any:
        """The pretrained model, as `regard.load` returns it."""
        assert self.pretrained is not None
        return load(self.pretrained)


@dataclass(frozen=True)
class PreparedTask:
    """A task with its data, the model config fitted to the data, and notes for the user."""

    task: Any
    model: Config
    notes: list[str]
    warm_start: Callable[[nn.Module], str] | None = None  # sets initial weights of a new model; returns a note
    facts: Mapping[str, Any] = field(default_factory=dict)  # stored beside the task's name in the model folder
    finish: Callable[[nn.Module], dict[str, bytes]] | None = None  # further files of the trained model, by name


@dataclass(frozen=True)
class Recipe(Generic[Data, Model, Task]):
    """A reproducible run: its settings for the user's inputs, and the function that prepares its task."""

    name: str
    settings: Callable[[TrainingInputs], RunConfig[Data, Model, Task]]
    prepare: Callable[[RunConfig[Data, Model, Task], TrainingInputs, Path], PreparedTask]  # Path: the tokenizer file
    example: str  # an input to try the trained model on
    default_data: str | None = None  # what it trains on without data files; None: it needs files
    accepts_files: bool = True
    accepts_pretrained: bool = False  # --from MODEL
    own_example: str = ""  # `example` for the user's own data, where the other fits the default data only
    takes_image: bool = False  # the input is an image, and `example` the text about it
    evaluate_at_end: bool = False  # print the scores of `regard evaluate` after training
    earlier_defaults: Mapping[str, Any] = field(default_factory=dict)  # that have changed; older runs keep them
    code: extensions.CodeFile | None = None  # the user's file that it stands in; None: regard's, or a package's


def train_recipe(
    recipe: Recipe[Any, Any, Any],
    inputs: TrainingInputs,
    assignments: Sequence[str],
    path: Path,
    runtime: Runtime | None = None,
) -> Iterator[Report]:
    """Train a recipe into a folder, or resume the run there; yields the loop's reports. Ends with a model folder."""
    runtime = runtime or Runtime()
    _check_inputs(recipe, inputs)
    if (renamed_to := renamed.recipe_for(recipe.name, assignments)) is not None:
        raise ConfigError(f"data.ask is now a recipe of its own: regard train {renamed_to}")
    assignments = [*_earlier_defaults(recipe, inputs, path), *assignments]
    run = override(recipe.settings(inputs), assignments, f"regard recipes {_typed_name(recipe)} --settings")
    folder = RunFolder(path, writes=runtime.is_main)
    with ExitStack() as stack:
        with processes.main_first("settings"):
            stack.enter_context(folder.locked())
            stack.enter_context(folder.removed_on_failure())
            notes = _write_settings(recipe, run, inputs, path, runtime) if runtime.is_main else []
        yield from (Report(0, note=note) for note in notes)
        if processes.tell("finished", lambda: _is_finished(path, folder, run)):
            progress = folder.newest_progress() or Progress()
            yield Report(
                progress.step,
                validation=progress.best_validation or progress.validation,
                note=f"{path} is trained already, {progress.step:,} steps; for more, raise {_limits(run.training)}",
            )
            return
        with processes.main_first("data"):  # the others find the tokenizer, and the cached data
            folder.check_tokenizer()
            prepared = recipe.prepare(run, inputs, path / TOKENIZER)
        processes.start(runtime, run.training.backend, run.training.timeout)
        yield from (Report(0, note=note) for note in prepared.notes)
        kind = kind_of(prepared.model)
        seed_everything(run.training.seed, 0)
        model = build(prepared.model)
        if prepared.warm_start is not None:
            yield Report(0, note=prepared.warm_start(model))
        written = (name for name in (TOKENIZER, TOKENIZER_CONFIG) if (path / name).is_file())
        tokenizer = {name: (path / name).read_bytes() for name in written}

        def files(weights: Mapping[str, Tensor], card: str = "") -> dict[str, bytes]:
            return model_files(kind, model, {"name": prepared.task.name, **prepared.facts}, tokenizer, card, weights)

        last = Report(0)
        for report in _reports(model, prepared.task, run.training, folder, files, runtime):
            last = replace(report, validation=report.validation or last.validation)
            yield report
        if not last.stopped:
            with processes.main_first("model"):
                if runtime.is_main:
                    if last.weights is not None:  # the model is sharded
                        model = build(prepared.model)
                        model.load_state_dict(last.weights)
                    card = _card(recipe, run, inputs, _command(recipe, inputs, assignments, path), model, last)
                    further = prepared.finish(model) if prepared.finish else {}
                    write_files(path, {**files(model.state_dict(), card), **further})


def _reports(
    model: nn.Module,
    task: Any,
    config: TrainingConfig,
    folder: RunFolder,
    files: Callable[[Mapping[str, Tensor]], Files],
    runtime: Runtime,
) -> Iterator[Report]:
    """Train the model; one without parameters, an n-gram model, has counted in `prepare`, and is only evaluated."""
    if next(model.parameters(), None) is not None:
        yield from train(model, task, config, folder, files, runtime)
        return
    scores = evaluate(Parallel(model, task, runtime), task, config)
    yield Report(0, validation=scores, note=f"nothing to train by gradients; validation loss {scores['loss']:.3f}")


def _check_inputs(recipe: Recipe[Any, Any, Any], inputs: TrainingInputs) -> None:
    if not inputs.paths and recipe.default_data is None:
        raise ConfigError(f"{recipe.name} needs data: regard train {recipe.name} FILE; `regard recipes {recipe.name}`")
    if inputs.paths and not recipe.accepts_files:
        raise ConfigError(f"{inputs.paths[0]}: {recipe.name} trains on {recipe.default_data} only; leave files out")
    if inputs.pretrained is not None and not recipe.accepts_pretrained:
        raise ConfigError(f"--from {inputs.pretrained}: {recipe.name} takes no pretrained model; leave --from out")


def _write_settings(
    recipe: Recipe[Any, Any, Any],
    run: RunConfig[Any, Any, Any],
    inputs: TrainingInputs,
    path: Path,
    runtime: Runtime,
) -> list[str]:
    """Write run.json; if the run is resumed, check the settings against those written before. Returns notes."""
    notes = []
    settings = run.model_dump(mode="json")
    now = {
        "recipe": recipe.name,
        "data": [str(Path(p).resolve()) for p in inputs.paths],
        "from": None if inputs.pretrained is None else _full_path(inputs.pretrained),
        "threads": runtime.threads,
        **_code_of(recipe),
        "device": runtime.device.type,
        "dtype": runtime.dtype_name,
    }
    contents = None
    if not RunFolder(path).has_started():  # files of a failed start do not count
        for name in (TOKENIZER, TOKENIZER_CONFIG):
            (path / name).unlink(missing_ok=True)
    elif (path / SETTINGS).exists():
        before = read_settings(path / SETTINGS)
        names = ("recipe", "data", "from")
        old = {name: before.get(name) for name in names} | _flat(before.get("settings", {}))
        new = {name: now[name] for name in names} | _flat(settings)
        defaults = _flat(recipe.settings(inputs).model_dump(mode="json")) | dict(recipe.earlier_defaults)
        old = defaults | old  # keys added since had their defaults
        contents = before.get("contents", [])  # missing in early runs
        _check_same_settings(path, old, new)
        _check_same_code(path, before, now)
        _check_same_data(path, inputs.paths, contents)
        notes += _changed_notes(before, now)
    if contents is None:
        contents = [fingerprint(one) for one in inputs.paths]
    write_file(path / SETTINGS, encode_json({"format": FORMAT, **now, "contents": contents, "settings": settings}))
    return notes


def _earlier_defaults(recipe: Recipe[Any, Any, Any], inputs: TrainingInputs, path: Path) -> list[str]:
    """Assignments for a run that was started before a default of its recipe changed: it keeps the one it had."""
    if not (recipe.earlier_defaults and RunFolder(path).has_started() and (path / SETTINGS).exists()):
        return []
    before = _flat(read_settings(path / SETTINGS).get("settings", {}))
    now = _flat(recipe.settings(inputs).model_dump(mode="json"))
    return [
        f"{key}={value}"
        for key, value in recipe.earlier_defaults.items()
        if before.get(key, value) == value != now.get(key)
    ]


def _changed_notes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """A note for everything that may change when a run is resumed, and changes its numbers."""
    notes = []
    if before.get("threads") != now["threads"] and now["device"] == "cpu":
        notes.append(f"started on {before.get('threads')} threads, now {now['threads']}: the last bits will differ")
    if (device := before.get("device", "cpu")) != now["device"]:
        notes.append(f"started on {device}, now on {now['device']}: the last bits, and the dropped units, will differ")
    if (dtype := before.get("dtype", "float32")) != now["dtype"]:
        notes.append(f"started in {dtype}, now in {now['dtype']}: the numbers will differ")
    return notes


def _check_same_settings(path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for key in sorted(new.keys() | old.keys()):
        if old.get(key) != new.get(key) and key not in MAY_CHANGE:
            raise ConfigError(
                f"{path} was started with {key}={old.get(key)}, now it is {new.get(key)}; "
                "give the same value to resume it, or another -o to start a new run"
            )


def _check_same_data(path: Path, data: Sequence[Path], contents: Sequence[str | None]) -> None:
    if changed := changed_since(data, contents):
        raise ConfigError(
            f"{changed[0]} has changed since {path} was started; "
            "restore it to resume the run, or give another -o to start a new one"
        )


def _code_of(recipe: Recipe[Any, Any, Any]) -> dict[str, Any]:
    """Of a recipe in a user's file: where it is, and its SHA-256."""
    return {} if recipe.code is None else {"source": str(recipe.code.path), "code": recipe.code.sha256}


def _check_same_code(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if before.get("code") != now.get("code"):
        raise ConfigError(
            f"{now.get('source')} has changed since {path} was started; "
            "restore it to resume the run, or give another -o to start a new one"
        )


def _full_path(pretrained: Path) -> str:
    """The full path of a folder; a name on the Hugging Face hub unchanged."""
    return str(pretrained.resolve() if pretrained.exists() else pretrained)


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _is_finished(path: Path, folder: RunFolder, run: RunConfig[Any, Any, Any]) -> bool:
    """Whether the folder holds a complete model, of a run that is over by these settings."""
    if not (path / MANIFEST).exists():
        return False
    try:
        verify(path)
        progress = folder.newest_progress()
    except FolderError:
        return False  # damaged: it is written again from the checkpoints
    return progress is None or is_over(progress, run.training)


def _limits(config: TrainingConfig) -> str:
    """The settings that end a run."""
    limits = {"epochs": config.epochs, "minutes": config.minutes, "patience": config.patience}
    given = [f"training.{name}" for name, value in limits.items() if value is not None]
    return " or ".join(["training.steps", *given])


def _typed_name(recipe: Recipe[Any, Any, Any]) -> str:
    """The name of a recipe on the command line."""
    return recipe.name if recipe.code is None else f"{recipe.code.path}:{recipe.name.rpartition(':')[2]}"


def _command(recipe: Recipe[Any, Any, Any], inputs: TrainingInputs, assignments: Sequence[str], path: Path) -> str:
    """The command line of this run."""
    pretrained = [] if inputs.pretrained is None else ["--from", str(inputs.pretrained)]
    parts = [
        "regard",
        "train",
        _typed_name(recipe),
        *map(str, inputs.paths),
        *pretrained,
        "-o",
        str(path),
        *assignments,
    ]
    return shlex.join(parts)


def _card(
    recipe: Recipe[Any, Any, Any],
    run: RunConfig[Any, Any, Any],
    inputs: TrainingInputs,
    command: str,
    model: nn.Module,
    last: Report,
) -> str:
    """The model card, for whoever finds the folder."""
    parameters = sum(p.numel() for p in model.parameters())
    data = ", ".join(path.name for path in inputs.paths) or recipe.default_data
    config: Any = model.config  # with vocabulary and special ids of the data
    settings = run.model_copy(update={"model": config})
    scores = "\n".join(f"- {name}: {value:.4f}" for name, value in last.validation.items())
    return (
        f"# {recipe.name}\n\n"
        f"A {kind_of(config)} of {parameters:,} parameters ({WEIGHTS}), trained with regard on {data}.\n\n"
        f"Command: `{command}`, step {last.step}, seed {run.training.seed}.\n\n"
        f"Held-out scores at the last evaluation:\n\n{scores}\n\n"
        f"Settings:\n\n```json\n{json.dumps(settings.model_dump(mode='json'), indent=2)}\n```\n\n"
        f"Python {sys.version.split()[0]}, torch {torch.__version__}.\n"
    )


class SavedTokenizer(Protocol):
    """A tokenizer that is stored as files."""

    @classmethod
    def load_saved(cls, folder: Path) -> Self: ...

    def to_files(self) -> dict[str, bytes]: ...


Saved = TypeVar("Saved", bound=SavedTokenizer)


def load_or_make_tokenizer(kind: type[Saved], file: Path, make: Callable[[], Saved]) -> Saved:
    """The tokenizer stored in the run's folder, or a new one, which is stored there."""
    if file.exists():
        return kind.load_saved(file.parent)
    tokenizer = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(tokenizer.to_files().items(), reverse=True):  # tokenizer.json last: it is checked above
        write_file(file.with_name(name), content)
    return tokenizer
