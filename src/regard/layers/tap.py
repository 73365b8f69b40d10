"""A tap gives an inner value a name: its path in the model, such as `encoder.blocks.3.attention.weights`.

A tap is an identity module without parameters: until it is watched it changes no number, no saved file and no compiled
graph. Attention takes its written-out form, which computes the weights, only when its tap is watched.
`regard.inspection.capture` does the watching.
"""

from collections.abc import Callable

from torch import Tensor, nn

Watcher = Callable[[Tensor], Tensor | None]


class Tap(nn.Module):
    """Pass a value through; a watcher gets it and may return another to replace it."""

    def __init__(self) -> None:
        super().__init__()
        self.watcher: Watcher | None = None

    @property
    def watched(self) -> bool:
        return self.watcher is not None

    def forward(self, value: Tensor) -> Tensor:
        if self.watcher is None:
            return value
        replacement = self.watcher(value)  # any Python function: torch.compile traces it, or breaks the graph there
        return value if replacement is None else replacement


def taps(model: nn.Module) -> dict[str, Tap]:
    """Every tap of a model by its path."""
    return {path: module for path, module in model.named_modules() if isinstance(module, Tap)}


def watched(model: nn.Module) -> bool:
    """Whether a tap of this model is watched."""
    return any(tap.watched for tap in taps(model).values())
