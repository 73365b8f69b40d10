"""Attention: both forms of the padded, the cached and the unpadded one are torch's, and nothing outside is read."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard import ops
from regard.layers.attention import AttentionTaps, attend
from regard.layers.masks import Varlen
from regard.ops import attention as module
from regard.ops.attention import gather_cache_rows, scaled_dot_product_attention, varlen_attention
from tests.ops.forms import needs_kernels, num_threads, numbers

pytestmark = pytest.mark.usefixtures("no_grad")


# ------------------------------------------------ a decoding step


@settings(deadline=None, max_examples=80)
@given(
    batch=st.integers(1, 5),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 3),
    queries=st.integers(1, 8),
    keys=st.integers(1, 40),
    width=st.integers(1, 70),
    masked=st.booleans(),
    moved=st.booleans(),
)
def test_a_decoding_step_is_torchs(batch, kv_heads, group, queries, keys, width, masked, moved):
    query = numbers(batch, queries, kv_heads * group, width).transpose(1, 2)
    key, value = (numbers(batch, keys, kv_heads, width, seed=seed).transpose(1, 2) for seed in (1, 2))
    mask = numbers(batch, 1, 1, keys, seed=3) > 0 if masked else None
    cache_rows = (numbers(batch, keys, seed=4).abs() * 7).int() % batch if moved else None
    found = scaled_dot_product_attention(query, key, value, mask, scale=0.3, cache_rows=cache_rows)
    if cache_rows is not None:
        key, value = gather_cache_rows(key, cache_rows), gather_cache_rows(value, cache_rows)
    wanted = F.scaled_dot_product_attention(query, key, value, mask, scale=0.3, enable_gqa=group > 1)
    if mask is not None:  # torch may give NaN where no key may be attended to
        blind = ~mask.any(-1, keepdim=True)
        found, wanted = found.masked_fill(blind, 0.0), wanted.masked_fill(blind, 0.0)
    assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_cached_rows_are_those_of_each_beam():
    cached = torch.arange(2 * 3.0).view(2, 1, 3, 1)  # row r, position s: 3 r + s
    cache_rows = torch.tensor([[0, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=torch.int32)
    assert gather_cache_rows(cached, cache_rows).flatten(1).tolist() == [[0, 4, 2], [3, 4, 5], [0, 1, 5]]


def test_one_mask_serves_all_rows():
    query, key, value = (numbers(3, 2, size, 8, seed=size) for size in (1, 5, 5))
    mask = torch.tensor([True, False, True, True, False]).view(1, 1, 1, 5)
    wanted = F.scaled_dot_product_attention(query, key, value, mask, scale=1.0)
    assert_close(scaled_dot_product_attention(query, key, value, mask, scale=1.0), wanted)


@needs_kernels
def test_damage_stays_visible():
    query, key, value = numbers(2, 1, 1, 16), numbers(2, 1, 4, 16, seed=1), numbers(2, 1, 4, 16, seed=2)
    query[0] = math.nan
    key[1, 0, 2] = math.nan
    assert scaled_dot_product_attention(query, key, value, scale=1.0).isnan().all()


@pytest.mark.parametrize("is_disabled", [False, True])
def test_a_wrong_row_table_is_refused_in_both_forms(is_disabled):
    query, key = numbers(2, 2, 1, 8), numbers(2, 2, 9, 8, seed=1)
    rows = torch.zeros(2, 9, dtype=torch.int32)

    def step(cache_rows):
        if is_disabled:
            with ops.disabled():
                return scaled_dot_product_attention(query, key, key, scale=1.0, cache_rows=cache_rows)
        return scaled_dot_product_attention(query, key, key, scale=1.0, cache_rows=cache_rows)

    assert step(rows).isfinite().all()
    assert step(rows.t().contiguous().t()).isfinite().all()
    for wrong in (2, -1, 10**9):
        broken = rows.clone()
        broken[1, 8] = wrong
        with pytest.raises(IndexError):
            step(broken)
    for wrong in (rows.long(), rows[:, :8], rows[:1], rows[0], rows.float()):
        with pytest.raises(ValueError, match="cache_rows is .*, wanted int32"):
            step(wrong)


@needs_kernels
def test_the_c_form_runs_only_where_it_covers_the_input(monkeypatch):
    calls = []
    real = module._decode_c
    monkeypatch.setattr(module, "_decode_c", lambda *given: calls.append(1) or real(*given))
    query, key = numbers(2, 2, 1, 8), numbers(2, 2, 9, 8, seed=1)
    attend(query, key, key)
    assert len(calls) == 1
    attend(numbers(2, 2, 9, 8), key, key)  # many queries
    attend(numbers(2, 2, 3, 8), key, key, causal=True)
    attend(query, key, key, torch.ones(2, 1, 3, 9, dtype=torch.bool)[:, :, :1].expand(2, 2, 1, 9))
    attend(query, key, key, score_bias=numbers(1, 2, 1, 9))
    with torch.enable_grad():
        attend(query, key, key)
    with ops.disabled():
        attend(query, key, key)
    assert len(calls) == 1


def test_what_only_torch_does_goes_to_torch(monkeypatch):
    """Keys that serve all rows, masks that are added, values of another width, other dtypes, transposed heads."""
    monkeypatch.setattr(module, "_decode_c", lambda *given: pytest.fail("not for the C form"))
    query, key = numbers(4, 2, 1, 8), numbers(4, 2, 9, 8, seed=1)
    attend(query, key[:1], key[:1])
    attend(query, key, key, numbers(4, 1, 1, 9))
    attend(query, key, numbers(4, 2, 9, 5))
    transposed = key.transpose(2, 3).contiguous().transpose(2, 3)
    wanted = F.scaled_dot_product_attention(query, key, key)
    assert_close(attend(query, transposed, transposed), wanted, atol=1e-5, rtol=1e-5)
    for dtype, tolerance in ((torch.float64, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)):
        found = attend(*(part.to(dtype) for part in (query, key, key)))
        assert found.dtype is dtype
        assert_close(found.float(), wanted, atol=tolerance, rtol=tolerance)


def test_shapes_that_do_not_match_are_torchs_error():
    with pytest.raises(RuntimeError):
        attend(numbers(2, 2, 1, 16), numbers(2, 2, 9, 8), numbers(2, 2, 9, 8))  # other head widths
    with pytest.raises(RuntimeError):
        attend(numbers(2, 5, 1, 8), numbers(2, 2, 9, 8), numbers(2, 2, 9, 8))  # 2 key heads for 5 heads


# ------------------------------------------------ unpadded batches


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 70), min_size=1, max_size=6).filter(any),
    heads=st.integers(1, 3),
    width=st.sampled_from([16, 32, 48, 64, 80, 24, 7]),
    threads=st.integers(1, 3),
)
def test_sequences_of_an_unpadded_batch_are_the_sequences_alone(lengths, heads, width, threads):
    several = numbers(1, sum(lengths), 3 * heads, width).transpose(1, 2)  # as one product leaves them
    query, key, value = several.split(heads, dim=1)
    with num_threads(threads):
        found = attend(query, key, value, Varlen(lengths))
    parts = zip(*(part.split(lengths, dim=2) for part in (query, key, value)), strict=True)
    alone = [F.scaled_dot_product_attention(*sequence) for sequence in parts]
    assert_close(found, torch.cat(alone, dim=2), atol=1e-5, rtol=1e-5)


def test_without_kernels_or_watched_an_unpadded_batch_takes_a_mask():
    query, key, value = (numbers(1, 2, 9, 16, seed=seed) for seed in range(3))
    varlen, watched = Varlen([4, 5]), AttentionTaps()
    found = attend(query, key, value, varlen)
    with ops.disabled():
        assert_close(attend(query, key, value, varlen), found, atol=1e-6, rtol=1e-5)
    stop = watched.weights.watch(lambda weights: None)
    assert_close(attend(query, key, value, varlen, taps=watched), found, atol=1e-6, rtol=1e-5)
    stop()
    narrow = [part[..., :12] for part in (query, key, value)]  # no whole vectors
    assert_close(attend(*narrow, varlen)[:, :, :4], attend(*(part[:, :, :4] for part in narrow)), atol=1e-6, rtol=1e-5)


def test_an_unpadded_batch_that_c_does_not_cover_takes_the_torch_form(monkeypatch):
    monkeypatch.setattr(module, "_varlen_c", lambda *given: pytest.fail("not for the C form"))
    query, varlen = numbers(1, 4, 9, 16), Varlen([4, 5])
    for key in (numbers(1, 2, 9, 16, seed=1), numbers(1, 4, 16, 9, seed=1).transpose(2, 3)):  # shared; in columns
        value = key + 1
        found = attend(query, key, value, varlen)
        assert_close(found, attend(query, key, value, varlen.mask), atol=1e-5, rtol=1e-5)
    narrow = numbers(1, 4, 9, 24)  # no whole vectors of 16
    assert_close(attend(narrow, narrow, narrow, varlen), attend(narrow, narrow, narrow, varlen.mask))
    half = query.half()
    assert_close(attend(half, half, half, varlen), attend(half, half, half, varlen.mask))


@pytest.mark.parametrize(
    ("cu_seqlens", "max_seqlen", "message"),
    [
        (torch.tensor([0, 4, 9]), 4, "a sequence has 5 positions, more than max_seqlen 4"),
        (torch.tensor([0, 4, 10]), 9, "cu_seqlens ends at 10"),
        (torch.tensor([0, 4, 8]), 9, "cu_seqlens ends at 8"),
        (torch.tensor([0, 12, 9]), 12, "must start at 0 and not fall"),
        (torch.tensor([-4, 4, 9]), 9, "must start at 0 and not fall"),
        (torch.tensor([0, 4, 9], dtype=torch.int32), 9, "wanted int64"),
        (torch.tensor([[0, 4, 9]]), 9, r"wanted int64 \(N \+ 1,\)"),
        (torch.tensor([], dtype=torch.int64), 9, r"wanted int64 \(N \+ 1,\)"),
    ],
)
def test_wrong_sequence_bounds_are_refused(cu_seqlens, max_seqlen, message):
    query = numbers(1, 2, 9, 16)
    with pytest.raises(ValueError, match=message):
        varlen_attention(query, query, query, cu_seqlens, max_seqlen, scale=0.25)


def test_an_unpadded_batch_is_one_row_and_has_a_key_for_each_position():
    query, varlen = numbers(1, 4, 9, 16), Varlen([4, 5])
    for wrong in (query[:, :, :4], query.expand(2, 4, 9, 16)):
        with pytest.raises(ValueError, match="wanted"):
            attend(wrong, wrong, wrong, varlen)
    with pytest.raises(ValueError, match="wanted"):
        attend(query, query[:, :, :4], query[:, :, :4], varlen)


@needs_kernels
def test_damage_stays_in_its_sequence():
    query, key, value = (numbers(1, 1, 40, 16, seed=seed) for seed in range(3))
    key[0, 0, 3, 3] = math.nan
    found = attend(query, key, value, Varlen([10, 30]))
    assert found[:, :, :10].isnan().all()
    assert found[:, :, 10:].isfinite().all()
