"""Costs of models: every formula against what torch counts."""

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from regard.errors import ConfigError, InputError
from regard.experiments import model_cost as costing
from regard.experiments.model_cost import bytes_of, counted, model_cost, storages_of
from regard.inspection.capture import capture
from regard.models import build
from regard.models.captioner import CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.tasks.captioning.dataset import CaptionBatch
from regard.training.flops import training_flops
from tests.contracts.examples import CAPTIONERS, CAUSAL_LM, ENCODERS, SEQ2SEQ, VISION_LANGUAGE, example_of, named

SMALL = {"vocab_size": 60, "width": 16}
CONFIGS = [
    TransformerConfig(**SMALL, heads=4, layers=2, feed_forward=24),
    TransformerConfig(**SMALL, heads=2, layers=3, decoder_layers=1, feed_forward=8, combine_positions="concatenated"),
    TransformerConfig(**SMALL, heads=1, layers=1, feed_forward=8, target_vocab_size=30, tie_embeddings=False),
    RNNConfig(**SMALL, bridge="last_state", bidirectional=False),
    RNNConfig(**SMALL, bridge="last_state", cell="lstm", layers=2),
    RNNConfig(**SMALL, bridge="fixed_context", layers=2),
    RNNConfig(**SMALL, bridge="fixed_context", cell="lstm"),
    RNNConfig(**SMALL),
    RNNConfig(**SMALL, cell="lstm", layers=2, similarity="dot", bidirectional=False),
    ConvConfig(**SMALL, layers=2),
    ConvConfig(**SMALL, layers=3, decoder_layers=1, kernel=4),
    GPTConfig(**SMALL, context=32, heads=4, layers=2),
    GPTConfig(**SMALL, context=32, heads=2, layers=1, feed_forward=24, tie_embeddings=False),
    LlamaConfig(**SMALL, context=32, heads=4, num_kv_heads=2, layers=2, feed_forward=24),
    LlamaConfig(
        **SMALL, context=32, heads=2, num_kv_heads=2, layers=1, feed_forward=8, tie_embeddings=False, qkv_bias=True
    ),
    LlamaConfig(**SMALL, context=32, heads=4, num_kv_heads=1, layers=3, feed_forward=20),
    CaptionerConfig(**SMALL, image_size=32, feed_forward=24),
    CaptionerConfig(**SMALL, image_size=16, cell_size=4, encoder_blocks=3, layers=2, feed_forward=24),
    CaptionerConfig(**SMALL, image_size=32, encoder="patches", encoder_blocks=2, layers=2, feed_forward=24),
    CaptionerConfig(**SMALL, image_size=32, cell_size=16, decoder="transformer", layers=2, feed_forward=24),
    CaptionerConfig(
        **SMALL, image_size=24, encoder="patches", encoder_blocks=1, decoder="transformer", feed_forward=24
    ),
    CaptionerConfig(
        **SMALL, image_size=16, encoder="vit", vit={"width": 12, "heads": 3, "layers": 2, "feed_forward": 20}
    ),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
@pytest.mark.parametrize(("source", "target"), [(11, 7), (3, 20)])
def test_the_formulas_are_what_torch_counts(config, source, target):
    model = build(config).eval()
    lengths = {"target": target} if model.interface == "captioner" else {"source": source, "target": target}
    rows = {row.name: row for row in model_cost(model, batch=2, **lengths)}
    for name in ("multiply-adds, forward pass", "attention matrices", "KV cache, or state"):
        assert rows[name].formula == rows[name].measured, name
    assert rows["parameters"].measured == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("example", [*SEQ2SEQ, *CAUSAL_LM, *CAPTIONERS], ids=named)
def test_so_are_those_of_every_example_that_generates(example):
    rows = {row.name: row for row in model_cost(example.model(), batch=2, target=7)}
    for name in ("multiply-adds, forward pass", "attention matrices", "KV cache, or state"):
        assert rows[name].formula == rows[name].measured, name


@pytest.mark.parametrize("example", ENCODERS, ids=named)
@pytest.mark.parametrize("length", [1, 4, 19])
def test_the_formulas_of_readers_are_what_torch_counts(example, length):
    model = example.model()
    rows = {row.name: row for row in model_cost(model, batch=2, source=length)}
    for name in ("multiply-adds, forward pass", "FLOPs per token", "attention matrices"):
        assert rows[name].formula == pytest.approx(rows[name].measured, rel=1e-12), name
    assert rows["parameters"].measured == sum(parameter.numel() for parameter in model.parameters())
    assert not {name for name in rows if "decod" in name or "state" in name or "target" in name}


@dataclass
class Hidden:
    """As a batch of rows with hidden words is."""

    ids: torch.Tensor
    positions: torch.Tensor


@pytest.mark.parametrize("example", ENCODERS, ids=named)
def test_in_training_only_the_hidden_words_are_guessed(example):
    """Counted: a pass whose head sees only those."""
    model, ids = example.model(), torch.randint(4, 40, (4, 12))
    masked = Hidden(ids, torch.tensor([2, 5, 17, 30, 31]))
    if hasattr(model, "token_logits"):
        whole = model.token_logits
        model.token_logits = lambda hidden: whole(hidden.flatten(0, 1)[masked.positions])
    assert training_flops(model, [masked, masked]) == pytest.approx(2 * 6 * counted(model, ids), rel=1e-12)


def test_a_training_step_of_pictures_is_counted():
    config = CaptionerConfig(**SMALL, image_size=32)
    pixels, hidden = torch.zeros(3, 32, 32, 3, dtype=torch.uint8), torch.full((3, 5), 4)
    batch = CaptionBatch(pixels, hidden, hidden, [], 15)
    model = build(config)
    assert training_flops(model, [batch]) == 6 * counted(model, torch.randn(3, 3, 32, 32), hidden)


def test_a_captioner_is_given_no_source(monkeypatch):
    config = CaptionerConfig(**SMALL, image_size=32)
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=build(config).eval()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2, target=3)}
    assert rows["attention matrices"].formula == 2 * 4 * 3 * config.num_cells
    with pytest.raises(ConfigError, match=r"^--source 5 is for models that read text; a-folder reads images"):
        costing.cost_of_model("a-folder", batch=2, source=5)


