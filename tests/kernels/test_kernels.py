"""Each kernel gives what its one line of torch gives, whatever the shapes, and lets damage be seen."""

import math
from contextlib import contextmanager
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard import kernels
from regard.layers.attention import KeysValues, attend
from regard.layers.kv_cache import KVCache
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.linear import Linear, activated, fused_qkv
from regard.layers.masks import Varlen
from regard.layers.norm import LayerNorm
from regard.layers.quantized import QuantizedLinear
from regard.layers.screening import ArgmaxShortlist, likeliest_written_out
from regard.layers.tap import Tap

pytestmark = pytest.mark.skipif(not kernels.here(), reason=f"no kernels on this machine: {kernels.why_not()}")

needs_int8 = pytest.mark.skipif(not kernels.int8_here(), reason="the int8 kernel is written for AVX2")


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@contextmanager
def cores(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ------------------------------------------------ products


@settings(deadline=None, max_examples=60)
@given(
    hidden=st.integers(1, 90),
    rows=st.integers(1, 70),
    inner=st.integers(1, 1100),
    biased=st.booleans(),
    threads=st.sampled_from([1, 2, 3, 5]),
)
def test_a_product_is_torchs(hidden, rows, inner, biased, threads):
    x, weight, bias = numbers(hidden, inner), numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    with cores(threads):
        found = kernels.linear(x, weight, bias)
    wanted = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    assert (found - wanted).abs().max() <= 4e-6 * math.sqrt(inner) * 4


@settings(deadline=None, max_examples=40)
@given(
    hidden=st.integers(1, 700),
    rows=st.integers(1, 60),
    inner=st.integers(1, 80),
    parts=st.integers(1, 3),
    activation=st.sampled_from([None, "relu", "swish", "gelu", "gelu_tanh"]),
    threads=st.integers(1, 3),
)
def test_matrices_side_by_side_and_an_activation_are_torchs(hidden, rows, inner, parts, activation, threads):
    x = numbers(hidden, inner)
    weights = [numbers(rows, inner, seed=part) for part in range(parts)]
    biases = [None if part == 1 else numbers(rows, seed=10 + part) for part in range(parts)]
    with cores(threads):
        found = kernels.linears(x, weights, biases, activation)
    wanted = torch.cat([F.linear(x, *each) for each in zip(weights, biases, strict=True)], dim=-1)
    assert_close(found, wanted if activation is None else PLAIN[activation](wanted), atol=2e-5, rtol=1e-5)


def test_layers_in_one_go_are_the_layers_one_by_one():
    hidden, layers = numbers(3, 5, 32), [Linear(32, 48) for _ in range(3)]
    apart = [F.linear(hidden, layer.weight, layer.bias) for layer in layers]
    for found, wanted in zip(fused_qkv(hidden, *layers), apart, strict=True):
        assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    gelu = ACTIVATIONS["gelu"]
    assert_close(activated(hidden, layers[0], gelu), gelu.plain(apart[0]), atol=1e-5, rtol=1e-5)


def test_a_hook_sees_its_layer_also_where_layers_go_in_one():
    hidden, layers, seen = numbers(9, 32), [Linear(32, 32) for _ in range(2)], []
    before = fused_qkv(hidden, *layers)
    layers[1].register_forward_hook(lambda layer, given, out: seen.append(out))
    found = fused_qkv(hidden, *layers)
    assert torch.equal(seen[0], found[1])
    assert_close(torch.cat(found), torch.cat(before), atol=1e-6, rtol=1e-5)


# ------------------------------------------------ the likeliest word


@needs_int8
@settings(deadline=None, max_examples=60)
@given(
    hidden=st.integers(1, 70),
    rows=st.integers(1, 400),
    inner=st.integers(1, 300),
    biased=st.booleans(),
    spread=st.sampled_from([0.0, 1.0, 3.0]),  # of the columns: words with few very large numbers
    threads=st.integers(1, 3),
)
def test_the_likeliest_word_is_the_largest_logit(hidden, rows, inner, biased, spread, threads):
    x = numbers(hidden, inner) * numbers(inner, seed=5).mul(spread).exp()
    table, bias = numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    with cores(threads):
        near = kernels.rounded(table)
        found = kernels.likeliest(x, table, near, bias)
        blind = near._replace(errors=torch.full_like(near.errors, 1e30))  # passes nothing over
        assert torch.equal(found, kernels.likeliest(x, table, blind, bias))
    exact = F.linear(x.double(), table.double(), None if bias is None else bias.double())
    best, chosen = exact.amax(-1), exact.gather(1, found[:, None])[:, 0]
    rounding = 1e-6 * inner * x.abs().amax(-1) * table.abs().max()  # of float32, where two are as good as equal
    assert (best - chosen <= rounding).all()


@needs_int8
def test_of_equal_words_the_first_and_no_banned_one():
    table = numbers(3000, 512, seed=1)
    table[[700, 2000, 2999]] = table[11] * 5
    x = table[11].expand(20, -1) + 0.1 * numbers(20, 512)
    screen = ArgmaxShortlist(table)
    assert screen.likeliest(x).tolist() == [700] * 20
    assert screen.likeliest(x, frozenset([5, 700])).tolist() == [2000] * 20
    for banned in ([], [700, 2000, 2999], range(100, 3000)):
        assert torch.equal(screen.likeliest(x, frozenset(banned)), likeliest_written_out(x, table, None, banned))


@needs_int8
@pytest.mark.parametrize("inner", [1024, 2048, 4096])
def test_margins_hold_where_all_rounding_goes_one_way(inner):
    x, table, bias = torch.full((12, inner), 24.51), torch.zeros(40, inner), torch.zeros(40)
    x[:, 0], x[:, 1] = 127, 0
    table[0], table[0, 0], table[0, 1] = 60.51, 0, 127
    table[30] = -table[0]
    bias[30] = 2 * (x[0].double() @ table[0].double()) + 300
    wanted = F.linear(x.double(), table.double(), bias.double()).argmax(-1)
    assert torch.equal(kernels.likeliest(x, table, kernels.rounded(table), bias), wanted)


@needs_int8
def test_margins_hold_for_tiny_words_and_large_biases():
    x, table = numbers(40, 512), numbers(3000, 512, seed=1)
    tiny = x * 1e-25
    assert torch.equal(
        kernels.likeliest(tiny, table, kernels.rounded(table)), likeliest_written_out(tiny, table, None, [])
    )
    whole, bias = table.mul(40).clamp(-127, 127).round(), torch.full((3000,), 1e6) + numbers(3000, seed=2).round()
    whole[:, 0] = 127
    found = kernels.likeliest(x.round(), whole, kernels.rounded(whole), bias)
    exact = F.linear(x.round().double(), whole.double(), bias.double())
    assert (exact.amax(-1) - exact.gather(1, found[:, None])[:, 0] <= 0.5).all()  # of a million, float32 knows no less


@needs_int8
def test_a_table_and_words_that_do_not_fit_each_other_are_refused():
    table = numbers(300, 120)
    near = kernels.rounded(table)
    for wrong in (numbers(4, 128), numbers(4, 100), numbers(4, 120).bfloat16(), numbers(2, 2, 120)):
        with pytest.raises(AssertionError):
            kernels.likeliest(wrong, table, near)
    with pytest.raises(AssertionError):
        kernels.likeliest(numbers(4, 120), numbers(301, 120), near)


@needs_int8
@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damaged_weights_in_int8_are_seen(damage):
    layer, x = Linear(64, 9), numbers(3, 64)
    layer.weight[2, 5] = damage
    assert not QuantizedLinear(layer)(x)[:, 2].isfinite().any()


@needs_int8
def test_a_word_that_is_no_number_has_no_likeliest_and_harms_no_other():
    table, x = numbers(500, 96, seed=1), numbers(12, 96)
    wanted = likeliest_written_out(x, table, None, [])
    x[3, 5], x[9, 0] = math.nan, math.inf
    found = kernels.likeliest(x, table, kernels.rounded(table))
    assert found[[3, 9]].tolist() == [-1, -1]
    others = [row for row in range(12) if row not in (3, 9)]
    assert torch.equal(found[others], wanted[others])


@needs_int8
def test_there_is_no_screen_of_damaged_or_small_tables():
    large = numbers(5000, 256)
    assert ArgmaxShortlist.of(large) is not None
    assert ArgmaxShortlist.of(large[:100]) is None
    large[4, 4] = math.nan
    assert ArgmaxShortlist.of(large) is None
    with kernels.left_out():
        assert ArgmaxShortlist.of(numbers(5000, 256)) is None


@needs_int8
def test_a_rounded_matrix_says_how_wrong_it_is():
    weight = numbers(50, 130) * numbers(50, 1, seed=3).exp()
    matrix = kernels.rounded(weight)
    assert matrix.rows.shape == (50, 192)
    assert matrix.rows[:, 130:].eq(0).all()
    left = weight - matrix.scales[:, None] * matrix.rows[:, :130]
    assert (left.abs() <= matrix.scales[:, None] * 0.5001).all()
    assert_close(matrix.errors, left.norm(dim=1), rtol=1e-4, atol=0)
    assert_close(matrix.sizes, weight.norm(dim=1), rtol=1e-5, atol=0)


# ------------------------------------------------ texts behind each other


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 70), min_size=1, max_size=6).filter(any),
    heads=st.integers(1, 3),
    vectors=st.integers(1, 5),
    threads=st.integers(1, 3),
)
def test_texts_behind_each_other_are_the_texts_alone(lengths, heads, vectors, threads):
    several = numbers(1, sum(lengths), 3 * heads, 16 * vectors).transpose(1, 2)  # as one product leaves them
    query, key, value = several.split(heads, dim=1)
    with cores(threads):
        found = attend(query, key, value, Varlen(lengths))
    parts = zip(*(part.split(lengths, dim=2) for part in (query, key, value)), strict=True)
    alone = [F.scaled_dot_product_attention(*text) for text in parts]
    assert_close(found, torch.cat(alone, dim=2), atol=1e-5, rtol=1e-5)


