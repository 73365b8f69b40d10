"""From a recipe to a trained model folder: settings, data, model, loop, card. Running it again goes on."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pydantic import SerializeAsAny
from torch import nn

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
from regard.files import MANIFEST, encode_json, verify, write_file, write_files
from regard.models import build, kind_of
from regard.runtime import seed_everything
from regard.tasks.loading import load
from regard.training.loop import Report, TrainingConfig, is_over, train
from regard.training.run_folder import Progress, RunFolder

# What may change between two sittings of one run.
MAY_CHANGE = {
    "training.steps",
    "training.epochs",
    "training.minutes",
    "training.evaluate_every",
    "training.evaluate_on",
    "training.checkpoint_every",
    "training.keep",
    "training.patience",
    # How a step is computed, not what: recomputed it is the same to the last bits. So it is compiled, but that compiled
    # blocks draw their dropout by other random numbers.
    "training.activation_checkpointing",
    "training.compile",
}


class Run(Config):
    """The settings of one run; the command line changes them by their dotted names."""

    model: SerializeAsAny[Config]
    task: SerializeAsAny[Config]
    data: SerializeAsAny[Config]
    training: TrainingConfig


@dataclass(frozen=True)
class Given:
    """What the user gives a recipe to work on: data files, and a model to begin from."""

    paths: Sequence[Path] = ()
    start: Path | None = None

    @cached_property
    def model(self) -> Any:
        """The model to begin from, as `regard.load` gives it."""
        assert self.start is not None
        return load(self.start)


@dataclass(frozen=True)
class Prepared:
    """A task with its data, the model's config fitted to it, and what the user should know of it."""

    task: Any
    model: Config
    notes: list[str]
    start: Callable[[nn.Module], str] | None = None  # how a new model's weights begin, if not by chance alone; says so
    facts: Mapping[str, Any] = field(default_factory=dict)  # what the model folder keeps of the task, beside its name


@dataclass(frozen=True)
class Recipe:
    """The settings for what is given, and how to make the task of it."""

    name: str
    settings: Callable[[Given], Run]
    prepare: Callable[[Run, Given, Path], Prepared]  # the path is where the tokenizer is kept
    example: str  # a text to run the trained model on
    without_data: str | None = None  # what it learns from where the user names no files; None: it needs some
    starts: bool = False  # it can begin from a model that is there
    own_example: str = ""  # the same where the data are the user's, if the other is of the built-in world
    judged: bool = False  # at the end the model's scores are shown, as `regard evaluate` shows them


def train_recipe(recipe: Recipe, given: Given, assignments: Sequence[str], path: Path) -> Iterator[Report]:
    """Train a recipe into a folder, or go on there; yields the loop's reports. At the end it is a model folder."""
    if not given.paths and recipe.without_data is None:
        raise ConfigError(f"{recipe.name} needs data: regard train {recipe.name} FILE; `regard recipes {recipe.name}`")
    if given.start is not None and not recipe.starts:
        raise ConfigError(f"--from {given.start}: {recipe.name} begins from nothing; leave it out")
    run = override(recipe.settings(given), assignments)
    folder = RunFolder(path)
    with folder.locked(), folder.beginning():
        yield from (Report(0, note=note) for note in _settle(recipe, run, given, path))
        if _is_finished(path, folder, run):
            progress = folder.newest_progress() or Progress()
            yield Report(
                progress.step,
                validation=progress.best_validation or progress.validation,
                note=f"{path} is trained already, {progress.step:,} steps; for more, raise {_bound(run.training)}",
            )
            return
        prepared = recipe.prepare(run, given, path / TOKENIZER)
        yield from (Report(0, note=note) for note in prepared.notes)
        kind = kind_of(prepared.model)
        seed_everything(run.training.seed, 0)
        model = build(prepared.model)
        if prepared.start is not None:
            yield Report(0, note=prepared.start(model))
        kept = (name for name in (TOKENIZER, TOKENIZER_CONFIG) if (path / name).is_file())
        tokenizer = {name: (path / name).read_bytes() for name in kept}

        def files(card: str = "") -> dict[str, bytes]:
            return model_files(kind, model, {"name": prepared.task.name, **prepared.facts}, tokenizer, card)

        last = Report(0)
        for report in train(model, prepared.task, run.training, folder, files):
            last = replace(report, validation=report.validation or last.validation)
            yield report
        if not last.stopped:
            command = _command(recipe, given, assignments, path)
            write_files(path, files(_card(recipe, run, given, command, model, last)))


