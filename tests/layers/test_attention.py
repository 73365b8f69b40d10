"""Attention: the lectures' numbers, and the two forms held equal."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.inspection.capture import capture
from regard.layers import masks
from regard.layers.attention import (
    Additive,
    Dot,
    MultiHeadAttention,
    ScaledDot,
    SelfAttention,
    attend,
    attend_written_out,
)
from regard.layers.kv_cache import KVCache
from regard.layers.positions import Rotary, sinusoidal

# The lecture's table of raw scores, and what it shows after the causal mask and the softmax of each row.
RAW = """
-0.08  1.24  0.69 -0.98  1.43 -0.60  0.70  0.16  0.93  1.28 -1.61 -1.10
-0.09 -0.00 -0.70  0.06  0.25  0.23  0.26  0.18  0.78 -0.21 -1.01  1.01
 0.86  1.19  1.59  0.86 -0.13 -0.15 -2.13 -0.98 -0.87 -1.72  1.87 -0.72
 0.12 -0.03 -0.02  0.88 -0.46 -0.70  0.54 -0.42 -1.89 -0.38  0.04 -0.84
 0.51  0.17  0.13 -1.64  0.24 -0.02  1.68 -0.36  0.64  0.36  0.27  0.66
 0.24 -1.44  0.43  0.74  0.96 -1.21 -0.31  1.54  1.66  1.14  0.58 -1.44
 0.26 -0.10  0.93  0.72 -0.38  1.65  0.47 -0.96 -0.17 -0.90 -1.57  0.22
-0.55  0.81  0.71  1.70 -0.80 -1.14 -0.32  1.78 -0.70 -0.04  1.54  0.81
 0.74 -0.76 -0.44 -0.08 -1.38 -0.13  1.25 -1.37  1.84  0.30  0.57  0.74
-0.97 -0.91  0.15  0.35 -0.81  0.11  1.14 -1.52  1.06  1.87  0.50 -0.30
 1.56  0.90  0.39  1.46  1.44 -1.05  0.90 -0.73  0.36 -0.67 -0.62 -0.43
 0.32  0.74  0.44 -0.10  1.19  0.83  0.29  2.06  0.51 -0.26  1.51  0.11
