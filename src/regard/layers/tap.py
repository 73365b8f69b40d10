"""A tap gives an inner value a name: its path in the model, such as `encoder.blocks.3.attention.weights`.

A tap is an identity module without parameters: it changes no number, no saved file and no compiled graph
until somebody watches it. Attention asks its tap whether it is watched and only then takes the written-out
form, which has weights to show. `regard.inspection.capture` does the watching.
"""

from collections.abc import Callable

from torch import Tensor, nn

Watcher = Callable[[Tensor], Tensor | None]


class Tap(nn.Module):
    """Hand a value through; a watcher sees it and may answer with another to put in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.watcher: Watcher | None = None

    @property
    def watched(self) -> bool:
        return self.watcher is not None

    def forward(self, value: Tensor) -> Tensor:
        if self.watcher is None:
            return value
        answer = self.watcher(value)  # any Python function: a compiler traces it, or steps around what it cannot trace
        return value if answer is None else answer


def taps(model: nn.Module) -> dict[str, Tap]:
    """Every tap of a model by its path."""
    return {path: module for path, module in model.named_modules() if isinstance(module, Tap)}


def watched(model: nn.Module) -> bool:
    """Somebody watches a tap of this model."""
    return any(tap.watched for tap in taps(model).values())
