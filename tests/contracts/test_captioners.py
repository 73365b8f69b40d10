"""What must hold for every captioner in MODELS: the contracts of test_seq2seq.py, with an image as the source."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.checkpoint import assign_weights, encode_tensors, read_tensors
from regard.generation import Beam, Greedy, Sample, generate
from regard.generation.decode import Limits
from regard.inspection.capture import capture, points
from regard.layers.positions import LearnedPositions
from regard.layers.quantized import quantize
from regard.layers.tap import taps
from regard.models import build
from tests.contracts.examples import CAPTIONERS, named
from tests.contracts.overfitting import overfit

PICTURES = 4


@pytest.fixture(params=CAPTIONERS, ids=named)
def example(request):
    return request.param


@pytest.fixture
def model(example):
    return example.model()


@pytest.fixture
def pixels(example) -> Tensor:
    side = example.config.image_size
    return torch.randn(PICTURES, 3, side, side, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def target() -> Tensor:
    rows = torch.randint(3, 40, (PICTURES, 6), generator=torch.Generator().manual_seed(2))
    rows[:, 0] = 1
    return rows


def test_builds_on_the_meta_device_without_memory(example):
    with torch.device("meta"):
        model = build(example.config)
    assert all(parameter.is_meta for parameter in model.parameters())


def test_same_seed_same_weights_other_seed_others(example):
    one, same, other = example.model(3), example.model(3), example.model(4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_save_and_load_are_bit_equal(example, model, pixels, target, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(example.config)
    assign_weights(loaded, read_tensors(path), str(path))
    assert torch.equal(loaded.eval()(pixels, target), model(pixels, target))
    assert type(example.config).model_validate_json(example.config.model_dump_json()) == example.config


def test_logits_are_one_a_word_and_place(example, model, pixels, target):
    assert model(pixels, target).shape == (*target.shape, example.config.vocab_size)


def test_padding_changes_nothing(model, pixels, target):
    longer = torch.cat([target, torch.zeros(len(target), 4, dtype=torch.long)], dim=1)
    assert_close(model(pixels, longer)[:, : target.shape[1]], model(pixels, target))


def test_batched_equals_one_by_one(model, pixels, target):
    model.train()  # norms of a batch would show here
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    logits = model(pixels, target)
    for row in range(PICTURES):
        assert_close(model(pixels[row : row + 1], target[row : row + 1])[0], logits[row], atol=2e-5, rtol=1e-4)


def test_the_future_changes_nothing(model, pixels, target):
    logits = model(pixels, target)
    for place in range(1, target.shape[1]):
        changed = target.clone()
        changed[:, place:] = (changed[:, place:] + 7) % 30 + 3
        others = model(pixels, changed)
        assert_close(others[:, :place], logits[:, :place], atol=1e-6, rtol=0)
        assert not torch.allclose(others[:, place:], logits[:, place:], atol=1e-3)


def test_every_part_of_the_picture_is_used(example, model, pixels, target):
    cell = example.config.cell_size
    plain = model(pixels, target)
    for row in range(example.config.grid):
        for column in range(example.config.grid):
            changed = pixels.clone()
            changed[:, :, row * cell : (row + 1) * cell, column * cell : (column + 1) * cell] += 3
            assert (model(changed, target) - plain).abs().amax(dim=(1, 2)).min() > 1e-4


def test_where_a_thing_stands_matters(model, pixels, target):
    assert (model(pixels.flip(3), target) - model(pixels, target)).abs().amax(dim=(1, 2)).min() > 1e-3


@torch.no_grad()
def test_a_cached_step_equals_the_full_pass(model, pixels, target):
    state = model.start(pixels)
    assert state.first.tolist() == [1] * PICTURES
    steps = []
    for tokens in target.T:
        logits, state = model.step(tokens, state)
        steps.append(logits)
    assert_close(torch.stack(steps, dim=1), model(pixels, target), atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_reordered_rows_go_on_as_those_rows(model, pixels, target):
    rows = torch.tensor([2, 0, 0, 3, 1, 2])
    state, copied = model.start(pixels), model.start(pixels[rows])
    _, state = model.step(target[:, 0], state)
    _, copied = model.step(target[rows, 0], copied)
    state.reorder(rows)
    logits, _ = model.step(target[rows, 1], state)
    wanted, _ = model.step(target[rows, 1], copied)
    assert_close(logits, wanted, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_beams_of_a_picture_share_its_grid(model, pixels, target):
    beams = torch.tensor([[2, 2, 2], [0, 0, 0]])  # pictures 2 and 0, three beams each
    state, copied = model.start(pixels), model.start(pixels[beams.flatten()])
    state.reorder(beams)
    tokens = target[:, 1:4].flatten()[: beams.numel()]
    logits, state = model.step(tokens, state)
    wanted, copied = model.step(tokens, copied)
    assert_close(logits, wanted, atol=2e-5, rtol=1e-4)
    state.reorder(torch.tensor([[5, 3, 4]]))  # the first picture is done; the other's beams change places
    copied.reorder(torch.tensor([5, 3, 4]))
    assert_close(model.step(tokens[:3], state)[0], model.step(tokens[:3], copied)[0], atol=2e-5, rtol=1e-4)


def test_watched_equals_unwatched_and_every_tap_fires(model, pixels, target):
    plain = model(pixels, target)
    with capture(model, "*") as seen:
        assert_close(model(pixels, target), plain, atol=2e-5, rtol=1e-4)
    assert set(seen) == set(points(model))
    for path, values in seen.items():
        for value in values if path.endswith("weights") else []:
            assert_close(value.sum(-1), torch.ones(value.shape[:-1]), msg=f"rows of {path} do not sum to 1")


def test_the_alignment_taps_are_all_that_looks_at_the_grid(model, pixels, target):
    looking = [path for path in taps(model) if path.endswith("weights") and not path.startswith("encoder")]
    assert model.alignment_taps == [path for path in looking if ".attention." not in path]
    with capture(model, *model.alignment_taps) as seen:
        model(pixels, target)
    for values in seen.values():
        weights = torch.cat(values, dim=2)
        assert weights.shape == (*weights.shape[:2], target.shape[1], model.config.num_cells)


def test_a_look_is_the_same_pass_and_shows_what_the_taps_see(model, pixels, target):
    plain = model(pixels, target)
    with capture(model, *model.alignment_taps) as seen:
        logits, weights = model.forward_with_attention(pixels, target)
    assert_close(logits, plain, atol=2e-5, rtol=1e-4)
    assert_close(weights, torch.cat([torch.cat(values, dim=2) for values in seen.values()], dim=1))
    (weights.square().sum() + 0 * logits.sum()).backward()
    (position_ids,) = [module for module in model.encoder.modules() if isinstance(module, LearnedPositions)]
    assert position_ids.weight.grad.any()


def test_gradient_reaches_every_parameter(model, pixels, target):
    model(pixels, target).square().mean().backward()
    silent = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    # A constant added to every key moves all scores of a row alike, and softmax does not see it.
    assert [name for name in silent if not name.endswith("key.bias")] == []


def test_overfits_one_batch(example, pixels, target):
    model = example.model().train()
    answers = torch.cat([target[:, 1:], torch.full((len(target), 1), 2)], dim=1)

    def measure():
        logits = model(pixels, target)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
        return loss, loss.item() < 0.05 and torch.equal(logits.argmax(-1), answers)

    loss, known = overfit(model, measure, learning_rate=5e-3, steps=80)
    assert known, loss


STRATEGIES: list[Callable[[], Any]] = [
    Greedy,
    lambda: Beam(3, num_return=3),
    lambda: Sample(temperature=0.7, top_p=0.9),
]


@pytest.mark.parametrize("make", STRATEGIES)
def test_writing_in_a_batch_equals_writing_alone(model, pixels, make):
    limits = [12, 5, 9, 7]
    together = generate(model, pixels, make(), Limits(limits))
    for row, found in enumerate(together):
        if row and isinstance(make(), Sample):
            break  # a row draws from the stream of its number: alone, only the first has the same
        (alone,) = generate(model, pixels[row : row + 1], make(), Limits([limits[row]]))
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-4)


def test_a_beam_of_one_is_greedy(model, pixels):
    limits = Limits([9] * PICTURES)
    greedy, beam = generate(model, pixels, Greedy(), limits), generate(model, pixels, Beam(1), limits)
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@torch.no_grad()
def test_a_log_probability_is_what_the_full_pass_says(model, pixels):
    for hypotheses in generate(model, pixels[:1], Beam(4, num_return=4), Limits([8])):
        for found in hypotheses:
            written = [*found.tokens, 2] if found.ended else found.tokens
            logits = model(pixels[:1], torch.tensor([[1, *written[:-1]]]))
            total = logits.log_softmax(-1)[0].gather(1, torch.tensor(written)[:, None]).sum()
            assert found.log_probability == pytest.approx(total.item(), abs=1e-4)


@torch.no_grad()
def test_int8_is_near(model, pixels, target):
    plain = model(pixels, target)
    assert quantize(model) > 5
    assert (model(pixels, target) - plain).abs().max() < 0.05 * plain.std()