"""
SHOWN = """
1.00 0 0 0 0 0 0 0 0 0 0 0
0.48 0.52 0 0 0 0 0 0 0 0 0 0
0.22 0.31 0.47 0 0 0 0 0 0 0 0 0
0.20 0.18 0.18 0.44 0 0 0 0 0 0 0 0
0.31 0.22 0.21 0.04 0.23 0 0 0 0 0 0 0
0.16 0.03 0.19 0.26 0.32 0.04 0 0 0 0 0 0
0.09 0.06 0.18 0.14 0.05 0.36 0.11 0 0 0 0 0
0.03 0.13 0.11 0.31 0.03 0.02 0.04 0.33 0 0 0 0
0.14 0.03 0.04 0.06 0.02 0.06 0.23 0.02 0.41 0 0 0
0.02 0.02 0.07 0.08 0.03 0.06 0.18 0.01 0.16 0.37 0 0
0.21 0.11 0.06 0.19 0.18 0.02 0.11 0.02 0.06 0.02 0.02 0
0.05 0.07 0.05 0.03 0.11 0.08 0.05 0.27 0.06 0.03 0.16 0.04
"""


def table(text):
    return torch.tensor([[float(cell) for cell in line.split()] for line in text.strip().splitlines()])


def test_scores_112_96_16_8_with_key_width_64():
    query = torch.zeros(1, 64)
    query[0, 0] = 1.0
    keys = torch.zeros(4, 64)
    keys[:, 0] = torch.tensor([112.0, 96.0, 16.0, 8.0])
    values = torch.eye(4, 64)
    steps = attend_written_out(query, keys, values)
    assert steps.scores.tolist() == [[112, 96, 16, 8]]
    assert steps.scaled.tolist() == [[14, 12, 2, 1]]
    assert [round(weight, 2) for weight in steps.weights[0].tolist()] == [0.88, 0.12, 0.00, 0.00]
    # z1 = 0.88 v1 + 0.12 v2, and the fast form says the same
    assert_close(steps.output[0, :4], steps.weights[0])
    assert_close(attend(query[None, None], keys[None, None], values[None, None])[0, 0], steps.output)


def test_the_lectures_table_masked_and_softmaxed_row_by_row():
    raw = table(RAW)
    # Identity queries and the table as keys: q · k is the table itself.
    steps = attend_written_out(torch.eye(12), raw.T.contiguous(), torch.eye(12), causal=True, similarity=Dot())
    assert_close(steps.scores, raw)
    assert steps.masked[0].tolist()[1:] == [-math.inf] * 11
    assert_close(steps.weights, table(SHOWN), atol=0.006, rtol=0)
    assert_close(steps.weights.sum(-1), torch.ones(12))


def test_masking_is_more_than_cutting_links():
    """The rows left are softmaxed anew: the weights that stay grow."""
    raw = table(RAW)
    free = raw.softmax(-1)
    masked = attend_written_out(torch.eye(12), raw.T.contiguous(), torch.eye(12), causal=True, similarity=Dot()).weights
    below = torch.ones(12, 12).tril(-1).bool() & (torch.arange(12) < 11)[:, None]
    assert (masked[below] > free[below]).all()


@pytest.mark.parametrize("similarity", [Dot(), ScaledDot()])
@pytest.mark.parametrize("causal", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    batch=st.integers(1, 3),
    queries=st.integers(1, 6),
    more=st.integers(0, 4),
    masked=st.booleans(),
)
def test_fast_equals_written_out_forward_and_backward(similarity, causal, seed, batch, queries, more, masked):
    generator = torch.Generator().manual_seed(seed)
    keys = queries + more
    query, key, value = (
        torch.randn(batch, 2, n, 8, generator=generator).requires_grad_() for n in (queries, keys, keys)
    )
    # Some rows may end up with nothing to look at.
    mask = torch.rand(batch, 1, queries, keys, generator=generator) > 0.5 if masked else None
    fast = attend(query, key, value, mask, causal=causal, similarity=similarity)
    slow = attend_written_out(query, key, value, mask, causal=causal, similarity=similarity).output
    assert_close(fast, slow)
    upstream = torch.randn(fast.shape, generator=generator)
    for one, other in zip(
        torch.autograd.grad(fast, (query, key, value), upstream),
        torch.autograd.grad(slow, (query, key, value), upstream),
        strict=True,
    ):
        assert_close(one, other)
        assert one.isfinite().all()


@pytest.mark.parametrize("similarity", [Dot(), ScaledDot(), Additive(8)])
def test_a_row_that_may_look_nowhere_gives_zeros_and_no_nan(similarity):
    query, key, value = (torch.randn(1, 1, 3, 8, requires_grad=True) for _ in range(3))
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    mask[..., 1, :] = False
    for form in (attend, lambda *a, **k: attend_written_out(*a, **k).output):
        output = form(query, key, value, mask, similarity=similarity)
        assert output[0, 0, 1].tolist() == [0.0] * 8
        for gradient in torch.autograd.grad(output.sum(), (query, key, value)):
            assert gradient.isfinite().all()
        assert (
            torch.autograd.grad(form(query, key, value, mask, similarity=similarity).sum(), query)[0][0, 0, 1]
            .eq(0)
            .all()
        )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_a_score_bias_is_added_before_the_softmax(causal, queries, masked):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 8, requires_grad=True) for n in (queries, 6, 6))
    bias = torch.randn(1, 3, queries, 6, requires_grad=True)
    mask = torch.tensor([[True] * 6, [True, True, False, True, False, False]])[:, None, None] if masked else None
    allowed = torch.ones(2, 1, queries, 6, dtype=torch.bool) if mask is None else mask.expand(2, 1, queries, 6)
    allowed = allowed.tril(6 - queries) if causal else allowed
    scores = (query @ key.transpose(-2, -1) / 8**0.5 + bias).masked_fill(~allowed, -torch.inf)
    wanted = scores.softmax(-1) @ value
    fast = attend(query, key, value, mask, causal=causal, score_bias=bias)
    slow = attend_written_out(query, key, value, mask, causal=causal, score_bias=bias).output
    inputs = (query, key, value, bias)
    gradients = torch.autograd.grad(wanted.sum(), inputs)
    for found in (fast, slow):
        assert_close(found, wanted)
        for one, other in zip(torch.autograd.grad(found.sum(), inputs), gradients, strict=True):
            assert_close(one, other, atol=1e-5, rtol=1e-5)
    with torch.no_grad():  # where our own kernels could run
        assert_close(attend(query, key, value, mask, causal=causal, score_bias=bias), wanted)


def test_a_row_without_keys_gives_zeros_beside_a_score_bias():
    query, key, value = (torch.randn(1, 2, 3, 8, requires_grad=True) for _ in range(3))
    bias = torch.randn(1, 2, 3, 3, requires_grad=True)
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool)
    mask[..., 1, :] = False
    for form in (attend, lambda *a, **k: attend_written_out(*a, **k).output):
        output = form(query, key, value, mask, score_bias=bias)
        assert output[0, 0, 1].tolist() == [0.0] * 8
        for gradient in torch.autograd.grad(output.sum(), (query, key, value, bias)):
            assert gradient.isfinite().all()


def test_heads_may_be_wider_than_their_share():
    attention = MultiHeadAttention(6, 2, head_width=5, bias=False)
    shapes = {name: tuple(weight.shape) for name, weight in attention.named_parameters()}
    assert shapes == {"query.weight": (10, 6), "key.weight": (10, 6), "value.weight": (10, 6), "output.weight": (6, 10)}
    hidden, bias = torch.randn(2, 4, 6), torch.randn(1, 2, 4, 4)
    heads = (
        part(hidden).view(2, 4, 2, 5).transpose(1, 2) for part in (attention.query, attention.key, attention.value)
    )
    query, key, value = heads
    wanted = ((query @ key.transpose(-2, -1) / 5**0.5 + bias).softmax(-1) @ value).transpose(1, 2).flatten(2)
    assert_close(attention.self_attend(hidden, score_bias=bias), wanted @ attention.output.weight.T)


def test_additive_similarity_is_bahdanaus_formula():
    torch.manual_seed(0)
    similarity = Additive(4)
    query, key = torch.randn(2, 4), torch.randn(3, 4)
    scores = similarity(query, key)
    for t in range(2):
        for s in range(3):
            hidden = torch.tanh(query[t] + key[s])
            assert_close(scores[t, s], (similarity.score.weight @ hidden)[0])


def test_permuting_the_words_permutes_self_attention_and_positions_break_that():
    torch.manual_seed(0)
    attention = MultiHeadAttention(16, 4).eval()
    hidden = torch.randn(1, 7, 16)
    order = torch.randperm(7)
    assert_close(attention(hidden[:, order], hidden[:, order]), attention(hidden, hidden)[:, order])
    placed, moved = hidden + sinusoidal(7, 16), hidden[:, order] + sinusoidal(7, 16)
    assert not torch.allclose(attention(moved, moved), attention(placed, placed)[:, order], atol=1e-3)


def test_the_variance_of_a_dot_product_grows_with_its_width_and_scaling_brings_it_back_to_one():
    generator = torch.Generator().manual_seed(0)
    for width in (4, 64, 1024):
        query, key = (torch.randn(2000, width, generator=generator) for _ in range(2))
        assert Dot()(query, key).var() == pytest.approx(width, rel=0.1)
        assert attend_written_out(query, key, key).scaled.var() == pytest.approx(1.0, rel=0.1)


def test_multi_head_attention_is_the_concatenation_of_its_heads():
    """head_i = Attention(W_i x), then the output projection of all of them side by side."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    hidden, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    heads = []
    for part in (slice(0, 4), slice(4, 8)):
        query, key, value = (
            x @ layer.weight[part].T + layer.bias[part]
            for x, layer in ((hidden, attention.query), (memory, attention.key), (memory, attention.value))
        )
        heads.append((query @ key.transpose(1, 2) / 2).softmax(-1) @ value)
    assert_close(attention(hidden, memory), attention.output(torch.cat(heads, -1)))


