"""Capture activations: watch the taps of a model while it runs.

with watch(model, "decoder.blocks.*.cross_attention.weights") as seen:
    model(source, target)
seen["decoder.blocks.0.cross_attention.weights"][0]      # (B, H, T, S), one a call
"""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.tap import Tap, Watcher, taps

Seen = dict[str, list[Tensor]]


@contextmanager
def watch(model: nn.Module, *patterns: str) -> Iterator[Seen]:
    """Capture the values of all taps whose path matches a pattern, one value a call.

    A pattern that matches no tap, and a tap that is never called inside the block, is an error.
    """
    chosen = _matching(model, patterns)
    seen: Seen = {path: [] for path in chosen}
    for path, tap in chosen.items():
        if tap.watched:
            raise InputError(f"tap {path} is already being watched; leave the other `with watch` block first")
        tap.watcher = _append_to(seen[path])
    try:
        yield seen
    finally:
        for tap in chosen.values():
            tap.watcher = None
    never_called = [path for path, values in seen.items() if not values]
    if never_called:
        raise InputError(f"tap {never_called[0]} was watched but never called; run the model inside the `with` block")


def _matching(model: nn.Module, patterns: tuple[str, ...]) -> dict[str, Tap]:
    named = taps(model)
    chosen: dict[str, Tap] = {}
    for pattern in patterns:
        found = {path: tap for path, tap in named.items() if fnmatchcase(path, pattern)}
        if not found:
            near = difflib.get_close_matches(pattern, named, n=1, cutoff=0.0)
            raise InputError(f"there is no tap {pattern}; the nearest is {near[0] if near else 'none'}")
        chosen |= found
    return chosen


def _append_to(values: list[Tensor]) -> Watcher:
    def append(value: Tensor) -> None:
        values.append(value.detach())

    return append
