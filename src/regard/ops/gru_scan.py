"""The loop of a GRU as one differentiable function, for training.

Autograd records a node for every operation of every step, and accumulates the gradient of a weight step by step. Here
the backward pass is written out: only what depends on the step after it runs step by step, and the gradient of a weight
is one product over all steps at the end. The plain loops are in layers/recurrent.py and in the models; tests compare.

    h = U s + b        reset, keep = σ(given + h)        new = tanh(given + reset · h)        s' = new + keep (s - new)

`given` is the projected input of each step, computed for all steps at once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SAVED = 4  # tensors that a step saves for the backward pass: reset, keep, new, and U s + b of the new part


def _step(given: Tensor, projected: Tensor, state: Tensor, kept: Tensor) -> Tensor:
    width = state.shape[-1]
    torch.add(given[:, : 2 * width], projected[:, : 2 * width], out=kept[:, : 2 * width]).sigmoid_()
    reset, keep, new, projected_new = kept.split(width, dim=1)
    projected_new.copy_(projected[:, 2 * width :])
    torch.addcmul(given[:, 2 * width :], reset, projected_new, out=new).tanh_()
    return torch.lerp(new, state, keep)


def _step_back(gradient: Tensor, state: Tensor, kept: Tensor, given: Tensor, projected: Tensor) -> Tensor:
    """Write the gradients of `given` and `projected` (B, 3 D); returns the part of the state's through `keep`."""
    width = state.shape[-1]
    reset, keep, new, projected_new = kept.split(width, dim=1)
    by_keep = gradient * keep
    at_new = torch.mul(gradient - by_keep, 1 - new * new, out=given[:, 2 * width :])
    torch.mul(at_new * projected_new, reset - reset * reset, out=given[:, :width])
    torch.mul(by_keep - by_keep * keep, state - new, out=given[:, width : 2 * width])
    projected[:, : 2 * width] = given[:, : 2 * width]
    torch.mul(at_new, reset, out=projected[:, 2 * width :])
    return by_keep


def _check(given: Tensor, state: Tensor, **others: tuple[Tensor, tuple[int, ...]]) -> None:
    """Shapes and dtypes: writing into the states would convert and broadcast them silently."""
    if state.dim() != 2 or given.dim() != 3 or given.shape[1:] != (len(state), 3 * state.shape[1]):
        got = f"given is {tuple(given.shape)} and state {tuple(state.shape)}"
        raise ValueError(f"{got}, wanted (T, B, 3 D) and (B, D)")
    for name, (part, shape) in {"state": (state, tuple(state.shape)), **others}.items():
        if part.shape != shape or part.dtype is not given.dtype or part.device != given.device:
            got = f"{part.dtype} {tuple(part.shape)} on {part.device}"
            raise ValueError(f"{name} is {got}, wanted {given.dtype} {tuple(shape)} on {given.device}")


