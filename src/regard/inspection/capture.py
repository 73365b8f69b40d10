"""Capture inner values of a model by name, while it runs.

with capture(model, "decoder.blocks.*.cross_attention.weights") as captured:
    model(source, target)
captured["decoder.blocks.0.cross_attention.weights"][0]      # (B, H, T, S), one a call

A name is the path of a tap, or of a norm, a feed-forward network, an embedding or an attention's output projection,
whose output it then stands for. A pattern may have * and ?.
"""

import difflib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from typing import Any

from torch import Tensor, nn

from regard.errors import InputError
from regard.layers.convolution import GatedConvolution
from regard.layers.embeddings import Embedding, TextEmbedding
from regard.layers.feed_forward import FeedForward, GatedFeedForward
from regard.layers.tap import Tap

# Modules whose output can be captured: each is called once a pass and returns one tensor.
OBSERVABLE = (nn.LayerNorm, nn.RMSNorm, FeedForward, GatedFeedForward, GatedConvolution, Embedding, TextEmbedding)
Watcher = Callable[[Tensor], Tensor | None]


class Captured(dict[str, list[Tensor]]):
    """The values of each point by its path, one a call; `gradients` after a backward pass, where asked for."""

    @property
    def gradients(self) -> dict[str, list[Tensor]]:
        """The gradients of the values; InputError without a backward pass."""
        found: dict[str, list[Tensor]] = {}
        for path, values in self.items():
            grads = [value.grad for value in values]
            if any(grad is None for grad in grads):
                raise InputError(
                    f"{path} has no gradient; use capture(…, gradients=True), with gradients enabled, and call "
                    "backward() on what the model returned"
                )
            found[path] = [grad for grad in grads if grad is not None]
        return found


@contextmanager
def capture(model: nn.Module, *patterns: str, gradients: bool = False) -> Iterator[Captured]:
    """Capture the values of all points whose path matches a pattern, one value a call.

    A pattern that matches nothing, or nothing that is reached inside the block, is an error; of a pattern with * the
    points that were not reached are left out. With `gradients` the values stay in the graph of autograd, and keep their
    gradients.
    """
    captured = Captured((path, []) for path in matching_points(model, *patterns))
    with ExitStack() as stack:
        for path, values in captured.items():
            stack.callback(watch_point(model, path, _append_to(values, gradients)))
        yield captured
    for path in [path for path, values in captured.items() if not values]:
        del captured[path]
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in captured):
            raise InputError(f"{pattern} was captured but never reached; run the model inside the `with` block")


def points(model: nn.Module) -> dict[str, nn.Module]:
    """Every point of a model that can be captured or changed, by its path, in the order of the model."""
    found = {}
    for path, module in model.named_modules():
        is_output = path.rpartition(".")[2] == "output"  # of an attention, W_O; of a model, its matrix of logits
        if path.endswith("attention.output") or (isinstance(module, (Tap, *OBSERVABLE)) and not is_output):
            found[path] = module
    return found


def matching_points(model: nn.Module, *patterns: str) -> list[str]:
    """The paths that match a pattern, in the order of the patterns; InputError with the nearest names for none."""
    named = points(model)
    chosen: dict[str, None] = {}
    for pattern in patterns:
        found = [path for path in named if fnmatchcase(path, pattern)]
        if not found:
            near = difflib.get_close_matches(pattern, named, n=3, cutoff=0.0)
            raise InputError(f"there is no {pattern} in this model; the nearest are {', '.join(near) or 'none'}")
        chosen |= dict.fromkeys(found)
    return list(chosen)


def watch_point(model: nn.Module, path: str, watcher: Watcher, *, first: bool = False) -> Callable[[], None]:
    """Let a watcher see, and replace, the values of one point; returns what ends it."""
    module = model.get_submodule(path)
    if isinstance(module, Tap):
        return module.watch(watcher, first=first)

    def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor | None:
        return watcher(output)

    return module.register_forward_hook(hook, prepend=first).remove


def _append_to(values: list[Tensor], gradients: bool) -> Watcher:
    def append(value: Tensor) -> None:
        if gradients and value.requires_grad:
            value.retain_grad()
        values.append(value if gradients else value.detach())

    return append
