"""Change inner values of a model while it runs, and measure what that does to its output.

with intervene(model, [switch_off("blocks.0.attention", head=3)]):
    model(ids)

Attention is not importance: a head may have a large weight and no effect. `sweep` switches off each head in turn.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import InputError
from regard.inspection.capture import matching_points, watch_point
from regard.inspection.trace import AttentionInfo, attentions_of, tap_of


@dataclass(frozen=True)
class Intervention:
    """A change of the values of one point, and in words what it is."""

    path: str
    change: Callable[[Tensor], Tensor]
    description: str


@contextmanager
def intervene(model: nn.Module, interventions: Sequence[Intervention]) -> Iterator[list[str]]:
    """Apply the changes while the block runs, before anything else sees the values; yields their descriptions."""
    with ExitStack() as stack:
        for one in reversed(interventions):
            path, *others = matching_points(model, one.path)
            if others:
                raise InputError(f"{one.path} is {path}, {others[0]}, …; an intervention changes one point, name it")
            stack.callback(watch_point(model, path, one.change, first=True))
        yield [one.description for one in interventions]


# ------------------------------------------------ the changes


def switch_off(attention: str, head: int, by: Literal["zero", "mean"] = "zero") -> Intervention:
    """A head whose output is zero, or at every position its mean over all positions."""

    def change(outputs: Tensor) -> Tensor:
        _check_head(attention, head, outputs)
        changed = outputs.clone()
        changed[:, head] = 0.0 if by == "zero" else outputs[:, head].mean(1, keepdim=True)
        return changed

    return Intervention(tap_of(attention, "head_outputs"), change, f"{attention}: head {head} switched off ({by})")


def scale_head(attention: str, head: int, factor: float) -> Intervention:
    """A head whose output is multiplied."""

    def change(outputs: Tensor) -> Tensor:
        _check_head(attention, head, outputs)
        changed = outputs.clone()
        changed[:, head] *= factor
        return changed

    return Intervention(tap_of(attention, "head_outputs"), change, f"{attention}: head {head} times {factor:g}")


def force_attention(attention: str, head: int, query: int, key: int) -> Intervention:
    """One query of a head attends to one key alone."""

    def change(weights: Tensor) -> Tensor:
        _check_head(attention, head, weights)
        if not (0 <= query < weights.shape[2] and 0 <= key < weights.shape[3]):
            queries, keys = weights.shape[2:]
            raise InputError(f"query {query} and key {key}: wanted 0 to {queries - 1} and 0 to {keys - 1}")
        changed = weights.clone()
        changed[:, head, query] = 0.0
        changed[:, head, query, key] = 1.0
        return changed

    return Intervention(
        tap_of(attention, "weights"), change, f"{attention}: head {head}, query {query} attends to key {key} alone"
    )


def patch_attention(attention: str, weights: np.ndarray, head: int | None = None) -> Intervention:
    """The attention weights (heads, T, S) of another input; of one head or of all."""

    def change(own: Tensor) -> Tensor:
        if tuple(own.shape[1:]) != weights.shape:
            raise InputError(
                f"{attention} has weights {tuple(own.shape[1:])}, the other input {weights.shape}; "
                "wanted texts of as many tokens"
            )
        if head is not None:
            _check_head(attention, head, own)
        other = torch.as_tensor(weights, dtype=own.dtype, device=own.device)[None]
        changed = own.clone()
        chosen = slice(None) if head is None else head
        changed[:, chosen] = other[:, chosen]
        return changed

    return Intervention(tap_of(attention, "weights"), change, f"{attention}: attention of another input")


def patch(path: str, position: int, value: np.ndarray) -> Intervention:
    """The value (D,) of another input at one position of a residual, a norm or a feed-forward network."""

    def change(hidden: Tensor) -> Tensor:
        if not 0 <= position < hidden.shape[1] or value.shape != tuple(hidden.shape[2:]):
            raise InputError(f"{path} is {tuple(hidden.shape[1:])}; got a value {value.shape} for position {position}")
        changed = hidden.clone()
        changed[:, position] = torch.as_tensor(value, dtype=hidden.dtype, device=hidden.device)
        return changed

    return Intervention(path, change, f"{path}: position {position} of another input")


def parse_switch(text: str) -> Intervention:
    """What --off PATH:HEAD says: "blocks.0.attention:3"."""
    path, colon, head = text.rpartition(":")
    if not colon or not head.isdecimal():
        raise InputError(
            f"--off {text}: wanted PATH:HEAD, such as blocks.0.attention:3; see `regard show MODEL --list`"
        )
    return switch_off(path, int(head))


def parse_switches(texts: Sequence[str], model: nn.Module) -> list[Intervention]:
    """What several --off say; InputError with the nearest names for an attention that the model does not have."""
    found = [parse_switch(text) for text in texts]
    known = [one.path for one in attentions_of(model)]
    for path in (text.rpartition(":")[0] for text in texts):
        if path not in known:
            near = difflib.get_close_matches(path, known, n=3, cutoff=0.0)
            raise InputError(f"--off: there is no attention {path}; the nearest are {', '.join(near) or 'none'}")
    return found


def _check_head(attention: str, head: int, values: Tensor) -> None:
    if not 0 <= head < values.shape[1]:
        raise InputError(f"{attention} has heads 0 to {values.shape[1] - 1}; got head {head}")


# ------------------------------------------------ their effect


@dataclass(frozen=True)
class Effect:
    """How much the log probability of the model's choice falls when one head is switched off."""

    attention: AttentionInfo
    head: int
    drop: float


def choice_log_probability(output: Any, position: int | None, choice: int | None = None) -> tuple[float, int]:
    """The log probability of a choice in the model's output, and the choice; None: the most probable one.

    `output` is logits (1, T, V) of positions, (1, C) of a row, or (1,) of whether two things match; of several outputs
    the first.
    """
    logits = output if isinstance(output, Tensor) else output[0]
    if isinstance(logits, Tensor) and logits.dim() == 1:
        return float(nn.functional.logsigmoid(logits[0])), 0
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        raise InputError("this model has no head whose choice could be measured")
    row = logits[0] if logits.dim() == 2 else logits[0, -1 if position is None else position]
    scores = row.float().log_softmax(-1)
    chosen = int(scores.argmax()) if choice is None else choice
    return float(scores[chosen]), chosen


@torch.inference_mode()
def sweep(
    model: nn.Module,
    forward: Callable[[], Any],
    position: int | None = None,
    by: Literal["zero", "mean"] = "zero",
    choice: int | None = None,
    track: Callable[[Sequence[Any]], Iterable[Any]] = list,
) -> list[Effect]:
    """Switch off each head of each attention in turn: which heads matter for what the model chose at a position?

    `track` wraps the loop over the heads, to show its progress.
    """
    base, choice = choice_log_probability(forward(), position, choice)
    found = []
    heads = [(one, head) for one in attentions_of(model) for head in range(num_heads(model, one.path))]
    for attention, head in track(heads):
        with intervene(model, [switch_off(attention.path, head, by)]):
            changed, _ = choice_log_probability(forward(), position, choice)
        found.append(Effect(attention, head, base - changed))
    return found


def num_heads(model: nn.Module, attention: str) -> int:
    """How many heads an attention has; one that does not split its width has one."""
    return int(getattr(model.get_submodule(attention), "heads", 1))
