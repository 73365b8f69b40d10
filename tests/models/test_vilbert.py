"""ViLBERT, compared with its wiring written out; contracts/test_vision_language.py has what holds for all heads."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm
from torch.testing import assert_close

from regard.errors import ConfigError
from regard.inspection.capture import capture
from regard.models import model_class
from regard.models.vilbert import TINY, StreamConfig, ViLBERTConfig, VisionConfig
from tests.contracts.examples import EXAMPLES, Example, named

VILBERT = [example for example in EXAMPLES if example.kind.startswith("vilbert")]


def made(kind: str):
    return next(example for example in VILBERT if example.kind == kind).loud_model()


@pytest.fixture
def inputs() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, 40, (2, 6), generator=generator)
    boxes = torch.rand(2, 4, 5, generator=generator) + 0.1
    return ids, torch.zeros_like(ids), torch.randn(2, 4, 10, generator=generator), boxes


def normed(hidden: Tensor, norm) -> Tensor:
    return layer_norm(hidden, hidden.shape[-1:], norm.weight, norm.bias, 1e-12)


def fed(hidden: Tensor, block) -> Tensor:
    inner = gelu(hidden @ block.feed_forward.expand.weight.T + block.feed_forward.expand.bias)
    outer = inner @ block.feed_forward.contract.weight.T + block.feed_forward.contract.bias
    return normed(hidden + outer, block.norm_feed_forward)


def looked(hidden: Tensor, memory: Tensor, look) -> Tensor:
    return fed(normed(hidden + look.attention(hidden, memory), look.norm_attention), look)


def read(hidden: Tensor, block) -> Tensor:
    return fed(normed(hidden + block.attention(hidden), block.norm_attention), block)


def test_the_streams_are_wired_as_in_the_paper(inputs):
    """Each stream by itself first; where they meet, both look at what the other was before."""
    model, (ids, segment_ids, regions, boxes) = made("vilbert"), inputs
    hidden = (
        model.text_embedding.tokens.weight[ids]
        + model.text_embedding.positions(0, 6)
        + model.text_embedding.segments.weight[segment_ids]
    )
    hidden = normed(hidden, model.text_embedding.norm)
    seen = normed(
        model.region_embedding.features(regions) + model.region_embedding.boxes(boxes), model.region_embedding.norm
    )
    hidden, seen = read(hidden, model.text_blocks[0]), read(seen, model.region_blocks[0])
    for co_attention in model.co_attention_layers:
        told, shown = (
            looked(hidden, seen, co_attention.text_co_attention),
            looked(seen, hidden, co_attention.region_co_attention),
        )
        hidden, seen = read(told, co_attention.text_block), read(shown, co_attention.region_block)
    found = model(*inputs)
    assert_close(found.hidden, hidden, atol=2e-5, rtol=1e-4)
    assert_close(found.regions, seen, atol=2e-5, rtol=1e-4)
    assert_close(found.text, torch.tanh(model.text(hidden[:, 0])), atol=2e-5, rtol=1e-4)
    assert_close(found.image, torch.tanh(model.image(seen[:, 0])), atol=2e-5, rtol=1e-4)


def test_a_pair_is_judged_by_the_product_of_its_sides(inputs):
    for kind in ("vilbert-pretraining", "vilbert-retrieval"):
        model = made(kind)
        found = model.encode(*inputs)
        wanted = (found.text * found.image) @ model.matching.weight[0] + model.matching.bias
        said = model(*inputs)
        assert_close(said.matching if kind == "vilbert-pretraining" else said, wanted)


def test_a_region_is_judged_as_the_whole_picture_is(inputs):
    model = made("vilbert-grounding")
    found, logits = model.encode(*inputs), model(*inputs)
    assert_close(logits[:, 0], model.matching(found.text * found.image)[:, 0])  # region 0 is the whole picture
    third = torch.tanh(model.encoder.image(found.regions[:, 3]))
    assert_close(logits[:, 3], model.matching(found.text * third)[:, 0])


def test_hidden_words_are_compared_with_the_table_they_came_from(inputs):
    model = made("vilbert-pretraining")
    before = model(*inputs).tokens
    absent = next(number for number in range(4, 40) if number not in inputs[0])
    with torch.no_grad():
        model.input_embeddings[absent] *= 2
    changed = (model(*inputs).tokens - before).abs().amax((0, 1))
    assert changed[absent] > 1e-3
    assert changed[torch.arange(40) != absent].max() < 1e-4


def test_pixels_go_through_one_more_layer_where_there_is_one(inputs):
    model = made("vilbert-question-answering")
    embedding, (_, _, regions, boxes) = model.encoder.region_embedding, inputs
    wanted = embedding.features(gelu(embedding.inner(regions))) + embedding.boxes(boxes)
    assert_close(embedding(regions, boxes), normed(wanted, embedding.norm))


def test_what_a_word_looks_at_decides_what_it_hears(inputs):
    """With all of its attention on one region, a word is told what that region alone would tell it."""
    model = Example(
        ViLBERTConfig(**TINY | {"co_attention_layers": 1, "regions": {"width": 16, "heads": 2, "layers": 0}})
    ).loud_model()
    ids, segment_ids, regions, boxes = inputs
    path = "co_attention_layers.0.text_co_attention.attention.weights"
    alone = model(ids, segment_ids, regions[:, :1], boxes[:, :1]).hidden
    with capture(model, path) as seen:
        model(*inputs)
    assert seen[path][0].shape == (2, 3, 6, 4)
    tap = model.get_submodule(path)
    stop = tap.watch(lambda weights: torch.zeros_like(weights).index_fill(-1, torch.tensor([0]), 1.0))
    assert_close(model(*inputs).hidden, alone, atol=2e-5, rtol=1e-4)
    stop()


def test_the_defaults_are_the_papers():
    config = ViLBERTConfig()
    assert (config.text.width, config.text.heads, config.text.layers + config.co_attention_layers) == (768, 12, 12)
    assert (config.regions.width, config.regions.heads, config.vision.feature_size) == (1024, 8, 2048)
    assert StreamConfig(width=8, heads=2).inner == 32
    assert VisionConfig(patch_size=8).feature_size == 192


KINDS = ["vilbert", *(f"vilbert-{head}" for head in ("pretraining", "question-answering", "grounding", "retrieval"))]


@pytest.mark.parametrize("example", VILBERT, ids=named)
def test_each_head_has_its_outputs(example, inputs):
    config, (rows, length), regions = example.config, inputs[0].shape, inputs[2].shape[1]
    shapes = {
        "vilbert": {
            "hidden": (rows, length, config.text.width),
            "regions": (rows, regions, config.regions.width),
            "text": (rows, config.joint_width),
            "image": (rows, config.joint_width),
        },
        "vilbert-pretraining": {
            "tokens": (rows, length, config.vocab_size),
            "regions": (rows, regions, config.vision.classes or config.vision.feature_size),
            "matching": (rows,),
        },
        "vilbert-question-answering": (rows, len(getattr(config, "labels", ()))),
        "vilbert-grounding": (rows, regions),
        "vilbert-retrieval": (rows,),
    }
    found = example.model()(*inputs)
    if isinstance(found, Tensor):
        assert found.shape == shapes[example.kind]
    else:
        assert {name: value.shape for name, value in found._asdict().items()} == shapes[example.kind]


@pytest.mark.parametrize("example", VILBERT, ids=named)
def test_in_co_attention_each_stream_attends_to_the_other(example, inputs):
    model, config = example.loud_model(), example.config
    with capture(model, "*_co_attention.attention.weights") as seen:
        model(*inputs)
    (rows, length), regions = inputs[0].shape, inputs[2].shape[1]
    shapes = sorted(tuple(value.shape) for (value,) in seen.values())
    wanted = [(rows, config.text.heads, length, regions), (rows, config.regions.heads, regions, length)]
    assert shapes == sorted(wanted * config.co_attention_layers)


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_do_not_fit_together_are_one_line(kind):
    config = model_class(kind).config_class
    with pytest.raises(ConfigError, match=r"width=24 does not divide into heads=5; try width=20"):
        config(**TINY | {"text": {"width": 24, "heads": 5}})
    with pytest.raises(ConfigError, match=r"features=10 and model.vision.patch_size=4: give one of them"):
        config(**TINY | {"vision": {"features": 10, "patch_size": 4}})
    with pytest.raises(ConfigError, match=r"model.special_ids.mask_id=40, but there are only 40 ids"):
        config(**TINY | {"special_ids": {"pad_id": 0, "bos_id": 1, "eos_id": 2, "mask_id": 40}})
