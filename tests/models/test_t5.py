"""T5: its position buckets in numbers, and its wiring written out."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.models.t5 import SIZES, T5, T5Config, position_buckets

TINY = {"vocab_size": 40, "width": 12, "heads": 3, "head_width": 5, "layers": 2, "feed_forward": 20}
LAYOUTS = {
    "v1.0": TINY,
    "v1.1": TINY | {"gated": True, "activation": "gelu_tanh", "tie_embeddings": False, "scale_output": False},
    "other decoder": TINY | {"decoder_layers": 1, "num_buckets": 8, "max_distance": 6},
}


@pytest.fixture(params=LAYOUTS)
def model(request):
    torch.manual_seed(0)
    model = T5(T5Config(**LAYOUTS[request.param])).eval()
    with torch.no_grad():  # norms that are not all 1, and a bias that matters
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def buckets(offsets, *, bidirectional, num_buckets=32, max_distance=128):
    found = position_buckets(
        torch.tensor(offsets), num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional
    )
    return found.tolist()


def test_buckets_of_both_directions():
    """16 buckets a side: 8 of one distance each, then ranges that grow by √2 up to 128."""
    before = [0, -1, -7, -8, -11, -12, -15, -17, -22, -23, -31, -33, -45, -46, -63, -65, -90, -91, -128, -5000]
    wanted = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15]
    assert buckets(before, bidirectional=True) == wanted
    after = [-offset for offset in before[1:]]
    assert buckets(after, bidirectional=True) == [16 + bucket for bucket in wanted[1:]]


def test_buckets_of_the_past():
    """16 buckets of one distance each, then ranges that grow by 8^(1/16) up to 128; the future is in bucket 0."""
    past = [0, -1, -15, -16, -18, -19, -20, -21, -23, -24, -26, -27, -30, -112, -113, -128, -5000]
    wanted = [0, 1, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 30, 31, 31, 31]
    assert buckets(past, bidirectional=False) == wanted
    assert buckets([1, 2, 500], bidirectional=False) == [0, 0, 0]


def test_a_few_buckets_of_the_past():
    """4 buckets up to distance 8: 0, 1, 2 to 3, 4 and more."""
    found = buckets([0, -1, -2, -3, -4, -5, -8, -9], bidirectional=False, num_buckets=4, max_distance=8)
    assert found == [0, 1, 2, 2, 3, 3, 3, 3]


def test_the_bias_is_one_number_a_head_and_bucket(model):
    bias = model.decoder.position_bias
    found = bias(2, 5)  # positions 3 and 4 of 5
    assert found.shape == (1, 3, 2, 5)
    assert found[0, :, 0, 3].tolist() == bias.weight[0].tolist()  # a token itself
    assert found[0, :, 1, 3].tolist() == bias.weight[1].tolist()  # the token before
    assert found[0, :, 1, 1].tolist() == bias.weight[buckets_of(bias, -3)].tolist()
    assert torch.equal(found, bias(5, 5)[:, :, 3:])


def buckets_of(bias, offset):
    return buckets(
        [offset], bidirectional=bias.bidirectional, num_buckets=len(bias.weight), max_distance=bias.max_distance
    )[0]


# ------------------------------------------------ the wiring


def rms(hidden, norm):
    return hidden / (hidden.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight


def attended(attention, hidden, memory, bias, allowed):
    def heads(layer, x):
        return F.linear(x, layer.weight).view(*x.shape[:2], 3, 5).transpose(1, 2)

    query, key, value = heads(attention.query, hidden), heads(attention.key, memory), heads(attention.value, memory)
    scores = (query @ key.transpose(-2, -1) + bias).masked_fill(~allowed, -torch.inf)  # not divided by √K
    return F.linear((scores.softmax(-1) @ value).transpose(1, 2).flatten(2), attention.output.weight)


def fed_forward(network, hidden):
    inner = F.linear(hidden, network.expand.weight)
    if inner.shape[-1] == 40:
        gate, rest = inner.chunk(2, dim=-1)
        inner = F.gelu(gate, approximate="tanh") * rest
    else:
        inner = inner.relu()
    return F.linear(inner, network.contract.weight)


def written_out(model, source, target):
    seen = (source != 0)[:, None, None]
    hidden, bias = model.embedding.weight[source], model.encoder.position_bias(source.shape[1], source.shape[1])
    for block in model.encoder.blocks:
        normed = rms(hidden, block.norm_attention)
        hidden = hidden + attended(block.attention, normed, normed, bias, seen)
        hidden = hidden + fed_forward(block.feed_forward, rms(hidden, block.norm_feed_forward))
    memory = rms(hidden, model.encoder.norm)
    length = target.shape[1]
    past = torch.ones(length, length, dtype=torch.bool).tril()
    hidden, bias = model.embedding.weight[target], model.decoder.position_bias(length, length)
    for block in model.decoder.blocks:
        normed = rms(hidden, block.norm_attention)
        hidden = hidden + attended(block.attention, normed, normed, bias, past)
        normed = rms(hidden, block.norm_cross_attention)
        hidden = hidden + attended(block.cross_attention, normed, memory, 0.0, seen)
        hidden = hidden + fed_forward(block.feed_forward, rms(hidden, block.norm_feed_forward))
    hidden = rms(hidden, model.decoder.norm)
    if model.config.scale_output:
        hidden = hidden / 12**0.5
    return hidden @ (model.embedding if model.config.tie_embeddings else model.output).weight.T


def test_the_wiring_is_the_papers(model):
    source, target = torch.randint(3, 40, (3, 9)), torch.randint(3, 40, (3, 7))
    source[1, 6:] = 0
    assert_close(model(source, target), written_out(model, source, target), atol=1e-5, rtol=1e-4)


def test_all_layers_of_a_stack_share_one_bias(model):
    biases = [name for name, _ in model.named_parameters() if "position_bias" in name]
    assert biases == ["encoder.position_bias.weight", "decoder.position_bias.weight"]


def test_nothing_has_a_linear_bias(model):
    assert not [name for name, _ in model.named_parameters() if name.endswith(".bias")]


def test_the_row_of_padding_is_a_row_as_any_other():
    """The decoder starts with it, and the published models have trained it."""
    model = T5(T5Config(**TINY, special_ids={"pad_id": 0, "bos_id": 0, "eos_id": 1}))
    assert model.embedding.weight[0].any()
    model(torch.tensor([[5, 6, 1]]), torch.tensor([[0, 7]])).square().sum().backward()
    assert model.embedding.weight.grad[0].any()


def test_scores_start_with_variance_one():
    torch.manual_seed(0)
    model = T5(T5Config(vocab_size=40, width=256, heads=4, head_width=64, layers=1, feed_forward=16))
    attention, hidden = model.encoder.blocks[0].attention, torch.randn(1, 200, 256)
    query, key = (layer(hidden).view(200, 4, 64).transpose(0, 1) for layer in (attention.query, attention.key))
    assert (query @ key.transpose(-2, -1)).var().item() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(
    ("name", "millions"), [("t5-small", 60.5), ("t5-base", 222.9), ("t5-v1.1-small", 77.0), ("t5-v1.1-base", 247.6)]
)
def test_sizes_are_the_published_ones(name, millions):
    with torch.device("meta"):
        model = T5(SIZES[name])
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)


def test_a_distance_that_no_range_reaches_is_refused():
    with pytest.raises(ConfigError, match="wanted at least model.max_distance=17"):
        T5Config(max_distance=16)