def test_texts_are_seen_alike_with_a_mask_by_who_has_no_kernel_or_watches():
    query, key, value = (numbers(1, 2, 9, 16, seed=seed) for seed in range(3))
    texts, tap = Varlen([4, 5]), Tap()
    found = attend(query, key, value, texts)
    with kernels.left_out():
        assert_close(attend(query, key, value, texts), found, atol=1e-6, rtol=1e-5)
    tap.watcher = lambda weights: None
    assert_close(attend(query, key, value, texts, tap=tap), found, atol=1e-6, rtol=1e-5)
    narrow = [part[..., :12] for part in (query, key, value)]  # no whole vectors
    assert_close(attend(*narrow, texts)[:, :, :4], attend(*(part[:, :, :4] for part in narrow)), atol=1e-6, rtol=1e-5)


def test_texts_that_are_not_alike_take_another_way():
    query = numbers(1, 4, 9, 16)
    texts = Varlen([4, 5])
    for key in (numbers(1, 2, 9, 16, seed=1), numbers(1, 4, 16, 9, seed=1).transpose(2, 3)):  # shared; in columns
        value = key + 1
        found = attend(query, key, value, texts)
        assert_close(found, attend(query, key, value, texts.mask), atol=1e-5, rtol=1e-5)
    with pytest.raises(RuntimeError):
        attend(query, query[:, :, :4], query[:, :, :4], texts)