@dataclass
class Shown(Hidden):
    """As a batch of texts with hidden words beside pictures is."""

    regions: torch.Tensor


@pytest.mark.parametrize("example", VISION_LANGUAGE, ids=named)
@pytest.mark.parametrize("regions", [1, 7])
def test_the_formulas_beside_pictures_are_what_torch_counts(example, regions):
    model, ids = example.model(), torch.randint(4, 40, (4, 12))
    shown = Shown(ids, torch.tensor([2, 5, 17, 30, 31]), torch.randn(4, regions, 10))
    if hasattr(model, "token_logits"):
        whole = model.token_logits
        model.token_logits = lambda hidden: whole(hidden.flatten(0, 1)[shown.positions])
    inputs = ids, torch.zeros_like(ids), shown.regions, torch.rand(4, regions, 5)
    assert training_flops(model, [shown, shown]) == pytest.approx(2 * 6 * counted(model, *inputs), rel=1e-12)
    formula = example.config.flops(12, 5 / 4, regions)
    with capture(model, "*.weights") as seen:
        model(*inputs)
    assert 4 * formula.attention_weights == sum(value.numel() for (value,) in seen.values())


@pytest.mark.parametrize("example", VISION_LANGUAGE, ids=named)
def test_the_cost_of_a_pair_is_its_formula_beside_what_was_counted(example, monkeypatch):
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=example.model()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2, source=9)}
    for name in ("multiply-adds, forward pass", "attention matrices"):
        assert rows[name].formula == pytest.approx(rows[name].measured, rel=1e-12), name
    wanted = example.config.flops(9, 9, 37)
    assert rows["multiply-adds, forward pass"].formula == 2 * wanted.multiply_adds
    with pytest.raises(
        ConfigError, match=r"^--target 5 is for models that generate; a-folder is an encoder, leave it out$"
    ):
        costing.cost_of_model("a-folder", batch=2, target=5)


def test_a_reader_is_given_no_target(monkeypatch):
    config = example_of("bert").config
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=build(config).eval()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2)}
    wanted = config.flops(config.context, config.context)
    assert rows["multiply-adds, forward pass"].formula == 2 * wanted.multiply_adds
    with pytest.raises(
        ConfigError, match=r"^--target 5 is for models that generate; a-folder is an encoder, leave it out$"
    ):
        costing.cost_of_model("a-folder", batch=2, target=5)


@torch.no_grad()
def test_the_room_of_a_cache_is_what_was_taken_in_advance():
    model = build(CONFIGS[0]).eval()
    state = model.start(torch.full((2, 5), 3))
    for _ in range(3):
        _, state = model.step(state.first, state)
    columns = 2 * 2 * 2 * 16 * 4  # keys and values, layers, rows, width, bytes
    assert bytes_of(state) == (5 + 3) * columns
    assert sum(storages_of(state).values()) == (5 + 32) * columns  # room for 32 words at first


def test_what_does_not_fit_is_said_before_it_is_tried():
    with pytest.raises(InputError, match="would take .* GB"):
        model_cost(build(CONFIGS[0]).eval(), batch=1000, source=10_000, target=10_000)
    with pytest.raises(InputError, match="would take .* GB"):
        model_cost(example_of("bert").model(), batch=1000, source=10_000)


@torch.no_grad()
def test_a_cache_grows_with_every_word_and_a_recurrent_state_does_not():
    source = torch.full((2, 5), 3)
    grown = {}
    for config in (CONFIGS[0], CONFIGS[3]):
        model = build(config).eval()
        state = model.start(source)
        sizes = []
        for _ in range(3):
            _, state = model.step(state.first, state)
            sizes.append(bytes_of(state))
        grown[type(config)] = {after - before for before, after in pairwise(sizes)}
    assert grown[RNNConfig] == {0}
    assert grown[TransformerConfig] == {2 * 2 * 2 * 16 * 4}  # keys and values, layers, rows, width, bytes
