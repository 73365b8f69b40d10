"""What must hold for every encoder in MODELS: it reads in both directions and does not generate."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.testing import assert_close

from regard.checkpoint import assign_weights, encode_tensors, read_tensors
from regard.inspection.capture import capture, points
from regard.models import build
from tests.contracts.examples import ENCODERS, named
from tests.contracts.overfitting import overfit

LENGTHS = [9, 4, 6, 3]  # of the rows, symbols counted


@pytest.fixture(params=ENCODERS, ids=named)
def example(request):
    return request.param


@pytest.fixture
def model(example):
    return example.loud_model()


@pytest.fixture
def ids() -> Tensor:
    """Begin, a sentence, end, another where there is room, end; padded."""
    rows = torch.randint(4, 40, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(1))
    for row, length in zip(rows, LENGTHS, strict=True):
        row[0], row[length // 2], row[length - 1], row[length:] = 1, 2, 2, 0
    return rows


@pytest.fixture
def segment_ids(example, ids) -> Tensor:
    """0 up to the first end, 1 behind it; where the model knows one sentence only, 0."""
    behind = (ids == 2).cumsum(dim=1) - (ids == 2).long()
    return (behind * (ids != 0)).clamp(max=example.config.num_segments - 1)


def said(model: nn.Module, ids: Tensor, segment_ids: Tensor | None = None) -> dict[str, Tensor]:
    """All outputs by name: those of the words are (B, T, …), those of the row (B, …)."""
    found = model(ids, segment_ids)
    if isinstance(found, Tensor):
        return {"tokens" if found.dim() == 3 else "row": found}
    return {name: value for name, value in found._asdict().items() if value is not None}


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor], ids: Tensor) -> None:
    """Equal at every word of `ids`, and for the rows as a whole."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        other, real = found[name], ids != 0
        if value.dim() == 3:
            other, value = other[:, : ids.shape[1]][real], value[:, : ids.shape[1]][real]
        assert_close(other, value, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def least_change(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> float:
    """Of all outputs, words and rows, the one that changed least: by how much."""
    return min((found[name] - wanted[name]).abs().amax(-1).min().item() for name in wanted)


def test_builds_on_the_meta_device_without_memory(example):
    with torch.device("meta"):
        model = build(example.config)
    assert all(parameter.is_meta for parameter in model.parameters())


def test_same_seed_same_weights_other_seed_others(example):
    one, same, other = example.model(3), example.model(3), example.model(4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_save_and_load_are_bit_equal(example, model, ids, segment_ids, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(example.config)
    assign_weights(loaded, read_tensors(path), str(path))
    found, wanted = said(loaded.eval(), ids, segment_ids), said(model, ids, segment_ids)
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert type(example.config).model_validate_json(example.config.model_dump_json()) == example.config


def test_outputs_are_of_tokens_or_of_the_row(model, ids):
    found = said(model, ids)
    assert found
    for value in found.values():
        assert value.shape[: value.dim() - 1] in (ids.shape, ids.shape[:1])


def test_padding_changes_nothing(model, ids, segment_ids):
    more = torch.zeros(len(ids), 5, dtype=torch.long)
    wider = said(model, torch.cat([ids, more], dim=1), torch.cat([segment_ids, more], dim=1))
    assert_same(wider, said(model, ids, segment_ids), ids)


def test_which_sentence_padding_is_said_to_belong_to_changes_nothing(example, model, ids, segment_ids):
    other = torch.where(ids == 0, example.config.num_segments - 1, segment_ids)
    assert_same(said(model, ids, other), said(model, ids, segment_ids), ids)


def test_batched_equals_one_by_one(model, ids, segment_ids):
    together = said(model, ids, segment_ids)
    for row, length in enumerate(LENGTHS):
        alone = ids[row : row + 1, :length]
        wanted = {name: value[row : row + 1] for name, value in together.items()}
        assert_same(said(model, alone, segment_ids[row : row + 1, :length]), wanted, alone)


def test_without_segments_all_is_the_first_sentence(model, ids):
    assert_same(said(model, ids), said(model, ids, torch.zeros_like(ids)), ids)


def test_sentences_are_told_apart(example, model, ids):
    for other in range(1, example.config.num_segments):
        assert least_change(said(model, ids, torch.full_like(ids, other)), said(model, ids)) > 1e-3


def test_a_word_is_read_with_those_behind_it_and_those_before(model, ids):
    rows = ids[:1]  # which has no padding
    wanted = said(model, rows)
    for place in (0, 4, rows.shape[1] - 1):
        changed = rows.clone()
        changed[:, place] = (rows[:, place] + 7) % 30 + 4
        assert least_change(said(model, changed), wanted) > 1e-4


def test_order_matters(model, ids):
    rows = ids[:1].clone()
    rows[:, [1, 3]] = ids[:1, [3, 1]]
    assert least_change(said(model, rows), said(model, ids[:1])) > 1e-4


def test_watched_equals_unwatched_and_every_tap_fires(model, ids, segment_ids):
    plain = said(model, ids, segment_ids)
    with capture(model, "*") as seen:
        assert_same(said(model, ids, segment_ids), plain, ids)
    assert set(seen) == set(points(model))
    for path, (value, *_) in seen.items():  # the gates of a recurrent cell have a value for each token
        if path.endswith("weights"):
            assert_close(value.sum(-1), torch.ones(value.shape[:-1]), msg=f"rows of {path} do not sum to 1")
            assert not value.masked_select((ids == 0)[:, None, None]).any(), f"{path} looks at padding"
            assert value.masked_select((ids != 0)[:, None, None]).all(), f"{path} does not look at every word"


def test_gradient_reaches_every_parameter(model, ids, segment_ids):
    """(The pooler of a plain `bert` lies behind `whole` alone: who learns from `hidden` only does not move it.)"""
    sum(value.square().mean() for value in said(model, ids, segment_ids).values()).backward()
    silent = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert silent == []


def test_a_row_of_padding_alone_has_finite_outputs_and_gradients(model, ids):
    rows = torch.cat([ids, torch.zeros_like(ids[:1])])
    for patterns in ((), ("*",)):
        with capture(model, *patterns):
            found = said(model, rows)
        assert all(value.isfinite().all() for value in found.values())
        sum(value.square().mean() for value in found.values()).backward()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    assert_same({name: value[:-1] for name, value in found.items()}, said(model, ids), ids)


def answers(model: nn.Module, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """A target for each output: classes; numbers for vectors and scores."""
    generator = torch.Generator().manual_seed(2)
    return {
        name: torch.rand(value.shape, generator=generator) - 0.5
        if value.shape[-1] == 1 or not hasattr(model, "head")
        else torch.randint(value.shape[-1], value.shape[:-1], generator=generator)
        for name, value in outputs.items()
    }


def test_overfits_one_batch(example, ids, segment_ids):
    model = example.model().train()
    wanted = answers(model, said(model, ids, segment_ids))

    def measure():
        loss = torch.zeros(())
        for name, value in said(model, ids, segment_ids).items():
            real = ids != 0 if value.dim() == 3 else slice(None)
            numbers = wanted[name].is_floating_point()
            loss = loss + (mse_loss if numbers else cross_entropy)(value[real], wanted[name][real])
        return loss, loss.item() < 0.05

    loss, known = overfit(model, measure, learning_rate=1e-2, steps=150)
    assert known, loss
