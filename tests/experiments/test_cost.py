"""Costs: every formula against what torch really does, and what the fits say of known curves."""

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from regard.errors import ConfigError, InputError
from regard.experiments import cost, costing
from regard.experiments.cost import KINDS, Measured, Pass, Size, find_crossing, growth, kept_bytes, measure, power
from regard.experiments.model_cost import bytes_of, counted, model_cost, pairings, reader_cost, storages_of
from regard.inspection.capture import watch
from regard.models import MODELS, build
from regard.models.captioner import CaptionerConfig
from regard.models.conv_seq2seq import ConvConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnn_seq2seq import RNNConfig
from regard.models.transformer import TransformerConfig
from regard.tasks.captioning.dataset import CaptionBatch
from regard.training.formulas import FORMULAS, training_flops
from tests.contracts.examples import IMAGE_TEXT, READERS, named

SMALL = {"vocab_size": 60, "width": 16}
CONFIGS = [
    TransformerConfig(**SMALL, heads=4, layers=2, feed_forward=24),
    TransformerConfig(**SMALL, heads=2, layers=3, decoder_layers=1, feed_forward=8, join="concatenated"),
    TransformerConfig(**SMALL, heads=1, layers=1, feed_forward=8, target_vocab_size=30, tied=False),
    RNNConfig(**SMALL, bridge="last_state", both_ways=False),
    RNNConfig(**SMALL, bridge="last_state", cell="lstm", layers=2),
    RNNConfig(**SMALL, bridge="fixed_context", layers=2),
    RNNConfig(**SMALL, bridge="fixed_context", cell="lstm"),
    RNNConfig(**SMALL),
    RNNConfig(**SMALL, cell="lstm", layers=2, similarity="dot", both_ways=False),
    ConvConfig(**SMALL, layers=2),
    ConvConfig(**SMALL, layers=3, decoder_layers=1, kernel=4),
    GPTConfig(**SMALL, context=32, heads=4, layers=2),
    GPTConfig(**SMALL, context=32, heads=2, layers=1, feed_forward=24, tied=False),
    LlamaConfig(**SMALL, context=32, heads=4, num_kv_heads=2, layers=2, feed_forward=24),
    LlamaConfig(**SMALL, context=32, heads=2, num_kv_heads=2, layers=1, feed_forward=8, tied=False, bias=True),
    LlamaConfig(**SMALL, context=32, heads=4, num_kv_heads=1, layers=3, feed_forward=20),
    CaptionerConfig(**SMALL, side=32, feed_forward=24),
    CaptionerConfig(**SMALL, side=16, cell=4, blocks=3, layers=2, feed_forward=24),
    CaptionerConfig(**SMALL, side=32, encoder="patches", blocks=2, layers=2, feed_forward=24),
    CaptionerConfig(**SMALL, side=32, cell=16, decoder="transformer", layers=2, feed_forward=24),
    CaptionerConfig(**SMALL, side=24, encoder="patches", blocks=1, decoder="transformer", feed_forward=24),
    CaptionerConfig(**SMALL, side=16, encoder="vit", vit={"width": 12, "heads": 3, "layers": 2, "feed_forward": 20}),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
@pytest.mark.parametrize(("source", "target"), [(11, 7), (3, 20)])
def test_the_formulas_are_what_torch_counts(config, source, target):
    model = build(config).eval()
    rows = {row.name: row for row in model_cost(model, batch=2, source=source, target=target)}
    for name in ("multiply-adds of a pass", "attention matrices", "key-value cache, or state"):
        assert rows[name].formula == rows[name].measured, name
    assert rows["parameters"].measured == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("example", READERS, ids=named)
@pytest.mark.parametrize("length", [1, 4, 19])
def test_the_formulas_of_readers_are_what_torch_counts(example, length):
    model = example.model()
    rows = {row.name: row for row in reader_cost(model, batch=2, length=length)}
    for name in ("multiply-adds of a pass", "FLOPs a token", "attention matrices"):
        assert rows[name].formula == pytest.approx(rows[name].measured, rel=1e-12), name
    assert rows["parameters"].measured == sum(parameter.numel() for parameter in model.parameters())
    assert not {name for name in rows if "writ" in name or "state" in name or "target" in name}


@dataclass
class Hidden:
    """As a batch of rows with hidden words is."""

    ids: torch.Tensor
    places: torch.Tensor


@pytest.mark.parametrize("example", READERS, ids=named)
def test_in_training_only_the_hidden_words_are_guessed(example):
    """Counted: a pass whose head sees only those."""
    model, ids = example.model(), torch.randint(4, 40, (4, 12))
    masked = Hidden(ids, torch.tensor([2, 5, 17, 30, 31]))
    if hasattr(model, "word_logits"):
        whole = model.word_logits
        model.word_logits = lambda hidden: whole(hidden.flatten(0, 1)[masked.places])
    assert training_flops(model, [masked, masked]) == pytest.approx(2 * 6 * counted(model, ids), rel=1e-12)


def test_a_training_step_of_pictures_is_counted():
    config = CaptionerConfig(**SMALL, side=32)
    pixels, hidden = torch.zeros(3, 32, 32, 3, dtype=torch.uint8), torch.full((3, 5), 4)
    batch = CaptionBatch(pixels, hidden, hidden, [], 15)
    model = build(config)
    assert training_flops(model, [batch]) == 6 * counted(model, torch.randn(3, 3, 32, 32), hidden)


def test_a_captioner_is_given_no_source(monkeypatch):
    config = CaptionerConfig(**SMALL, side=32)
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=build(config).eval()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2, target=3)}
    assert rows["attention matrices"].formula == 2 * 4 * 3 * config.cells
    with pytest.raises(ConfigError, match=r"^--source 5 is of a model that reads words; a-folder sees pictures"):
        costing.cost_of_model("a-folder", batch=2, source=5)


