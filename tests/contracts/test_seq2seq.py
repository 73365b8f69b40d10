"""What must hold for every seq2seq model in MODELS; each other interface has a file of its own."""

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
from regard.layers.tap import taps
from regard.models import MODELS, build
from tests.contracts.examples import EXAMPLES, SEQ2SEQ, named
from tests.contracts.overfitting import overfit

LENGTHS = [7, 3, 5, 1]


@pytest.fixture(params=SEQ2SEQ, ids=named)
def example(request):
    return request.param


@pytest.fixture
def model(example):
    return example.model()


@pytest.fixture
def special_ids(example):
    return example.config.special_ids


@pytest.fixture
def source(special_ids) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(3, 40, (len(LENGTHS), max(LENGTHS) + 1), generator=generator)
    for row, length in zip(rows, LENGTHS, strict=True):
        row[length], row[length + 1 :] = special_ids.eos_id, special_ids.pad_id
    return rows


@pytest.fixture
def target(special_ids) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    rows = torch.randint(3, 40, (len(LENGTHS), 6), generator=generator)
    rows[:, 0] = special_ids.bos_id
    return rows


def test_every_architecture_has_an_example():
    # An n-gram model has no parameters and no layers: tests/models/test_ngram.py has its laws.
    assert {example.kind for example in EXAMPLES} == set(MODELS) - {"ngram"}


def test_builds_on_the_meta_device_without_memory(example):
    with torch.device("meta"):
        model = build(example.config)
    assert all(parameter.is_meta for parameter in model.parameters())