def test_remembering_once_and_looking_twice_is_the_same():
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    hidden, memory = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    mask = masks.padding_mask(torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]), 0)
    kept = attention.project_memory(memory)
    assert_close(attention.cross_attend(hidden[:, :1], kept, mask), attention(hidden, memory, mask)[:, :1])
    assert_close(attention.cross_attend(hidden[:, 1:], kept, mask), attention(hidden, memory, mask)[:, 1:])


@pytest.mark.parametrize("causal", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    heads=st.sampled_from([(6, 1), (6, 2), (6, 3), (4, 2)]),
    queries=st.integers(1, 5),
    more=st.integers(0, 4),
    masked=st.booleans(),
)
def test_fast_equals_written_out_where_heads_share_keys(causal, seed, heads, queries, more, masked):
    generator = torch.Generator().manual_seed(seed)
    keys = queries + more
    query, key, value = (
        torch.randn(2, n, length, 4, generator=generator).requires_grad_()
        for n, length in ((heads[0], queries), (heads[1], keys), (heads[1], keys))
    )
    mask = torch.rand(2, 1, queries, keys, generator=generator) > 0.5 if masked else None
    fast = attend(query, key, value, mask, causal=causal)
    slow = attend_written_out(query, key, value, mask, causal=causal).output
    assert_close(fast, slow)
    upstream = torch.randn(fast.shape, generator=generator)
    for one, other in zip(
        torch.autograd.grad(fast, (query, key, value), upstream),
        torch.autograd.grad(slow, (query, key, value), upstream),
        strict=True,
    ):
        assert_close(one, other)


