"""Linear layers in int8: close to the float ones, and a word's result is its own whatever stands beside it."""

import pytest
import torch
from torch import nn

import regard
from regard.errors import ConfigError
from regard.generation import Beam, Greedy, Sample, generate
from regard.generation.decode import Limits
from regard.layers.embeddings import Embedding
from regard.layers.linear import Linear
from regard.layers.quantized import PackedLinear, QuantizedEmbedding, QuantizedLinear, quantize
from tests.contracts.examples import CAUSAL_LM, ENCODERS, SEQ2SEQ, example_of, named
from tests.ops.forms import needs_kernels

QUANTIZED = (QuantizedLinear, PackedLinear)


def pair(inner=64, outer=48, *, bias=True):
    torch.manual_seed(0)
    linear = Linear(inner, outer, bias=bias).requires_grad_(False)
    return linear, QuantizedLinear(linear)


def apart(found, wanted):
    """The size of the difference, as a share of the size of what is wanted."""
    return ((found - wanted).norm() / wanted.norm()).item()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inner", "outer"), [(64, 48), (7, 3), (1, 1), (512, 2000)])
def test_it_is_close_to_the_float_layer(inner, outer, bias):
    linear, rounded = pair(inner, outer, bias=bias)
    hidden = torch.randn(50, inner)
    assert rounded(hidden).shape == (50, outer)
    assert apart(rounded(hidden), linear(hidden)) < 0.03


def test_any_shape_of_batch():
    linear, rounded = pair()
    hidden = torch.randn(2, 3, 5, 64)
    assert apart(rounded(hidden), linear(hidden)) < 0.03
    sliced = torch.randn(4, 10, 128)[:, ::2, ::2]
    assert not sliced.is_contiguous()
    assert torch.equal(rounded(sliced), rounded(sliced.contiguous()))
    assert rounded(torch.randn(0, 64)).shape == (0, 48)


@pytest.mark.parametrize("loud", [1.0, 1e4, 1e-6])
def test_a_word_gets_the_same_bits_whatever_stands_beside_it(loud):
    _, rounded = pair()
    hidden = torch.randn(40, 64) * torch.logspace(-3, 3, 40)[:, None]
    beside = torch.cat([hidden, loud * torch.randn(13, 64)])
    together = rounded(beside)[:40]
    for row in range(40):
        assert torch.equal(rounded(hidden[row : row + 1])[0], together[row])
    assert torch.equal(rounded(hidden.flip(0)).flip(0), together)


def test_a_word_that_is_much_louder_than_the_others_costs_them_nothing():
    linear, rounded = pair(bias=False)
    hidden = torch.randn(20, 64)
    hidden[7] *= 1e5
    for found, wanted in zip(rounded(hidden), linear(hidden), strict=True):
        assert apart(found, wanted) < 0.03


def test_zeros_give_the_bias_and_no_bias_gives_zeros():
    linear, rounded = pair()
    hidden = torch.zeros(3, 64)
    hidden[1] = torch.randn(64)
    assert torch.equal(rounded(hidden)[0], linear.bias)
    assert not torch.equal(rounded(hidden)[1], linear.bias)
    _, bare = pair(bias=False)
    assert not bare(torch.zeros(2, 64)).any()


def test_a_row_of_the_matrix_that_is_zero_or_large_stays_so():
    linear, _ = pair(bias=False)
    with torch.no_grad():
        linear.weight[3] = 0.0
        linear.weight[4] *= 1000
    hidden = torch.randn(30, 64)
    found, wanted = QuantizedLinear(linear)(hidden), linear(hidden)
    assert not found[:, 3].any()
    for column in range(48):
        if column != 3:  # each has its own scale: a large one does not blur the others
            assert apart(found[:, column], wanted[:, column]) < 0.05


def test_a_scale_of_the_words_is_a_scale_of_the_result():
    _, rounded = pair(bias=False)
    hidden = torch.randn(5, 64)
    assert torch.equal(rounded(hidden * 1024), rounded(hidden) * 1024)


def test_a_table_is_looked_up_exactly_and_compared_roughly():
    table = Embedding(90, 32, pad_id=0).requires_grad_(False)
    rounded = QuantizedEmbedding(table)
    ids = torch.randint(90, (4, 6))
    assert torch.equal(rounded(ids), table(ids))
    hidden, bias = torch.randn(4, 32), torch.randn(90)
    assert apart(rounded.logits(hidden), table.logits(hidden)) < 0.03
    assert apart(rounded.logits(hidden, bias), table.logits(hidden, bias)) < 0.03
    assert rounded.logits(hidden[:, None]).shape == (4, 1, 90)


# ------------------------------------------------ whole models


def correlation(one, other):
    return torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1].item()


