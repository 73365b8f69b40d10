"""The step of additive attention in C is torch's, forward and backward, in its own rows only."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard import ops
from regard.ops import additive_attention
from tests.ops.forms import needs_kernels, num_threads, numbers

SIZES = [(1, 1, 1, 1), (3, 5, 7, 9), (2, 17, 16, 16), (5, 4, 33, 20)]  # rows, keys, K, D


def inputs(rows, keys, inner, width):
    mask = torch.arange(keys) < torch.arange(keys, keys - rows, -1).clamp(min=1)[:, None]
    parts = numbers(rows, inner), numbers(rows, keys, inner, seed=1), numbers(rows, keys, width, seed=2)
    return *parts, mask, numbers(inner, seed=3)


def forward(query, key, value, mask, score):
    weights, context = torch.empty(mask.shape, dtype=query.dtype), value.new_empty(len(query), value.shape[-1])
    additive_attention.forward(query, key, value, mask, score, weights, context)
    return weights, context


def backward(query, key, value, mask, score, weights):
    by_key, by_score = torch.ones_like(key), torch.ones_like(query)  # gradients are added to what is there
    outer = numbers(len(query), value.shape[-1], seed=4).to(query.dtype)
    by_query = additive_attention.backward(query, key, value, mask, score, weights, outer, by_key, by_score)
    return by_query, by_key, by_score


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_c_form_is_the_torch_form(sizes, threads):
    given = inputs(*sizes)
    with num_threads(threads):
        found = forward(*given)
        gradients = backward(*given, found[0])
    with ops.disabled():
        wanted = forward(*given)
        wanted_gradients = backward(*given, wanted[0])
    for one, other in zip((*found, *gradients), (*wanted, *wanted_gradients), strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kernels", [pytest.param(True, marks=needs_kernels), False])
def test_a_query_that_may_attend_to_nothing_gets_zeros(kernels):
    query, key, value, mask, score = inputs(3, 5, 7, 9)
    mask = mask.clone()
    mask[1] = False
    if kernels:
        weights, context = forward(query, key, value, mask, score)
        by_query, by_key, _ = backward(query, key, value, mask, score, weights)
    else:
        with ops.disabled():
            weights, context = forward(query, key, value, mask, score)
            by_query, by_key, _ = backward(query, key, value, mask, score, weights)
    assert not weights[1].any()
    assert not context[1].any()
    assert not by_query[1].any()
    assert (by_key[1] == 1).all()
    assert weights[0].sum() == pytest.approx(1)


@needs_kernels
def test_damage_stays_in_its_row():
    query, key, value, mask, score = inputs(3, 5, 7, 9)
    key[1, 0, 2] = math.nan
    weights, context = forward(query, key, value, mask, score)
    assert weights[1].isnan().any()
    assert context[1].isnan().all()
    assert context[[0, 2]].isfinite().all()


@needs_kernels
def test_tanh_is_torchs_from_tiny_to_huge():
    """One key for each number, v = 1: the score is tanh of the number; two of them make its softmax readable."""
    x = torch.cat([-torch.logspace(-6, 3, 50), torch.zeros(1), torch.logspace(-6, 3, 50)])
    query, key = torch.zeros(len(x), 1), torch.stack([x, torch.zeros_like(x)], 1)[..., None]
    mask = torch.ones(len(x), 2, dtype=torch.bool)
    weights, _ = forward(query, key, torch.ones(len(x), 2, 1), mask, torch.ones(1))
    assert_close((weights[:, 0] / weights[:, 1]).log(), x.tanh(), atol=1e-6, rtol=1e-5)