@pytest.mark.parametrize("form", [attend, lambda *parts: attend_written_out(*parts).output])
def test_heads_share_the_key_beside_them(form):
    """Of six heads and two keys, the first three heads look at the first key."""
    query, key, value = torch.randn(2, 6, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    found = form(query, key, value)
    for head in range(6):
        scores = query[:, head] @ key[:, head // 3].transpose(1, 2) / 2
        assert_close(found[:, head], scores.softmax(-1) @ value[:, head // 3])


def test_self_attention_is_multi_head_attention_that_looks_back():
    one, other = SelfAttention(12, 3), MultiHeadAttention(12, 3)
    with torch.no_grad():
        for part in ("weight", "bias"):
            rows = [getattr(layer, part) for layer in (other.query, other.key, other.value)]
            getattr(one.project, part).copy_(torch.cat(rows))
            getattr(one.output, part).copy_(getattr(other.output, part))
    hidden = torch.randn(2, 5, 12)
    assert_close(one(hidden), other(hidden, hidden, masks.causal_mask(5)))
    mask = masks.padding_mask(torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]), 0)
    assert_close(one(hidden, mask), other(hidden, hidden, mask & masks.causal_mask(5)))


def test_shared_keys_are_equal_keys_in_the_matrix():
    """Six heads over two keys are six heads over six keys, each of the two three times in the matrix."""
    shared, full = SelfAttention(24, 6, num_kv_heads=2), SelfAttention(24, 6)
    with torch.no_grad():
        for part in ("weight", "bias"):
            query, *two = getattr(shared.project, part).split([24, 8, 8])
            rows = [kind.split(4)[head // 3] for kind in two for head in range(6)]
            getattr(full.project, part).copy_(torch.cat([query, *rows]))
            getattr(full.output, part).copy_(getattr(shared.output, part))
    hidden = torch.randn(2, 5, 24)
    assert_close(shared(hidden), full(hidden))


def test_self_attention_has_the_biases_it_is_told_to_have():
    def biases(**told):
        return [name for name, _ in SelfAttention(8, 2, **told).named_parameters() if name.endswith("bias")]

    assert biases() == ["project.bias", "output.bias"]
    assert biases(output_bias=False) == ["project.bias"]
    assert biases(bias=False, output_bias=False) == []


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("pieces", [[1] * 7, [4, 1, 2], [7]])
@pytest.mark.parametrize("num_kv_heads", [1, 2, 6])
def test_words_piece_by_piece_with_a_cache_are_the_words_at_once(num_kv_heads, pieces, watched):
    attention = SelfAttention(24, 6, num_kv_heads=num_kv_heads)
    hidden = torch.randn(2, 7, 24)
    mask = torch.tensor([[False, False, True, True, True, True, True], [True] * 7])[:, None, None]  # row 0 has blanks
    rotary, cache = Rotary(4), KVCache(capacity=2)
    whole = attention(hidden, mask, apply_rotary=rotary(torch.arange(7)).apply_rotary).detach()
    found, start = [], 0
    with torch.no_grad(), capture(attention, *["weights"] * watched):
        for piece in pieces:
            stop = start + piece
            apply_rotary = rotary(torch.arange(start, stop)).apply_rotary
            found.append(attention(hidden[:, start:stop], mask[..., :stop], apply_rotary=apply_rotary, cache=cache))
            start = stop
    assert_close(torch.cat(found, dim=1), whole)
    assert cache.contents.key.shape == (2, num_kv_heads, 7, 4)


def test_turned_self_attention_sees_how_far_apart_words_stand_and_not_where():
    attention = SelfAttention(16, 2)
    hidden, rotary = torch.randn(1, 6, 16), Rotary(8)
    here, moved, spread = (
        attention(hidden, apply_rotary=rotary(position_ids).apply_rotary)
        for position_ids in (torch.arange(6), torch.arange(6) + 100, torch.arange(6) * 3)
    )
    assert_close(moved, here, atol=1e-5, rtol=1e-4)
    assert (spread - here)[:, 1:].abs().amax(-1).min() > 1e-4


def test_a_memory_may_have_a_width_of_its_own():
    """Against the lecture's formula, head by head."""
    attention = MultiHeadAttention(6, 2, memory_width=10)
    hidden, memory = torch.randn(2, 4, 6), torch.randn(2, 5, 10)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None]
    query, key, value = attention.query(hidden), attention.key(memory), attention.value(memory)
    heads = []
    for head in (slice(0, 3), slice(3, 6)):
        scores = query[..., head] @ key[..., head].transpose(1, 2) / math.sqrt(3)
        weights = scores.masked_fill(~mask[:, 0], -math.inf).softmax(-1)
        heads.append(weights @ value[..., head])
    assert_close(attention(hidden, memory, mask), attention.output(torch.cat(heads, dim=-1)))
