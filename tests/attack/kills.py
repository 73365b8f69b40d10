"""`regard train` killed at random moments and started again: the weights of an uninterrupted run, byte for byte."""

import os
import random
import signal
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from tests.attack.harness import Outcome, Row
from tests.attack.runs import RECIPES, Place, Recipe, place, uninterrupted

KILLS = 100
QUICK_KILLS = 2
KILLS_OF_ONE_RUN = 5  # at most; then it is left to end
SHARE_IN_SAVES = 0.3  # of the kills wait until a file or folder is half written


def kills(quick: bool) -> Iterator[Outcome]:
    """Kill run after run, of one kind after another."""
    chance = random.Random(11)
    left = QUICK_KILLS if quick else KILLS
    for recipe in cycle(RECIPES):
        outcomes = _kill_one_run(recipe, min(left, KILLS_OF_ONE_RUN), chance)
        yield from outcomes
        left -= len(outcomes)
        if not left:
            return


def _kill_one_run(recipe: Recipe, most: int, chance: random.Random) -> list[Outcome]:
    """Kill a run up to `most` times, let it end, and judge all these kills by how it ended."""
    names: list[str] = []
    with place() as here:
        while len(names) < most:
            seconds = chance.random() * uninterrupted(recipe).seconds
            in_save = chance.random() < SHARE_IN_SAVES
            if not _kill(here, recipe, seconds, in_save):
                break  # it ended before
            names.append(f"{recipe.name} killed after {seconds:.2f} s{', in a save' if in_save else ''}")
        faults = here.differences(recipe)
    return [Outcome(name, faults) for name in names]


def _kill(here: Place, recipe: Recipe, seconds: float, in_save: bool) -> bool:
    """Start a run, and kill it after these seconds, or at the next save after them. False: it ended before."""
    moment = time.monotonic() + seconds
    child = here.start(recipe)
    while time.monotonic() < moment or (in_save and not _is_saving(here.run)):
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _is_saving(folder: Path) -> bool:
    return any(any(path.glob(".new-*")) for path in (folder, folder / "checkpoints"))


ROWS: dict[str, Row] = {"kills of training": kills}