def test_damage_stays_in_its_text():
    query, key, value = (numbers(1, 1, 40, 16, seed=seed) for seed in range(3))
    key[0, 0, 3, 3] = math.nan
    found = attend(query, key, value, Varlen([10, 30]))
    assert found[:, :, :10].isnan().all()
    assert found[:, :, 10:].isfinite().all()


def test_a_large_matrix_and_leading_dimensions():
    x, weight, bias = numbers(3, 11, 520), numbers(2049, 520, seed=1), numbers(2049, seed=2)
    assert_close(kernels.linear(x, weight, bias), F.linear(x, weight, bias), atol=1e-4, rtol=1e-5)
    turned = numbers(520, 33).t()  # not contiguous
    assert_close(kernels.linear(turned, weight), F.linear(turned, weight), atol=1e-4, rtol=1e-5)


@needs_int8
@settings(deadline=None, max_examples=60)
@given(hidden=st.integers(1, 70), rows=st.integers(1, 50), inner=st.integers(1, 2100), biased=st.booleans())
def test_a_product_in_int8_is_that_of_the_rounded_matrix(hidden, rows, inner, biased):
    x, weight, bias = numbers(hidden, inner), numbers(rows, inner, seed=1), numbers(rows, seed=2) if biased else None
    matrix = kernels.rounded(weight)
    exact = F.linear(
        x.double(), matrix.rows[:, :inner].double() * matrix.scales[:, None], None if bias is None else bias.double()
    )
    found = kernels.linear_int8(x, matrix, bias)
    assert (found - exact).abs().max() <= 8e-4 * math.sqrt(
        inner
    ) + 1e-4  # rounding the matrix itself costs ten times that
    alone = torch.cat([kernels.linear_int8(row[None], matrix, bias) for row in x])
    assert torch.equal(found, alone), "a word's result depends on the words beside it"