@torch.no_grad()
@pytest.mark.parametrize("example", [*SEQ2SEQ, *CAUSAL_LM], ids=named)
def test_every_model_thinks_nearly_the_same_in_int8_and_writes(example):
    model, rounded = example.loud_model(), example.loud_model()
    assert quantize(rounded) > 0
    assert not any(type(module) in (Linear, Embedding) for module in rounded.modules())
    ids = torch.randint(3, 40, (4, 9), generator=torch.Generator().manual_seed(1))
    if example in CAUSAL_LM:
        inputs = [row[:length].tolist() for row, length in zip(ids, (9, 4, 6, 1), strict=True)]
        before, after = model(ids), rounded(ids)
    else:
        ids[:, -1] = 2
        inputs, target = ids, torch.randint(3, 40, (4, 6), generator=torch.Generator().manual_seed(2))
        before, after = model(inputs, target), rounded(inputs, target)
    assert not torch.equal(before, after)
    assert correlation(before, after) > 0.99
    limits = Limits([8] * 4)
    for strategy in (Greedy(), Beam(3), Sample(num_samples=2)):
        assert all(found[0].tokens or found[0].ended for found in generate(rounded, inputs, strategy, limits))
    if example in CAUSAL_LM:  # and alone as together: what rounds does not look beside
        together = generate(rounded, inputs, Greedy(), limits)
        for row, found in zip(inputs, together, strict=True):
            assert generate(rounded, [row], Greedy(), Limits([8]))[0][0].tokens == found[0].tokens


@torch.no_grad()
@pytest.mark.parametrize("example", ENCODERS, ids=named)
def test_every_reader_says_nearly_the_same_in_int8(example):
    model, rounded = example.loud_model(), example.loud_model()
    assert quantize(rounded) > 0
    assert not any(type(module) in (Linear, Embedding) for module in rounded.modules())
    ids = torch.randint(4, 40, (4, 9), generator=torch.Generator().manual_seed(1))
    ids[1, 5:], segment_ids = 0, (torch.arange(9) > 4).long().expand(4, -1) * (example.config.num_segments > 1)
    before, after = model(ids, segment_ids), rounded(ids, segment_ids)
    for one, other in zip(before, after, strict=True) if isinstance(before, tuple) else [(before, after)]:
        if one is not None:
            assert not torch.equal(one, other)
            assert apart(other, one) < 0.05


@torch.no_grad()
def test_a_readers_words_are_compared_with_the_rounded_table():
    for example in ENCODERS:
        if hasattr(model := example.loud_model(), "token_logits"):
            hidden = torch.randn(3, 24)
            wanted = model.token_logits(hidden)
            embedding = model.encoder.embedding
            embedding.tokens = QuantizedEmbedding(embedding.tokens)
            assert not torch.equal(model.token_logits(hidden), wanted)
            assert apart(model.token_logits(hidden), wanted) < 0.03


def test_it_also_runs_where_gradients_are_on():
    """A user calls the module as it is; what is rounded has no gradient."""
    ids = torch.tensor([[5, 6, 7, 2]])
    for example in (example_of("gpt"), example_of("llama"), example_of("transformer", 4)):
        model = example.model()
        quantize(model)
        given = (ids,) if example in CAUSAL_LM else (ids, ids)
        with torch.no_grad():
            wanted = model(*given)
        assert apart(model(*given), wanted) < 1e-3


def test_a_model_without_such_layers_is_refused():
    with pytest.raises(ConfigError, match="no layers that int8 is for"):
        quantize(nn.Sequential(nn.LayerNorm(4), nn.ReLU()))


def test_weights_that_are_not_on_a_cpu_are_refused():
    with pytest.raises(ConfigError, match="int8 needs a CPU"):
        QuantizedLinear(nn.Linear(3, 4, device="meta"))


# ------------------------------------------------ folders and the command


def test_a_folder_in_int8_writes_like_itself(novel, trained):
    for folder, text in ((novel, "The old captain"), (trained, "the boy eats bread")):
        plain, rounded = regard.load(folder), regard.load(folder, precision="int8")
        assert any(isinstance(module, QUANTIZED) for module in rounded.model.modules())
        assert not any(isinstance(module, QUANTIZED) for module in plain.model.modules())
        assert isinstance(rounded.run(text).text, str)
    assert likeness(novel, "int8") > 0.999


@needs_kernels
def test_a_folder_in_int4_is_like_itself(novel, here):
    assert likeness(novel, "int4") > 0.97
    done = here("run", novel, "The old", "--precision", "int4", "--greedy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def likeness(folder, precision):
    """The correlation of a language model's logits with those in float32."""
    plain, rounded = regard.load(folder), regard.load(folder, precision=precision)
    ids = torch.tensor([plain.tokenizer.encode("The old captain walked home")])
    with torch.no_grad():
        return correlation(plain.model(ids), rounded.model(ids))


def test_the_command_takes_a_precision_and_refuses_another(here, novel, trained):
    for folder, precision in ((novel, "int8"), (trained, "int8"), (novel, "stored")):
        done = here("run", folder, "The old", "--precision", precision, "--greedy")
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    done = here("run", novel, "The old", "--precision", "int3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: precision is 'int3', wanted one of stored, float32, int8, int4\n"
    with pytest.raises(ConfigError, match="precision is 'half'"):
        regard.load(novel, precision="half")
