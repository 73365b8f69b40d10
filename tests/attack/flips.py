"""Flipped bits and cut files in model folders and checkpoints: each is found when the folder is opened.

Found means: our own error, which names the file. Where the manifest is damaged, it names the manifest, or the file that
differs from it. The one exception is a manifest that still says the same, because only whitespace was cut.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import regard
from regard.errors import RegardError
from regard.files import MANIFEST
from regard.training.run_folder import RunFolder
from tests.attack.harness import Case, Outcome, Row, attempt, error_faults, in_child
from tests.attack.runs import RECIPES, Recipe, place

FLIPS, QUICK_FLIPS = 2000, 50
COMMANDS, QUICK_COMMANDS = 100, 4  # of them by `regard info`
RESUMED, QUICK_RESUMED = 70, 2
SHARE_OF_CUTS = 0.25


@dataclass(frozen=True)
class Damage:
    """A file with one bit flipped, or cut short."""

    path: Path
    good: bytes
    bad: bytes
    name: str

    def is_named_in(self, line: str) -> bool:
        return self.path.name in line or (self.path.name == MANIFEST and "manifest" in line)

    @property
    def is_neutral(self) -> bool:
        """Whether it is a manifest that still says the same."""
        try:
            return self.path.name == MANIFEST and json.loads(self.bad) == json.loads(self.good)
        except ValueError:
            return False


def damage(path: Path, chance: random.Random) -> Damage:
    good = path.read_bytes()
    place = chance.randrange(len(good))
    if chance.random() < SHARE_OF_CUTS:
        return Damage(path, good, good[:place], f"{path.parent.name}/{path.name} cut to {place} bytes")
    bit = chance.randrange(8)
    bad = good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :]
    return Damage(path, good, bad, f"{path.parent.name}/{path.name}: bit {bit} of byte {place} flipped")


# ------------------------------------------------ opening


def flips(quick: bool) -> Iterator[Outcome]:
    """Open trained model folders, and checkpoints, with one file damaged."""
    chance = random.Random(9)
    commands, count = (QUICK_COMMANDS, QUICK_FLIPS) if quick else (COMMANDS, FLIPS)
    with ExitStack() as places:
        runs = []
        for recipe in RECIPES[:1] if quick else RECIPES:
            here = places.enter_context(place())
            assert here.train(recipe).code == 0
            runs.append(here.run)
        yield from in_child(lambda: [_open_damaged(chance.choice(runs), chance) for _ in range(count - commands)])
        for _ in range(commands):
            yield _ask_about_damaged(chance.choice(runs), chance)


def _open_damaged(run: Path, chance: random.Random) -> Outcome:
    newest = RunFolder(run).folders()[-1]
    folder, ways = chance.choice([(run, (_load,)), (newest, (_load, _read, _resume))])
    way = chance.choice(ways)
    damaged = damage(chance.choice(_listed(folder)), chance)
    damaged.path.write_bytes(damaged.bad)
    try:
        line = way(folder)
        faults = [] if damaged.is_named_in(line) else ["the error does not name the file"]
    except NotFoundError:
        line, faults = "", [] if damaged.is_neutral else ["not found"]
    except Exception as error:
        line, faults = f"{type(error).__name__}: {error}", ["not an error of regard's"]
    damaged.path.write_bytes(damaged.good)
    return Outcome(f"{way.__name__} {damaged.name}", faults, line)


def _listed(folder: Path) -> list[Path]:
    """The manifest and the files it lists, without empty ones."""
    names = [MANIFEST, *json.loads((folder / MANIFEST).read_bytes())]
    return [folder / name for name in names if (folder / name).stat().st_size]


class NotFoundError(Exception):
    """A damaged folder was opened."""


def _load(folder: Path) -> str:
    return _error_of(lambda: regard.load(folder))


def _read(folder: Path) -> str:
    return _error_of(lambda: RunFolder(folder.parent.parent).read(folder))


def _error_of(opening: Callable[[], object]) -> str:
    try:
        opening()
    except RegardError as error:
        return str(error)
    raise NotFoundError


def _resume(folder: Path) -> str:
    """The note of a run that resumes from the checkpoint before this one."""
    run = RunFolder(folder.parent.parent)
    before = run.folders()[-2]
    found, notes = run.newest()
    if found is not None and found.folder == folder:
        raise NotFoundError
    assert found is not None
    assert found.folder == before
    (damaged,) = folder.parent.glob("damaged-*")
    damaged.rename(folder)
    return notes[0]


def _ask_about_damaged(run: Path, chance: random.Random) -> Outcome:
    """`regard info` about a damaged folder, as a command."""
    damaged = damage(chance.choice(_listed(run)), chance)
    files = {f"m/{path.name}": path.read_bytes() for path in _listed(run)}
    files[f"m/{damaged.path.name}"] = damaged.bad
    return attempt(Case(f"regard info: {damaged.name}", ["info", "m"], files, accepted=damaged.is_neutral))


# ------------------------------------------------ resuming


def resumed(quick: bool) -> Iterator[Outcome]:
    """Damage any file of an unfinished run, and start it again: the weights of an undamaged run, or one clear line."""
    chance = random.Random(10)
    for number in range(QUICK_RESUMED if quick else RESUMED):
        yield _resume_damaged(RECIPES[number % (1 if quick else len(RECIPES))], chance)


def _resume_damaged(recipe: Recipe, chance: random.Random) -> Outcome:
    with place() as here:
        assert here.train(recipe).code == 0
        (here.run / MANIFEST).unlink()  # as if killed before the last checkpoint
        shutil.rmtree(RunFolder(here.run).folders()[-1])
        damaged = damage(chance.choice(sorted(_files_of(here.run))), chance)
        damaged.path.write_bytes(damaged.bad)
        done = here.train(recipe)
        refused = done.code != 0
        faults = list(error_faults(done, notes=True)) if refused else here.differences(recipe)
    return Outcome(f"{recipe.name}: {damaged.name}", faults, done.last_line)


def _files_of(run: Path) -> Iterator[Path]:
    return (path for path in run.rglob("*") if path.is_file() and path.stat().st_size)


ROWS: dict[str, Row] = {"flips and cuts of saved files": flips, "flips and cuts, then resumed": resumed}