@needs_int8
def test_sums_of_the_largest_numbers_do_not_overflow():
    inner = 16384
    matrix = kernels.rounded(torch.ones(3, inner))
    for hidden in (1, 20):
        found = kernels.linear_int8(torch.full((hidden, inner), -7.0), matrix)
        assert_close(found, torch.full((hidden, 3), -7.0 * inner), rtol=1e-3, atol=0)


@needs_int8
@pytest.mark.parametrize("damage", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("hidden", [1, 5, 20])
def test_damage_stays_visible_in_products(damage, hidden):
    x, weight = numbers(hidden, 64), numbers(9, 64, seed=1)
    x[-1, 3] = damage
    for found in (kernels.linear(x, weight), kernels.linear_int8(x, kernels.rounded(weight))):
        assert not found[-1].isfinite().any()
        assert found[:-1].isfinite().all()


# ------------------------------------------------ attention


@settings(deadline=None, max_examples=80)
@given(
    rows=st.integers(1, 5),
    shared=st.integers(1, 3),
    group=st.integers(1, 3),
    queries=st.integers(1, 8),
    keys=st.integers(1, 40),
    width=st.integers(1, 70),
    masked=st.booleans(),
    moved=st.booleans(),
)
def test_attention_is_torchs(rows, shared, group, queries, keys, width, masked, moved):
    query = numbers(rows, queries, shared * group, width).transpose(1, 2)
    key, value = (numbers(rows, keys, shared, width, seed=seed).transpose(1, 2) for seed in (1, 2))
    mask = numbers(rows, 1, 1, keys, seed=3) > 0 if masked else None
    origin = (numbers(rows, keys, seed=4).abs() * 7).int() % rows if moved else None
    found = kernels.attend(query, key, value, mask, 0.3, origin)
    seen = KeysValues(key, value, origin).in_place
    wanted = F.scaled_dot_product_attention(query, seen.key, seen.value, mask, scale=0.3, enable_gqa=group > 1)
    if mask is not None:  # torch may give NaN where nothing may be seen
        wanted = wanted.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    assert found.transpose(1, 2).is_contiguous()


def test_one_mask_serves_all_rows():
    query, key, value = (numbers(3, 2, size, 8, seed=size) for size in (1, 5, 5))
    mask = torch.tensor([True, False, True, True, False]).view(1, 1, 1, 5)
    wanted = F.scaled_dot_product_attention(query, key, value, mask, scale=1.0)
    assert_close(kernels.attend(query, key, value, mask, 1.0), wanted)


def test_damage_stays_visible_in_attention():
    query, key, value = numbers(2, 1, 1, 16), numbers(2, 1, 4, 16, seed=1), numbers(2, 1, 4, 16, seed=2)
    query[0] = math.nan
    key[1, 0, 2] = math.nan
    assert kernels.attend(query, key, value, None, 1.0).isnan().all()


def test_attention_takes_the_kernel_only_where_it_fits(monkeypatch):
    """What the kernel cannot do goes to torch: many queries, causal ones, masks a query, gradients."""
    calls = []
    real = kernels.attend
    monkeypatch.setattr(kernels, "attend", lambda *given: calls.append(1) or real(*given))
    query, key = numbers(2, 2, 1, 8), numbers(2, 2, 9, 8, seed=1)
    attend(query, key, key)
    assert len(calls) == 1
    attend(numbers(2, 2, 9, 8), key, key)  # many
    attend(numbers(2, 2, 3, 8), key, key, causal=True)
    attend(query, key, key, torch.ones(2, 1, 3, 9, dtype=torch.bool)[:, :, :1].expand(2, 2, 1, 9))
    with torch.enable_grad():
        attend(query, key, key)
    with kernels.left_out():
        attend(query, key, key)
    assert len(calls) == 1


@pytest.mark.parametrize("plain", [True, False])
def test_texts_that_change_rows_keep_what_they_saw(plain):
    """A cache with a table of rows, and one that copies, hold the same after any exchange, loss and growth."""
    chance = torch.Generator().manual_seed(4)
    cache, texts = KVCache(room=2), [torch.zeros(0, 3, 4) for _ in range(4)]
    for rows in ([0, 1, 2, 3], [3, 3, 0, 1], [1, 0], [1, 1, 0], [2, 1, 0, 0, 1], [4, 0]):
        new = torch.randn(len(texts), 1, 3, 4, generator=chance)
        cache.append(KeysValues(new.transpose(1, 2), new.transpose(1, 2) * 2))
        texts = [torch.cat([text, one]) for text, one in zip(texts, new, strict=True)]
        if plain:
            with kernels.left_out():
                cache.reorder(torch.tensor(rows))
        else:
            cache.reorder(torch.tensor(rows))
        texts = [texts[row] for row in rows]
        seen = cache.seen.in_place
        assert torch.equal(seen.key[: len(rows)], torch.stack(texts).transpose(1, 2))
        assert torch.equal(seen.value[: len(rows)], torch.stack(texts).transpose(1, 2) * 2)


# ------------------------------------------------ ranking


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 5), hidden=st.integers(1, 300), count=st.integers(1, 9), scale=st.sampled_from([0.1, 5, 500])
)
def test_the_best_and_the_totals_are_torchs(rows, hidden, count, scale):
    logits = numbers(rows, hidden) * scale
    assert_close(kernels.log_totals(logits), logits.logsumexp(-1), atol=1e-5, rtol=1e-5)
    best, places = kernels.top(logits, min(count, hidden))
    wanted = logits.topk(min(count, hidden))
    assert torch.equal(best, wanted.values)
    assert torch.equal(logits.gather(1, places), wanted.values)
    assert all(len(set(row)) == len(row) for row in places.tolist())


