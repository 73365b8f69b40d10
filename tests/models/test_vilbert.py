"""ViLBERT, held against its wiring written out; what holds for all its heads is in contracts/test_image_text.py."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm
from torch.testing import assert_close

from regard.inspection.capture import watch
from regard.models.vilbert import SeeingConfig, StreamConfig, ViLBERTConfig
from tests.contracts.examples import IMAGE_TEXT, PAIRS, Example


def made(kind: str):
    return next(example for example in IMAGE_TEXT if example.kind == kind).loud_model()


@pytest.fixture
def inputs() -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, 40, (2, 6), generator=generator)
    boxes = torch.rand(2, 4, 5, generator=generator) + 0.1
    return ids, torch.zeros_like(ids), torch.randn(2, 4, 10, generator=generator), boxes


def normed(words: Tensor, norm) -> Tensor:
    return layer_norm(words, words.shape[-1:], norm.weight, norm.bias, 1e-12)


def fed(words: Tensor, block) -> Tensor:
    inner = gelu(words @ block.feed_forward.expand.weight.T + block.feed_forward.expand.bias)
    outer = inner @ block.feed_forward.contract.weight.T + block.feed_forward.contract.bias
    return normed(words + outer, block.norm_feed_forward)


def looked(words: Tensor, memory: Tensor, look) -> Tensor:
    return fed(normed(words + look.attention(words, memory), look.norm_attention), look)


def read(words: Tensor, block) -> Tensor:
    return fed(normed(words + block.attention(words), block.norm_attention), block)


def test_the_streams_are_wired_as_in_the_paper(inputs):
    """Each stream by itself first; where they meet, both look at what the other was before."""
    model, (ids, segments, regions, boxes) = made("vilbert"), inputs
    words = model.words.words.weight[ids] + model.words.positions(0, 6) + model.words.sentences.weight[segments]
    words = normed(words, model.words.norm)
    seen = normed(model.regions.features(regions) + model.regions.boxes(boxes), model.regions.norm)
    words, seen = read(words, model.word_blocks[0]), read(seen, model.region_blocks[0])
    for meeting in model.meetings:
        told, shown = looked(words, seen, meeting.words_look), looked(seen, words, meeting.regions_look)
        words, seen = read(told, meeting.words_read), read(shown, meeting.regions_read)
    found = model(*inputs)
    assert_close(found.words, words, atol=2e-5, rtol=1e-4)
    assert_close(found.regions, seen, atol=2e-5, rtol=1e-4)
    assert_close(found.text, torch.tanh(model.text(words[:, 0])), atol=2e-5, rtol=1e-4)
    assert_close(found.picture, torch.tanh(model.picture(seen[:, 0])), atol=2e-5, rtol=1e-4)


def test_a_pair_is_judged_by_the_product_of_its_sides(inputs):
    for kind in ("vilbert-pretraining", "vilbert-matcher"):
        model = made(kind)
        found = model.read(*inputs)
        wanted = (found.text * found.picture) @ model.fits.weight[0] + model.fits.bias
        said = model(*inputs)
        assert_close(said.fits if kind == "vilbert-pretraining" else said, wanted)


def test_a_region_is_judged_as_the_whole_picture_is(inputs):
    model = made("vilbert-pointer")
    found, logits = model.read(*inputs), model(*inputs)
    assert_close(logits[:, 0], model.fits(found.text * found.picture)[:, 0])  # region 0 is the whole picture
    third = torch.tanh(model.encoder.picture(found.regions[:, 3]))
    assert_close(logits[:, 3], model.fits(found.text * third)[:, 0])


def test_hidden_words_are_compared_with_the_table_they_came_from(inputs):
    model = made("vilbert-pretraining")
    before = model(*inputs).words
    absent = next(number for number in range(4, 40) if number not in inputs[0])
    with torch.no_grad():
        model.words_table[absent] *= 2
    changed = (model(*inputs).words - before).abs().amax((0, 1))
    assert changed[absent] > 1e-3
    assert changed[torch.arange(40) != absent].max() < 1e-4


def test_pixels_go_through_one_more_layer_where_there_is_one(inputs):
    model = made("vilbert-answerer")
    embedding, (_, _, regions, boxes) = model.encoder.regions, inputs
    wanted = embedding.features(gelu(embedding.hidden(regions))) + embedding.boxes(boxes)
    assert_close(embedding(regions, boxes), normed(wanted, embedding.norm))


def test_what_a_word_looks_at_decides_what_it_hears(inputs):
    """With all of its attention on one region, a word is told what that region alone would tell it."""
    model = Example(
        ViLBERTConfig(**PAIRS | {"meetings": 1, "regions": {"width": 16, "heads": 2, "layers": 0}})
    ).loud_model()
    ids, segments, regions, boxes = inputs
    path = "meetings.0.words_look.attention.weights"
    alone = model(ids, segments, regions[:, :1], boxes[:, :1]).words
    with watch(model, path) as seen:
        model(*inputs)
    assert seen[path][0].shape == (2, 3, 6, 4)
    tap = model.get_submodule(path)
    tap.watcher = lambda weights: torch.zeros_like(weights).index_fill(-1, torch.tensor([0]), 1.0)
    assert_close(model(*inputs).words, alone, atol=2e-5, rtol=1e-4)
    tap.watcher = None


def test_the_defaults_are_the_papers():
    config = ViLBERTConfig()
    assert (config.text.width, config.text.heads, config.text.layers + config.meetings) == (768, 12, 12)
    assert (config.regions.width, config.regions.heads, config.seeing.numbers) == (1024, 8, 2048)
    assert StreamConfig(width=8, heads=2).inner == 32
    assert SeeingConfig(patch=8).numbers == 192
