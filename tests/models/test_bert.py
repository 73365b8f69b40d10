"""BERT: the published sizes, the equations of its parts, and what it refuses."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard import ops
from regard.errors import ConfigError, InputError
from regard.layers.attention import SelfAttention
from regard.models import build
from regard.models.bert import (
    SIZES,
    Bert,
    BertConfig,
    BertForMaskedLM,
    BertForMaskedLMConfig,
    BertForPreTraining,
    BertForPreTrainingConfig,
    BertForSequenceClassification,
    BertForSequenceClassificationConfig,
    BertForTokenClassificationConfig,
)
from tests.contracts.examples import EXAMPLES, Example, named

FACTS = {"vocab_size": 40, "context": 8, "width": 24, "heads": 3, "layers": 2}
FACTS |= {"special_ids": {"pad_id": 0, "bos_id": 1, "eos_id": 2, "mask_id": 3}}
TINY = BertConfig(**FACTS)


def count(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(config).parameters())


def loud(config):
    return Example(config).loud_model()


@pytest.fixture
def ids():
    return torch.randint(4, 40, (3, 6), generator=torch.Generator().manual_seed(1))


def test_the_sizes_have_the_published_parameters():
    assert {size: count(config) for size, config in SIZES.items()} == {
        "tiny": 4_385_920,
        "mini": 11_170_560,
        "small": 28_763_648,
        "medium": 41_373_184,
        "base": 109_482_240,
        "large": 335_141_888,
    }


def test_the_count_by_hand_and_what_each_head_adds():
    width, vocab_size = 768, 30_522
    tables = (vocab_size + 512 + 2) * width
    layer, norm = width * width + width, 2 * width
    block = 4 * layer + (8 * width * width + 5 * width) + 2 * norm
    encoder = tables + norm + 12 * block
    assert count(BertConfig(pooler=False)) == encoder
    assert count(BertConfig()) == encoder + layer
    hidden = layer + norm + vocab_size  # the table is shared
    assert count(BertForMaskedLMConfig()) == encoder + hidden
    assert count(BertForPreTrainingConfig()) == encoder + layer + hidden + 2 * width + 2 == 110_106_428
    assert count(BertForSequenceClassificationConfig(labels=("a", "b", "c"))) == encoder + layer + 3 * (width + 1)
    assert count(BertForSequenceClassificationConfig()) == encoder + layer + width + 1
    assert count(BertForTokenClassificationConfig(labels=("O", "B"))) == encoder + 2 * (width + 1)


def layer_norm(hidden, norm, epsilon):
    """γ (x - mean) / √(variance + ε) + β, over the numbers of each word."""
    centered = hidden - hidden.mean(-1, keepdim=True)
    return norm.weight * centered / (centered.square().mean(-1, keepdim=True) + epsilon).sqrt() + norm.bias


def gelu(x):
    """x Φ(x), Φ the share of a normal distribution below x."""
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def affine(hidden, layer):
    return hidden @ layer.weight.T + layer.bias


def block_by_hand(block, hidden, real, heads):
    """softmax(Q Kᵀ / √K) V a head, side by side, projected; added; normed; then two layers with GELU, the same way."""
    attended = torch.zeros_like(hidden)
    width = hidden.shape[-1] // heads
    matrices = block.attention.project.weight.chunk(3)
    biases = block.attention.project.bias.chunk(3)
    query, key, value = (hidden @ matrix.T + bias for matrix, bias in zip(matrices, biases, strict=True))
    for head in range(heads):
        mine = slice(head * width, (head + 1) * width)
        scores = query[..., mine] @ key[..., mine].transpose(1, 2) / math.sqrt(width)
        exponents = scores.exp() * real[:, None, :]
        attended[..., mine] = exponents / exponents.sum(-1, keepdim=True) @ value[..., mine]
    hidden = layer_norm(hidden + affine(attended, block.attention.output), block.norm_attention, 1e-12)
    inner = gelu(affine(hidden, block.feed_forward.expand))
    return layer_norm(hidden + affine(inner, block.feed_forward.contract), block.norm_feed_forward, 1e-12)


@torch.no_grad()
def test_the_encoder_is_the_lectures_formulas(ids):
    model = loud(TINY)
    ids[1, 4:] = 0
    segment_ids = torch.tensor([[0, 0, 0, 1, 1, 1]]).repeat(3, 1)
    table = model.embedding
    hidden = table.tokens.weight[ids] + table.positions.weight[:6] + table.segments.weight[segment_ids]
    hidden = layer_norm(hidden, table.norm, 1e-12)
    for block in model.blocks:
        expected = block_by_hand(block, hidden, ids != 0, heads=3)
        assert_close(block(hidden, (ids != 0)[:, None, None]), expected, atol=1e-5, rtol=1e-4)
        hidden = expected
    found = model(ids, segment_ids)
    assert_close(found.hidden, hidden, atol=1e-5, rtol=1e-4)
    assert_close(found.pooled, torch.tanh(affine(hidden[:, 0], model.pooler)), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_the_word_head_is_one_more_layer_and_the_table_again(ids):
    for config, kind in (
        (BertForPreTrainingConfig(**FACTS), BertForPreTraining),
        (BertForMaskedLMConfig(**FACTS), BertForMaskedLM),
    ):
        model = loud(config)
        assert type(model) is kind
        hidden = model.encode(ids).hidden
        projected = layer_norm(gelu(affine(hidden, model.head.project)), model.head.norm, 1e-12)
        wanted = projected @ model.encoder.embedding.tokens.weight.T + model.head.bias
        found = model(ids)
        assert_close(found if kind is BertForMaskedLM else found.tokens, wanted, atol=1e-5, rtol=1e-4)
        some = torch.tensor([[True, False, False, True, False, True]]).expand(3, -1)
        assert_close(model.token_logits(hidden[some]), wanted[some], atol=1e-5, rtol=1e-4)


def test_texts_behind_each_other_are_read_as_alone():
    model = Bert(BertConfig(**FACTS | {"width": 64, "heads": 2, "context": 20})).eval()
    texts = [torch.randint(4, 40, (length,)).tolist() for length in (20, 1, 7, 16)]  # together more than the context
    with torch.inference_mode():
        alone = torch.cat([model(torch.tensor([text])).hidden[0] for text in texts])
        assert_close(model.encode_varlen(texts), alone, atol=1e-5, rtol=1e-5)
        with ops.disabled():
            assert_close(model.encode_varlen(texts), alone, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_pretraining_gives_words_and_next_by_name(ids):
    model = loud(BertForPreTrainingConfig(**FACTS))
    found = model(ids)
    assert found._fields == ("tokens", "next")
    assert (found.tokens.shape, found.next.shape) == ((3, 6, 40), (3, 2))
    assert_close(found.next, affine(model.encode(ids).pooled, model.next))


@torch.no_grad()
def test_a_class_is_told_from_the_whole_row_and_tags_from_each_word(ids):
    classifier, tagger = (
        loud(BertForSequenceClassificationConfig(**FACTS, labels=("a", "b"))),
        loud(BertForTokenClassificationConfig(**FACTS)),
    )
    assert isinstance(classifier, BertForSequenceClassification)
    assert_close(classifier(ids), affine(classifier.encode(ids).pooled, classifier.head))
    assert_close(tagger(ids), affine(tagger.encode(ids).hidden, tagger.head))
    assert tagger.encode(ids).pooled is None


def test_a_fresh_model_finds_all_words_about_as_likely():
    config = FACTS | {"vocab_size": 1000, "context": 64, "width": 64, "heads": 4}
    model = build(BertForMaskedLMConfig(**config)).eval()
    ids = torch.randint(4, 1000, (8, 64))
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.2)


def test_matrices_start_small_biases_at_zero_norms_at_one():
    for config in (
        BertForPreTrainingConfig(**FACTS | {"width": 96}),
        BertForSequenceClassificationConfig(**FACTS | {"width": 96}),
    ):
        for name, parameter in build(config).named_parameters():
            if name.endswith("bias"):
                assert not parameter.any(), name
            elif "norm" in name:
                assert (parameter == 1).all(), name
            else:
                share = 4 / math.sqrt(2 * parameter.numel())
                assert parameter.std().item() == pytest.approx(0.02, rel=max(0.02, share)), name


def test_dropout_stands_on_the_embedding_every_sublayer_and_before_a_class(ids):
    for config, heads in (
        (TINY, 0),
        (BertForSequenceClassificationConfig(**FACTS), 1),
        (BertForTokenClassificationConfig(**FACTS), 1),
    ):
        model, calls = build(config).train(), []
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        model(ids)
        assert len(calls) == 1 + 2 * 2 + heads


def test_no_attention_is_causal():
    attention = [module for module in Bert(TINY).modules() if isinstance(module, SelfAttention)]
    assert [module.causal for module in attention] == [False, False]


@pytest.mark.parametrize(
    "kind", [BertConfig, BertForPreTrainingConfig, BertForMaskedLMConfig, BertForSequenceClassificationConfig]
)
def test_more_tokens_than_the_context_are_refused(kind):
    model = build(kind(**FACTS)).eval()
    model(torch.full((1, 8), 5))
    with pytest.raises(InputError, match=r"^9 tokens, but this model learned positions for 8; shorten the input$"):
        model(torch.full((1, 9), 5))


@pytest.mark.parametrize("shape", [(3, 5), (1, 6), (6,)])
def test_segments_of_another_shape_are_refused(ids, shape):
    with pytest.raises(InputError) as refused:
        Bert(TINY)(ids, torch.zeros(shape, dtype=torch.long))
    assert str(refused.value) == f"segment_ids are {shape}, wanted the shape of ids, (3, 6)"


def test_a_width_that_does_not_divide_is_refused_with_one_that_does():
    with pytest.raises(ConfigError, match=r"^model.width=30 does not divide into model.heads=4; try model.width=28$"):
        BertConfig(width=30, heads=4)


@pytest.mark.parametrize("name", ["pad_id", "bos_id", "eos_id", "mask_id"])
def test_symbols_must_be_ids(name):
    special_ids = FACTS["special_ids"] | {name: 40}
    with pytest.raises(ConfigError, match=f"^model.special_ids.{name}=40, but there are only 40 ids$"):
        BertConfig(**FACTS | {"special_ids": special_ids})


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.kind.startswith("bert")], ids=named)
def test_each_head_has_its_outputs(example, ids):
    config, (rows, length) = example.config, ids.shape
    labels = len(getattr(config, "labels", ()))
    shapes = {
        "bert": [(rows, length, config.width), (rows, config.width) if config.pooler else None],
        "bert-pretraining": [(rows, length, config.vocab_size), (rows, 2)],
        "bert-masked-lm": [(rows, length, config.vocab_size)],
        "bert-sequence-classification": [(rows, labels or 1)],
        "bert-token-classification": [(rows, length, labels)],
    }
    found = example.model()(ids)
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    assert [None if one is None else one.shape for one in outputs] == shapes[example.kind]