def test_of_equal_ones_the_first_and_what_is_forbidden_last():
    logits = torch.zeros(2, 40)
    logits[1, :38] = -math.inf
    best, places = kernels.top(logits, 3)
    assert places[0].tolist() == [0, 1, 2]
    assert set(places[1, :2].tolist()) == {38, 39}
    assert best[1].tolist() == [0.0, 0.0, -math.inf]
    assert_close(kernels.log_totals(logits), torch.tensor([math.log(40), math.log(2)]))


@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damage_stays_visible_in_totals(damage):
    for place in (0, 5, 39):
        logits = torch.zeros(2, 40)
        logits[1, place] = damage
        assert kernels.log_totals(logits).isfinite().tolist() == [True, False]


# ------------------------------------------------ what training uses too


PLAIN = {"gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh"), "swish": F.silu, "relu": F.relu}


@pytest.mark.parametrize("name", kernels.ACTIVATIONS)
@pytest.mark.parametrize("count", [1, 15, 16, 1000])
def test_activations_and_their_gradients_are_torchs(count, name):
    hidden = (numbers(count) * 4).requires_grad_()
    hidden.data[0] = 60.0  # far out it is the line itself
    outer = numbers(count, seed=1)
    with torch.enable_grad():
        wanted = PLAIN[name](hidden)
        (gradient,) = torch.autograd.grad(wanted, hidden, outer)
    assert_close(kernels.activate(hidden, name), wanted, atol=1e-6, rtol=1e-5)
    assert_close(kernels.activation_gradient(hidden, outer, name), gradient, atol=2e-6, rtol=1e-5)
    assert kernels.activate(torch.tensor([math.nan]), name).isnan().all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 5, 16), (4, 33), (64, 512)])
def test_a_norm_of_a_sum_is_torchs(shape, threads):
    hidden, update = numbers(*shape) * 3 + 100, numbers(*shape, seed=1)
    gain, bias = numbers(shape[-1], seed=2), numbers(shape[-1], seed=3)
    with cores(threads):
        found = kernels.norm_of_sum(hidden, update, gain, bias, 1e-5)
    exact = F.layer_norm((hidden + update).double(), gain.shape, gain.double(), bias.double(), 1e-5)
    assert_close(found, exact.float(), atol=1e-4, rtol=1e-4)
    layer = LayerNorm(shape[-1])
    layer.weight.copy_(gain), layer.bias.copy_(bias)
    assert torch.equal(layer(hidden, update), found)
    with kernels.left_out():
        assert_close(layer(hidden, update), layer(hidden + update), atol=0, rtol=0)


