"""The GRU's loop as one differentiable function, for training.

Autograd keeps a node for every small step of a loop and adds each word's share to a weight's gradient by itself. Here
the way back is written out: step by step only what waits for the step before it, and the gradients of the weights as
one product over all words at the end. The plain loops stand in recurrent.py and in the models; tests hold them equal.

    h = U s + b        reset, keep = σ(given + h)        new = tanh(given + reset · h)        s' = new + keep (s - new)
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

KEPT = 4  # what a step keeps for the way back, side by side: reset, keep, new, and U s + b of the new part


def _step(given: Tensor, projected: Tensor, state: Tensor, kept: Tensor) -> Tensor:
    width = state.shape[-1]
    torch.add(given[:, : 2 * width], projected[:, : 2 * width], out=kept[:, : 2 * width]).sigmoid_()
    reset, keep, new, projected_new = kept.split(width, dim=1)
    projected_new.copy_(projected[:, 2 * width :])
    torch.addcmul(given[:, 2 * width :], reset, projected_new, out=new).tanh_()
    return torch.lerp(new, state, keep)


def _step_back(gradient: Tensor, state: Tensor, kept: Tensor, given: Tensor, projected: Tensor) -> Tensor:
    """Write the gradients of `given` and `projected` (B, 3 D); gives that of the state as far as it was kept."""
    width = state.shape[-1]
    reset, keep, new, projected_new = kept.split(width, dim=1)
    by_keep = gradient * keep
    at_new = torch.mul(gradient - by_keep, 1 - new * new, out=given[:, 2 * width :])
    torch.mul(at_new * projected_new, reset - reset * reset, out=given[:, :width])
    torch.mul(by_keep - by_keep * keep, state - new, out=given[:, width : 2 * width])
    projected[:, : 2 * width] = given[:, : 2 * width]
    torch.mul(at_new, reset, out=projected[:, 2 * width :])
    return by_keep


class GRUScan(torch.autograd.Function):
    """States (T, B, D) from what the words give (T, B, 3 D), a first state (B, D), and the hidden map."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        states = given.new_empty(len(given) + 1, *state.shape)
        states[0] = state
        kept = given.new_empty(len(given), len(state), KEPT * state.shape[1])
        for place, word in enumerate(given):
            projected = torch.addmm(bias, states[place], weight.t())
            states[place + 1] = _step(word, projected, states[place], kept[place])
        ctx.save_for_backward(states, kept, weight)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, kept, weight = ctx.saved_tensors
        given = states.new_empty(*gradient.shape[:2], len(weight))
        projected = torch.empty_like(given)
        at_state = torch.zeros_like(states[0])
        for place in reversed(range(len(gradient))):
            at_state += gradient[place]
            stays = _step_back(at_state, states[place], kept[place], given[place], projected[place])
            at_state = torch.addmm(stays, projected[place], weight)
        flat = projected.flatten(0, 1)
        return given, at_state, flat.t() @ states[:-1].flatten(0, 1), flat.sum(0)


class AttendingScan(torch.autograd.Function):
    """The same with additive attention at each step; states (T, B, D) and contexts (T, B, D).

    e_ti = v · tanh(W s_{t-1} + b + k_i), a_t = softmax(e_t), c_t = Σ a_ti h_i, and C c_t is added to what a word gives.
    """

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,  # (T, B, 3 D)
        state: Tensor,  # (B, D)
        key: Tensor,  # (B, S, K)
        value: Tensor,  # (B, S, D)
        mask: Tensor,  # (B, S), True = may look
        weight: Tensor,  # (3 D, D) U
        bias: Tensor,  # (3 D,)
        query: Tensor,  # (K, D) W
        query_bias: Tensor,  # (K,)
        score: Tensor,  # (K,) v
        gates: Tensor,  # (3 D, D) C
    ) -> tuple[Tensor, Tensor]:
        hidden, rows, width = len(given), len(state), state.shape[1]
        states = given.new_empty(hidden + 1, rows, width)
        states[0] = state
        contexts = given.new_empty(hidden, rows, value.shape[-1])
        weights = given.new_empty(hidden, rows, key.shape[1])
        pairs = given.new_empty(hidden, *key.shape)
        kept = given.new_empty(hidden, rows, KEPT * width)
        closed = torch.zeros_like(mask, dtype=given.dtype).masked_fill_(~mask, torch.finfo(given.dtype).min)
        for place, word in enumerate(given):
            before = states[place]
            asked = torch.addmm(query_bias, before, query.t())
            torch.add(key, asked[:, None], out=pairs[place]).tanh_()
            weights[place] = torch.add(pairs[place] @ score, closed).softmax(-1)
            torch.bmm(weights[place][:, None], value, out=contexts[place][:, None])
            projected = torch.addmm(bias, before, weight.t())
            word = torch.addmm(word, contexts[place], gates.t())
            states[place + 1] = _step(word, projected, before, kept[place])
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
        for place in reversed(range(len(gradient))):
            at_state += gradient[place]
            stays = _step_back(at_state, states[place], kept[place], given[place], projected[place])
            at_contexts[place].addmm_(given[place], gates)
            at_weights = torch.bmm(value, at_contexts[place][..., None]).squeeze(-1)  # (B, S)
            inner = (weights[place] * at_weights).sum(-1, keepdim=True)
            torch.mul(weights[place], at_weights - inner, out=at_scores[place])
            # tanh's slope at each pair, times v, times the score's gradient
            slope = torch.addcmul(score, pairs[place] * score, pairs[place], value=-1)
            slope *= at_scores[place][..., None]
            key += slope
            torch.sum(slope, dim=1, out=asked[place])
            at_state = torch.addmm(torch.addmm(stays, projected[place], weight), asked[place], query)
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
            at_scores.flatten() @ pairs.flatten(0, 2),
            flat_given.t() @ contexts.flatten(0, 1),
        )