def test_same_seed_same_weights_other_seed_others(example):
    one, same, other = example.model(3), example.model(3), example.model(4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_save_and_load_are_bit_equal(example, model, source, target, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(example.config)
    assign_weights(loaded, read_tensors(path), str(path))
    assert torch.equal(loaded.eval()(source, target), model(source, target))
    assert type(example.config).model_validate_json(example.config.model_dump_json()) == example.config


def test_logits_are_one_a_word_and_place(example, model, source, target):
    assert model(source, target).shape == (*target.shape, example.config.vocab_size)


def test_padding_changes_nothing(model, source, target, special_ids):
    logits = model(source, target)
    wider = torch.cat([source, torch.full((len(source), 5), special_ids.pad_id)], dim=1)
    longer = torch.cat([target, torch.full((len(target), 4), special_ids.pad_id)], dim=1)
    assert_close(model(wider, longer)[:, : target.shape[1]], logits)


def test_batched_equals_one_by_one(model, source, target):
    logits = model(source, target)
    for row, length in enumerate(LENGTHS):
        alone = model(source[row : row + 1, : length + 1], target[row : row + 1])
        assert_close(alone[0], logits[row])


def test_the_future_changes_nothing(model, source, target):
    logits = model(source, target)
    for place in range(1, target.shape[1]):
        changed = target.clone()
        changed[:, place:] = (changed[:, place:] + 7) % 30 + 3
        assert torch.equal(model(source, changed)[:, :place], logits[:, :place]) or (
            (model(source, changed)[:, :place] - logits[:, :place]).abs().max() < 1e-6
        )
        assert not torch.allclose(model(source, changed)[:, place:], logits[:, place:], atol=1e-3)


def test_the_source_is_used(model, source, target):
    changed = source.clone()
    changed[:, 0] = (changed[:, 0] + 7) % 30 + 3
    assert (model(changed, target) - model(source, target)).abs().amax(dim=(1, 2)).min() > 1e-3


@torch.no_grad()
def test_a_cached_step_equals_the_full_pass(model, source, target, special_ids):
    state = model.start(source)
    assert state.first.tolist() == [special_ids.bos_id] * len(source)
    steps = []
    for tokens in target.T:
        logits, state = model.step(tokens, state)
        steps.append(logits)
    assert_close(torch.stack(steps, dim=1), model(source, target))


@torch.no_grad()
def test_reordered_rows_go_on_as_those_rows(model, source, target):
    rows = torch.tensor([2, 0, 0, 3, 1, 2])
    state, copied = model.start(source), model.start(source[rows])
    _, state = model.step(target[:, 0], state)
    _, copied = model.step(target[rows, 0], copied)
    state.reorder(rows)
    logits, _ = model.step(target[rows, 1], state)
    wanted, _ = model.step(target[rows, 1], copied)
    assert_close(logits, wanted)


@torch.no_grad()
def test_beams_of_a_sentence_share_its_source(model, source, target):
    beams = torch.tensor([[2, 2, 2], [0, 0, 0]])  # sentences 2 and 0, three beams each
    state, copied = model.start(source), model.start(source[beams.flatten()])
    state.reorder(beams)
    tokens = target[:, 1:4].flatten()[: beams.numel()]
    logits, state = model.step(tokens, state)
    wanted, copied = model.step(tokens, copied)
    assert_close(logits, wanted)
    state.reorder(torch.tensor([[5, 3, 4]]))  # the first sentence is done; the other's beams change places
    copied.reorder(torch.tensor([5, 3, 4]))
    assert_close(model.step(tokens[:3], state)[0], model.step(tokens[:3], copied)[0])


def test_watched_equals_unwatched_and_every_tap_fires(model, source, target):
    plain = model(source, target)
    with capture(model, "*") as seen:
        assert_close(model(source, target), plain)
    assert set(seen) == set(points(model))
    for path, values in seen.items():
        for value in values if path.endswith("weights") else []:
            assert_close(value.sum(-1), torch.ones(value.shape[:-1]), msg=f"rows of {path} do not sum to 1")


def test_the_alignment_taps_are_all_that_looks_at_the_source(model):
    looking = [path for path in taps(model) if path.endswith("weights") and "encoder" not in path]
    assert model.alignment_taps == [path for path in looking if ".attention." not in path]


def test_gradient_reaches_every_parameter(model, source, target):
    model(source, target).square().mean().backward()
    silent = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    # A constant added to every key moves all scores of a row alike, and softmax does not see it.
    assert [name for name in silent if not name.endswith("key.bias")] == []


def test_overfits_one_batch(example, source, target, special_ids):
    model = example.model().train()
    answers = torch.cat([target[:, 1:], torch.full((len(target), 1), special_ids.eos_id)], dim=1)

    def measure():
        logits = model(source, target)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
        return loss, loss.item() < 0.05 and torch.equal(logits.argmax(-1), answers)

    loss, known = overfit(model, measure, learning_rate=5e-3, steps=150)
    assert known, loss


STRATEGIES: list[Callable[[], Any]] = [
    Greedy,
    lambda: Beam(3, num_return=3),
    lambda: Sample(temperature=0.7, top_p=0.9),
]


@pytest.mark.parametrize("make", STRATEGIES)
def test_writing_in_a_batch_equals_writing_alone(model, source, make):
    limits = [2 * length + 4 for length in LENGTHS]
    together = generate(model, source, make(), Limits(limits))
    for row, (length, found) in enumerate(zip(LENGTHS, together, strict=True)):
        if row and isinstance(make(), Sample):
            break  # a row draws from the stream of its number: alone, only the first has the same
        (alone,) = generate(model, source[row : row + 1, : length + 1], make(), Limits([limits[row]]))
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-4)


def test_a_beam_of_one_is_greedy(model, source):
    limits = Limits([9] * len(source))
    greedy, beam = generate(model, source, Greedy(), limits), generate(model, source, Beam(1), limits)
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@torch.no_grad()
def test_a_log_probability_is_what_the_full_pass_says(model, source, special_ids):
    for hypotheses in generate(model, source[:1], Beam(4, num_return=4), Limits([8])):
        for found in hypotheses:
            written = [*found.tokens, special_ids.eos_id] if found.ended else found.tokens
            logits = model(source[:1], torch.tensor([[special_ids.bos_id, *written[:-1]]]))
            total = logits.log_softmax(-1)[0].gather(1, torch.tensor(written)[:, None]).sum()
            assert found.log_probability == pytest.approx(total.item(), abs=1e-4)