class GRUScan(torch.autograd.Function):
    """States (T, B, D) from the projected inputs (T, B, 3 D), the first state (B, D), and U and b."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        _check(given, state, weight=(weight, (given.shape[-1], state.shape[-1])), bias=(bias, given.shape[-1:]))
        states = given.new_empty(len(given) + 1, *state.shape)
        states[0] = state
        kept = given.new_empty(len(given), len(state), SAVED * state.shape[1])
        for step, projected_input in enumerate(given):
            projected = torch.addmm(bias, states[step], weight.t())
            states[step + 1] = _step(projected_input, projected, states[step], kept[step])
        ctx.save_for_backward(states, kept, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, kept, weight = ctx.saved_tensors
        given = states.new_empty(*gradient.shape[:2], len(weight))
        projected = torch.empty_like(given)
        at_state = torch.zeros_like(states[0])
        for step in reversed(range(len(gradient))):
            at_state += gradient[step]
            stays = _step_back(at_state, states[step], kept[step], given[step], projected[step])
            at_state = torch.addmm(stays, projected[step], weight)
        flat = projected.flatten(0, 1)
        return given, at_state, flat.t() @ states[:-1].flatten(0, 1), flat.sum(0)


class AttendingScan(torch.autograd.Function):
    """The same with additive attention at each step; states (T, B, D) and contexts (T, B, D).

    e_ti = v · tanh(W s_{t-1} + b + k_i), a_t = softmax(e_t), c_t = Σ a_ti h_i; C c_t is added to the projected input.
    """

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,  # (T, B, 3 D)
        state: Tensor,  # (B, D)
        key: Tensor,  # (B, S, K)
        value: Tensor,  # (B, S, D)
        mask: Tensor,  # (B, S), True = may attend
        weight: Tensor,  # (3 D, D) U
        bias: Tensor,  # (3 D,)
        query: Tensor,  # (K, D) W
        query_bias: Tensor,  # (K,)
        score: Tensor,  # (K,) v
        gates: Tensor,  # (3 D, D) C
    ) -> tuple[Tensor, Tensor]:
        wide, keys, inner = given.shape[-1], key.shape[-2], key.shape[-1]
        _check(
            given,
            state,
            key=(key, (len(state), keys, inner)),
            value=(value, (len(state), keys, state.shape[-1])),
            weight=(weight, (wide, state.shape[-1])),
            bias=(bias, (wide,)),
            query=(query, (inner, state.shape[-1])),
            query_bias=(query_bias, (inner,)),
            score=(score, (inner,)),
            gates=(gates, (wide, state.shape[-1])),
        )
        if mask.dtype is not torch.bool or mask.shape != (len(state), keys):
            raise ValueError(f"mask is {mask.dtype} {tuple(mask.shape)}, wanted bool ({len(state)}, {keys})")
        steps, rows, width = len(given), len(state), state.shape[1]
        states = given.new_empty(steps + 1, rows, width)
        states[0] = state
        contexts = given.new_empty(steps, rows, value.shape[-1])
        weights = given.new_empty(steps, rows, key.shape[1])
        pairs = given.new_empty(steps, *key.shape)
        kept = given.new_empty(steps, rows, SAVED * width)
        closed = torch.zeros_like(mask, dtype=given.dtype).masked_fill_(~mask, torch.finfo(given.dtype).min)
        for step, projected_input in enumerate(given):
            before = states[step]
            asked = torch.addmm(query_bias, before, query.t())
            torch.add(key, asked[:, None], out=pairs[step]).tanh_()
            weights[step] = torch.add(pairs[step] @ score, closed).softmax(-1)
            torch.bmm(weights[step][:, None], value, out=contexts[step][:, None])
            projected = torch.addmm(bias, before, weight.t())
            projected_input = torch.addmm(projected_input, contexts[step], gates.t())
            states[step + 1] = _step(projected_input, projected, before, kept[step])
        ctx.save_for_backward(states, contexts, weights, pairs, kept, value, weight, query, score, gates)
        return states[1:], contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, by_context: Tensor) -> tuple[Tensor | None, ...]:
        states, contexts, weights, pairs, kept, value, weight, query, score, gates = ctx.saved_tensors
        given = states.new_empty(*gradient.shape[:2], len(weight))
        projected = torch.empty_like(given)
        at_contexts = by_context.clone()
        at_scores = torch.empty_like(weights)
        asked = states.new_empty(*gradient.shape[:2], len(query))
        key = torch.zeros_like(pairs[0])
        at_state = torch.zeros_like(states[0])
        for step in reversed(range(len(gradient))):
            at_state += gradient[step]
            stays = _step_back(at_state, states[step], kept[step], given[step], projected[step])
            at_contexts[step].addmm_(given[step], gates)
            at_weights = torch.bmm(value, at_contexts[step][..., None]).squeeze(-1)  # (B, S)
            inner = (weights[step] * at_weights).sum(-1, keepdim=True)
            torch.mul(weights[step], at_weights - inner, out=at_scores[step])
            # tanh's slope at each pair, times v, times the score's gradient
            slope = torch.addcmul(score, pairs[step] * score, pairs[step], value=-1)
            slope *= at_scores[step][..., None]
            key += slope
            torch.sum(slope, dim=1, out=asked[step])
            at_state = torch.addmm(torch.addmm(stays, projected[step], weight), asked[step], query)
        before = states[:-1].flatten(0, 1)
        flat, flat_given, flat_asked = projected.flatten(0, 1), given.flatten(0, 1), asked.flatten(0, 1)
        return (
            given,
            at_state,
            key,
            torch.einsum("tbs,tbd->bsd", weights, at_contexts),
            None,
            flat.t() @ before,
            flat.sum(0),
            flat_asked.t() @ before,
            flat_asked.sum(0),
            (at_scores.flatten()[None] @ pairs.flatten(0, 2))[0],
            flat_given.t() @ contexts.flatten(0, 1),
        )