@dataclass
class Shown(Hidden):
    """As a batch of texts with hidden words beside pictures is."""

    regions: torch.Tensor


@pytest.mark.parametrize("example", IMAGE_TEXT, ids=named)
@pytest.mark.parametrize("regions", [1, 7])
def test_the_formulas_beside_pictures_are_what_torch_counts(example, regions):
    model, ids = example.model(), torch.randint(4, 40, (4, 12))
    shown = Shown(ids, torch.tensor([2, 5, 17, 30, 31]), torch.randn(4, regions, 10))
    if hasattr(model, "word_logits"):
        whole = model.word_logits
        model.word_logits = lambda hidden: whole(hidden.flatten(0, 1)[shown.places])
    inputs = ids, torch.zeros_like(ids), shown.regions, torch.rand(4, regions, 5)
    assert training_flops(model, [shown, shown]) == pytest.approx(2 * 6 * counted(model, *inputs), rel=1e-12)
    formula = FORMULAS[type(example.config)](example.config, 12, 5 / 4, regions)
    with watch(model, "*.weights") as seen:
        model(*inputs)
    assert 4 * formula.attention_numbers == sum(value.numel() for (value,) in seen.values())


@pytest.mark.parametrize("example", IMAGE_TEXT, ids=named)
def test_the_cost_of_a_pair_is_its_formula_beside_what_was_counted(example, monkeypatch):
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=example.model()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2, source=9)}
    for name in ("multiply-adds of a pass", "attention matrices"):
        assert rows[name].formula == pytest.approx(rows[name].measured, rel=1e-12), name
    wanted = FORMULAS[type(example.config)](example.config, 9, 9, 37)
    assert rows["multiply-adds of a pass"].formula == 2 * wanted.multiply_adds
    with pytest.raises(ConfigError, match=r"^--target 5 is of a model that writes; a-folder reads only, leave it out$"):
        costing.cost_of_model("a-folder", batch=2, target=5)


def test_a_reader_is_given_no_target(monkeypatch):
    config = READERS[0].config
    monkeypatch.setattr(costing, "load", lambda folder: SimpleNamespace(model=build(config).eval()))
    rows = {row.name: row for row in costing.cost_of_model("a-folder", batch=2)}
    wanted = FORMULAS[type(config)](config, config.context, config.context)
    assert rows["multiply-adds of a pass"].formula == 2 * wanted.multiply_adds
    with pytest.raises(ConfigError, match=r"^--target 5 is of a model that writes; a-folder reads only, leave it out$"):
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
        reader_cost(READERS[0].model(), batch=1000, length=10_000)


def test_every_architecture_has_a_formula():
    assert set(FORMULAS) == {one.config for one in MODELS.values()}


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


def test_the_lectures_orders_of_growth():
    """n d² for recurrence, k n d² for convolution, n² d for the scores; n steps against one; paths n, n / k, 1."""
    size, longer, wider = Size(100, 32, kernel=3), Size(200, 32, kernel=3), Size(100, 64, kernel=3)
    found = {kind.name: kind for kind in KINDS}
    for name, by_length, by_width in (
        ("recurrence", 2, 4),
        ("convolution", 2, 4),
        ("scores, written out", 4, 2),
        ("scores, fast kernel", 4, 2),
    ):
        cost = found[name].multiply_adds
        assert cost(longer) / cost(size) == by_length
        assert cost(wider) / cost(size) == by_width
    assert [found[name].sequential_steps(size) for name in ("recurrence", "convolution", "self-attention")] == [
        100,
        1,
        1,
    ]
    assert [found[name].longest_path(size) for name in ("recurrence", "convolution", "self-attention")] == [100, 50, 1]


