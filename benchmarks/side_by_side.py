"""Ours beside a peer: they take turns in one process, medians are compared, one JSON line is printed."""

import json
import statistics
import time
from collections.abc import Callable

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


def report(bench: str, ours: float, peer: str, theirs: float, unit: str) -> None:
    line = {
        "bench": bench,
        "ours": round(ours, 1),
        "peer": peer,
        "theirs": round(theirs, 1),
        "ratio": round(ours / theirs, 2),
        "unit": unit,
    }
    print(json.dumps(line), flush=True)