def _settle(recipe: Recipe, run: Run, given: Given, path: Path) -> list[str]:
    """Write down the settings of a new run; hold those of a resumed one against what is written. Gives notes."""
    notes = []
    settings = run.model_dump(mode="json")
    now = {
        "recipe": recipe.name,
        "data": [str(Path(p).resolve()) for p in given.paths],
        "from": None if given.start is None else _where(given.start),
        "threads": torch.get_num_threads(),
    }
    contents = None
    if not RunFolder(path).is_begun():  # what a failed start left decides nothing
        for name in (TOKENIZER, TOKENIZER_CONFIG):
            (path / name).unlink(missing_ok=True)
    elif (path / SETTINGS).exists():
        before = read_settings(path / SETTINGS)
        names = ("recipe", "data", "from")
        old = {name: before.get(name) for name in names} | _flat(before.get("settings", {}))
        new = {name: now[name] for name in names} | _flat(settings)
        old = _flat(recipe.settings(given).model_dump(mode="json")) | old  # a key of later days had its default then
        contents = before.get("contents", [])  # none in a run of before
        _check_same(path, old, new)
        _check_unchanged(path, given.paths, contents)
        if before.get("threads") != now["threads"]:
            notes.append(f"begun on {before.get('threads')} threads, now {now['threads']}: the last bits will differ")
    if contents is None:
        contents = [fingerprint(one) for one in given.paths]
    write_file(path / SETTINGS, encode_json({"format": FORMAT, **now, "contents": contents, "settings": settings}))
    return notes


def _check_same(path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for key in sorted(new.keys() | old.keys()):
        if old.get(key) != new.get(key) and key not in MAY_CHANGE:
            raise ConfigError(
                f"{path} was begun with {key}={old.get(key)}, now it is {new.get(key)}; "
                "give the same value to go on, or another -o to begin anew"
            )


def _check_unchanged(path: Path, data: Sequence[Path], contents: Sequence[str | None]) -> None:
    if changed := changed_since(data, contents):
        raise ConfigError(
            f"{changed[0]} has changed since {path} was begun with it; "
            "give it as it was to go on, or another -o to begin anew"
        )


def _where(start: Path) -> str:
    """A folder by its whole path, a name on the hub as it is."""
    return str(start.resolve() if start.exists() else start)


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _is_finished(path: Path, folder: RunFolder, run: Run) -> bool:
    """A whole model folder stands there, of a run that is over by these settings."""
    if not (path / MANIFEST).exists():
        return False
    try:
        verify(path)
        progress = folder.newest_progress()
    except FolderError:
        return False  # damaged: the checkpoints make it again
    return progress is None or is_over(progress, run.training)


def _bound(config: TrainingConfig) -> str:
    """The settings that end a run."""
    bounds = {"epochs": config.epochs, "minutes": config.minutes, "patience": config.patience}
    given = [f"training.{name}" for name, value in bounds.items() if value is not None]
    return " or ".join(["training.steps", *given])


def _command(recipe: Recipe, given: Given, assignments: Sequence[str], path: Path) -> str:
    """What was typed, or would be, for this run."""
    begun = [] if given.start is None else ["--from", str(given.start)]
    words = ["regard", "train", recipe.name, *map(str, given.paths), *begun, "-o", str(path), *assignments]
    return shlex.join(words)


def _card(recipe: Recipe, run: Run, given: Given, command: str, model: nn.Module, last: Report) -> str:
    """What this model is, for whoever finds the folder."""
    parameters = sum(p.numel() for p in model.parameters())
    data = ", ".join(path.name for path in given.paths) or recipe.without_data
    settings = run.model_copy(update={"model": model.config})  # as the data made it: the vocabulary, the symbols
    scores = "\n".join(f"- {name}: {value:.4f}" for name, value in last.validation.items())
    return (
        f"# {recipe.name}\n\n"
        f"A {kind_of(model.config)} of {parameters:,} parameters ({WEIGHTS}), trained with regard on {data}.\n\n"  # type: ignore[arg-type]
        f"Command: `{command}`, step {last.step}, seed {run.training.seed}.\n\n"
        f"Held-out scores at the last evaluation:\n\n{scores}\n\n"
        f"Settings:\n\n```json\n{json.dumps(settings.model_dump(mode='json'), indent=2)}\n```\n\n"
        f"Python {sys.version.split()[0]}, torch {torch.__version__}.\n"
    )
