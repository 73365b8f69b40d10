"""The loop of a GRU as one differentiable function, for training.

Autograd records a node for every operation of every step, and accumulates the gradient of a weight step by step. Here
the backward pass is written out: only what depends on the step after it runs step by step, and the gradient of a weight
is one product over all steps at the end. Beside the matrix products, a step is one pass in C (gru_step.c,
additive_attention.c), or the operations of torch. The plain loops are in layers/recurrent.py and in the models; tests
compare.

    h = U s + b        reset, keep = σ(given + h)        new = tanh(given + reset · h)        s' = new + keep (s - new)

`given` is the projected input of each step, computed for all steps at once.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.ops import additive_attention
from regard.ops.dispatch import c_library

SAVED = 4  # tensors that a step saves for the backward pass: reset, keep, new, and U s + b of the new part


def _step(given: Tensor, projected: Tensor, state: Tensor, kept: Tensor, after: Tensor) -> None:
    """Write the state `after` (B, D) a state, and what the backward pass needs. `projected` may be a slice of rows."""
    width = state.shape[-1]
    library = c_library(given, projected, state, kept, after, has_backward=True)
    if library is not None:
        library.gru_step(
            given.data_ptr(),
            projected.data_ptr(),
            projected.stride(0),
            state.data_ptr(),
            kept.data_ptr(),
            after.data_ptr(),
            *state.shape,
            torch.get_num_threads(),
        )
        return
    torch.add(given[:, : 2 * width], projected[:, : 2 * width], out=kept[:, : 2 * width]).sigmoid_()
    reset, keep, new, projected_new = kept.split(width, dim=1)
    projected_new.copy_(projected[:, 2 * width :])
    torch.addcmul(given[:, 2 * width :], reset, projected_new, out=new).tanh_()
    torch.lerp(new, state, keep, out=after)


def _step_back(gradient: Tensor, state: Tensor, kept: Tensor, given: Tensor, projected: Tensor) -> Tensor:
    """Write the gradients of `given` and `projected` (B, 3 D); returns the part of the state's through `keep`."""
    width = state.shape[-1]
    library = c_library(gradient, state, kept, given, projected, has_backward=True)
    if library is not None:
        stays = torch.empty_like(state)
        library.gru_step_back(
            gradient.data_ptr(),
            state.data_ptr(),
            kept.data_ptr(),
            given.data_ptr(),
            projected.data_ptr(),
            projected.stride(0),
            stays.data_ptr(),
            *state.shape,
            torch.get_num_threads(),
        )
        return stays
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
        given = given.contiguous()
        states = given.new_empty(len(given) + 1, *state.shape)
        states[0] = state
        kept = given.new_empty(len(given), len(state), SAVED * state.shape[1])
        for step, projected_input in enumerate(given):
            projected = torch.addmm(bias, states[step], weight.t())
            _step(projected_input, projected, states[step], kept[step], states[step + 1])
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
            at_state = stays.addmm_(projected[step], weight)
        flat = projected.flatten(0, 1)
        return given, at_state, flat.t() @ states[:-1].flatten(0, 1), flat.sum(0)


class AttendingScan(torch.autograd.Function):
    """The same with additive attention at each step; states (T, B, D) and contexts (T, B, D).

    e_ti = v · tanh(W s_{t-1} + b + k_i), a_t = softmax(e_t), c_t = Σ a_ti h_i; C c_t is added to the projected input.
    W and U are one matrix while the loop runs: what both make of a state is one product.
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
        key, value, mask, score = (part.contiguous() for part in (key, value, mask, score))
        steps, rows, width = len(given), len(state), state.shape[1]
        states = given.new_empty(steps + 1, rows, width)
        states[0] = state
        contexts = given.new_empty(steps, rows, width)
        weights = given.new_empty(steps, rows, keys)
        asked = given.new_empty(steps, rows, inner)
        kept = given.new_empty(steps, rows, SAVED * width)
        both, both_bias = torch.cat([query, weight]), torch.cat([query_bias, bias])
        for step, projected_input in enumerate(given):
            before = states[step]
            product = torch.addmm(both_bias, before, both.t())
            asked[step] = product[:, :inner]
            additive_attention.forward(asked[step], key, value, mask, score, weights[step], contexts[step])
            projected_input = torch.addmm(projected_input, contexts[step], gates.t())
            _step(projected_input, product[:, inner:], before, kept[step], states[step + 1])
        ctx.save_for_backward(states, contexts, weights, asked, kept, key, value, mask, both, score, gates)
        return states[1:], contexts

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, by_context: Tensor) -> tuple[Tensor | None, ...]:
        states, contexts, weights, asked, kept, key, value, mask, both, score, gates = ctx.saved_tensors
        inner, wide = len(score), len(gates)
        given = states.new_empty(*gradient.shape[:2], wide)
        product = states.new_empty(*gradient.shape[:2], inner + wide)
        at_contexts = by_context.clone(memory_format=torch.contiguous_format)
        at_key, at_score = torch.zeros_like(key), torch.zeros_like(asked[0])
        at_state = torch.zeros_like(states[0])
        for step in reversed(range(len(gradient))):
            at_state += gradient[step]
            at_asked, projected = product[step].split([inner, wide], dim=1)
            stays = _step_back(at_state, states[step], kept[step], given[step], projected)
            at_contexts[step].addmm_(given[step], gates)
            at_asked.copy_(
                additive_attention.backward(
                    asked[step], key, value, mask, score, weights[step], at_contexts[step], at_key, at_score
                )
            )
            at_state = stays.addmm_(product[step], both)
        flat, flat_given = product.flatten(0, 1), given.flatten(0, 1)
        by_query, by_weight = (flat.t() @ states[:-1].flatten(0, 1)).split([inner, wide])
        by_query_bias, by_bias = flat.sum(0).split([inner, wide])
        return (
            given,
            at_state,
            at_key,
            torch.einsum("tbs,tbd->bsd", weights, at_contexts),
            None,
            by_weight,
            by_bias,
            by_query,
            by_query_bias,
            at_score.sum(0),
            flat_given.t() @ contexts.flatten(0, 1),
        )