@pytest.mark.parametrize("damage", [math.nan, math.inf])
def test_damage_stays_visible_in_norms(damage):
    hidden, update = numbers(3, 20), numbers(3, 20, seed=1)
    update[1, 19] = damage
    found = kernels.norm_of_sum(hidden, update, torch.ones(20), torch.zeros(20), 1e-5)
    assert found[1].isnan().all()
    assert found[[0, 2]].isfinite().all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("rows", "hidden"), [(1, 1), (3, 17), (20, 300)])
def test_losses_and_gradients_are_torchs(rows, hidden, smoothing):
    logits = (numbers(rows, hidden) * 5).requires_grad_()
    targets = torch.randint(hidden, (rows,), generator=torch.Generator().manual_seed(2))
    targets[-1] = -100
    with torch.enable_grad():
        wanted = F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
        (gradient,) = torch.autograd.grad(wanted.sum(), logits)
    found = logits.detach().clone()
    assert_close(kernels.cross_entropy(found, targets, smoothing), wanted, atol=1e-5, rtol=1e-5)
    assert_close(found, gradient, atol=1e-6, rtol=1e-5)


# ------------------------------------------------ what does not fit goes to torch, or stops


def test_widths_that_do_not_fit_are_torchs_error():
    layer = Linear(64, 4)
    for width in (20, 256, 1024):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(torch.ones(20, width))
        with pytest.raises(AssertionError, match=f"words of {width} numbers"):
            kernels.linear(torch.ones(20, width), layer.weight)
        with pytest.raises(AssertionError, match=f"words of {width} numbers"):
            QuantizedLinear(layer)(torch.ones(20, width))


def test_a_bias_may_lie_anywhere_but_has_its_length():
    x, weight, every = numbers(20, 8), numbers(4, 8, seed=1), numbers(8, seed=2)
    assert_close(kernels.linear(x, weight, every[::2]), F.linear(x, weight, every[::2]))
    assert_close(kernels.linear(x, weight, every[:4].double()), F.linear(x, weight, every[:4]))
    with pytest.raises(AssertionError, match="a bias of"):
        kernels.linear(x, weight, every[:1])


@needs_int8
def test_words_of_other_kinds_are_made_floats():
    x, matrix = numbers(20, 64), kernels.rounded(numbers(9, 64, seed=1))
    assert_close(kernels.linear_int8(x.double(), matrix), kernels.linear_int8(x, matrix))
    assert kernels.linear_int8(x.bfloat16(), matrix).isfinite().all()


def test_attention_leaves_to_torch_what_only_torch_does(monkeypatch):
    """Keys that serve all rows, masks that are added, values of another width."""
    monkeypatch.setattr(kernels, "attend", lambda *given: pytest.fail("not for the kernel"))
    query, key = numbers(4, 2, 1, 8), numbers(4, 2, 9, 8, seed=1)
    attend(query, key[:1], key[:1])
    attend(query, key, key, numbers(4, 1, 1, 9))
    attend(query, key, numbers(4, 2, 9, 5))


def test_targets_of_any_whole_kind():
    logits, targets = numbers(6, 30), torch.arange(6)
    copy = logits.clone()
    wanted = F.cross_entropy(logits, targets, reduction="none")
    assert_close(kernels.cross_entropy(copy, targets.int()), wanted)


def test_the_best_of_damaged_rows_are_torchs():
    for place in (0, 20, 39):
        logits = numbers(1, 40)
        logits[0, place] = math.nan
        assert kernels.top(logits, 3)[1][0, 0] == place
    with pytest.raises(AssertionError, match="the 5 best of 3"):
        kernels.top(numbers(2, 3), 5)


def test_nothing_is_nothing():
    assert kernels.linear(torch.zeros(0, 8), torch.ones(4, 8)).shape == (0, 4)
    assert kernels.top(torch.zeros(0, 8), 2)[0].shape == (0, 2)
    assert kernels.activate(torch.zeros(0, 3), "gelu").shape == (0, 3)
