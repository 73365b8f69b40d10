"""A tap gives an inner value a name: its path in the model, such as `encoder.blocks.3.attention.weights`.

A tap is an identity module without parameters: until it is watched it changes no number, no saved file and no compiled
graph. Attention takes its written-out form, which computes scores and weights, only when one of its taps is watched.
`regard.inspection.capture` does the watching, `regard.inspection.interventions` the changing.
"""

from collections.abc import Callable

from torch import Tensor, nn

Watcher = Callable[[Tensor], Tensor | None]

_num_watchers = 0  # of all taps of all models: one cheap question where nothing is watched


def is_watching() -> bool:
    """Whether any tap of any model is watched."""
    return _num_watchers > 0


class Tap(nn.Module):
    """Pass a value through; each watcher gets it and may return another to replace it."""

    def __init__(self) -> None:
        super().__init__()
        self._watchers: tuple[Watcher, ...] = ()

    @property
    def watched(self) -> bool:
        return bool(self._watchers)

    def watch(self, watcher: Watcher, *, first: bool = False) -> Callable[[], None]:
        """Let a watcher see every value from now on; returns what ends it. `first`: before the watchers there are."""
        global _num_watchers

        def own(value: Tensor) -> Tensor | None:  # one function may watch a tap twice, and end once
            return watcher(value)

        self._watchers = (own, *self._watchers) if first else (*self._watchers, own)
        _num_watchers += 1
        return lambda: self._unwatch(own)

    def _unwatch(self, own: Watcher) -> None:
        global _num_watchers
        if own in self._watchers:
            self._watchers = tuple(other for other in self._watchers if other is not own)
            _num_watchers -= 1

    def forward(self, value: Tensor) -> Tensor:
        for watcher in self._watchers:  # any Python function: torch.compile traces it, or breaks the graph there
            replacement = watcher(value)
            value = value if replacement is None else replacement
        return value


def taps(model: nn.Module) -> dict[str, Tap]:
    """Every tap of a model by its path."""
    return {path: module for path, module in model.named_modules() if isinstance(module, Tap)}


def watched(model: nn.Module) -> bool:
    """Whether a tap of this model is watched."""
    return is_watching() and any(tap.watched for tap in taps(model).values())
