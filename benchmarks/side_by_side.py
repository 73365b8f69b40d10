"""Ours beside a peer: they take turns, medians are compared, one JSON line is printed."""

import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

Way = Callable[[], float]  # does some work and says how much, in the bench's unit of work


def speeds(ways: dict[str, Way], rounds: int) -> dict[str, float]:
    """Each way's median speed, work a second; a slow minute slows all of them. The first round is for warming up."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            begun = time.perf_counter()
            work = way()
            found[name].append(work / (time.perf_counter() - begun))
    return {name: statistics.median(values[1:]) for name, values in found.items()}


def apart(make: Callable[[], Way]) -> Way:
    """A way in a process of its own, as the peer's users run it: without our settings of memory, denormals and threads.

    `make` is a function of a module, called there once; the process waits while it is not its turn.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    ours = os.environ.pop("GOMP_SPINCOUNT", None)
    context.Process(target=_serve, args=(make, there), daemon=True).start()
    if ours is not None:
        os.environ["GOMP_SPINCOUNT"] = ours

    def way() -> float:
        here.send("go")
        return here.recv()

    return way


def _serve(make: Callable[[], Way], requests: Connection) -> None:
    way = make()
    with suppress(EOFError):  # the bench is over
        while requests.recv() == "go":
            requests.send(way())


def report(bench: str, ours: float, peer: str, theirs: float, unit: str) -> None:
    line = {
        "bench": bench,
        "ours": _short(ours),
        "peer": peer,
        "theirs": _short(theirs),
        "ratio": round(ours / theirs, 4 if unit.startswith("nats") else 2),
        "unit": unit,
    }
    print(json.dumps(line), flush=True)


def _short(value: float) -> float:
    """Four digits, or all before the point."""
    return round(value, 1) if value >= 100 else float(f"{value:.4g}")