@pytest.mark.parametrize("width", [16, 128, 512])
def test_recurrence_and_self_attention_cost_the_same_where_n_is_d(width):
    recurrence, attention = (
        next(kind for kind in KINDS if kind.name == name) for name in ("recurrence", "self-attention")
    )
    for length, sign in ((width // 2, -1), (width, 0), (2 * width, 1)):
        apart = attention.multiply_adds(Size(length, width)) - recurrence.multiply_adds(Size(length, width))
        assert (apart > 0) - (apart < 0) == sign


def test_n_squared_plus_m_squared_plus_nm_is_counted():
    for one in pairings():
        assert one.formula == one.counted == one.source**2 + one.target**2 + one.source * one.target


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [Size(64, 32, heads=4), Size(200, 16, heads=2, kernel=5)])
def test_what_is_kept_for_the_way_back_is_what_the_formula_says(kind, size):
    one = kind.build(size)
    assert kept_bytes(one.run, one.given) == pytest.approx(4 * kind.kept_numbers(size), rel=0.02)


def test_written_out_attention_keeps_n_squared_numbers_and_the_kernel_n():
    kept = {}
    for kind in KINDS[-2:]:
        lengths = [256, 512, 1024]
        passes = [kind.build(Size(length, 16, heads=2)) for length in lengths]
        kept[kind.name] = power(lengths, [kept_bytes(one.run, one.given) for one in passes])
    assert kept["scores, written out"] == pytest.approx(2.0, abs=0.05)
    assert kept["scores, fast kernel"] == pytest.approx(1.0, abs=0.05)


def test_kept_bytes_counts_a_storage_once_and_nothing_that_was_given():
    layer = torch.nn.Linear(10, 10, bias=False)
    hidden = torch.randn(5, 10, requires_grad=True)
    assert kept_bytes(lambda: layer(hidden), layer.parameters()) == hidden.nbytes
    assert kept_bytes(lambda: layer(hidden), [*layer.parameters(), hidden]) == 0
    assert kept_bytes(lambda: layer(hidden).exp(), [*layer.parameters(), hidden]) == hidden.nbytes


def test_a_power_is_fitted_where_the_curve_is_long():
    lengths = [2, 4, 8, 16, 32]
    assert power(lengths, [n**2.0 for n in lengths]) == pytest.approx(2.0)
    assert power(lengths, [100.0, 100.0, 3 * 8**1.5, 3 * 16**1.5, 3 * 32**1.5]) == pytest.approx(1.5)


def test_measuring_gives_every_kind_at_every_length_and_its_growth():
    found = measure([8, 16, 32], width=8, heads=2, kernel=3)
    assert [(one.length, one.kind) for one in found] == [(n, kind.name) for n in (8, 16, 32) for kind in KINDS]
    assert all(isinstance(one, Measured) and one.seconds > 0 and one.kept_bytes > 0 for one in found)
    assert [one.kind for one in growth(found)] == [kind.name for kind in KINDS]


def test_a_crossing_is_between_two_lengths_or_on_one_side(monkeypatch):
    times = {"recurrence": lambda n: 10.0 * n, "self-attention": lambda n: 0.1 * n**2}  # they meet at n = 100

    def instead(kind):
        return kind._replace(build=lambda size: Pass(lambda: times[kind.name](size.length), ()))

    monkeypatch.setattr(cost, "KINDS", [instead(kind) for kind in KINDS])
    monkeypatch.setattr(cost, "best_seconds", lambda run, rounds: run())
    for width in (16, 128, 512):  # from n = d / 8 on
        assert find_crossing(width=width, heads=2, longest=4096).measured == pytest.approx(100)
    never = find_crossing(width=16, heads=2, longest=64)
    assert (never.measured, never.slower, never.longest) == (None, "recurrence", 64)
    always = find_crossing(width=1024, heads=2, longest=4096)
    assert (always.measured, always.slower, always.shortest) == (None, "self-attention", 128)


def test_a_matrix_too_large_is_not_written_out(monkeypatch):
    monkeypatch.setattr(cost, "LARGEST", 4 * 2 * 16**2)
    found = measure([16, 32], width=8, heads=2, kernel=3)
    assert [one.length for one in found if one.kind == "scores, written out"] == [16]
    assert [one.length for one in found if one.kind == "self-attention"] == [16, 32]
