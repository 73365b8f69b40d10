"""What must hold for every causal language model in MODELS."""

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
from regard.layers.decoding import WindowState
from regard.models import build
from tests.contracts.examples import CAUSAL_LM, named
from tests.contracts.overfitting import overfit

LENGTHS = [7, 3, 5, 1]  # of the prompts, the longest not last


@pytest.fixture(params=CAUSAL_LM, ids=named)
def example(request):
    return request.param


@pytest.fixture
def model(example):
    return example.loud_model()


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(3, 40, (4, 9), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def prompts(ids) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(ids, LENGTHS, strict=True)]


@pytest.fixture
def written() -> Tensor:
    """What is written behind the prompts."""
    return torch.randint(3, 40, (4, 5), generator=torch.Generator().manual_seed(2))


def stepped(model: nn.Module, prompts: list[list[int]], written: Tensor) -> Tensor:
    """The logits (B, T, V) behind each prompt and behind each token written after it."""
    state = model.start(prompts)
    found = []
    for tokens in (state.first, *written.T):
        logits, state = model.step(tokens, state)
        found.append(logits)
    return torch.stack(found, dim=1)


def test_builds_on_the_meta_device_without_memory(example):
    with torch.device("meta"):
        model = build(example.config)
    assert all(parameter.is_meta for parameter in model.parameters())


def test_same_seed_same_weights_other_seed_others(example):
    one, same, other = example.model(3), example.model(3), example.model(4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_save_and_load_are_bit_equal(example, model, ids, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode_tensors(model.state_dict()))
    with torch.device("meta"):
        loaded = build(example.config)
    assign_weights(loaded, read_tensors(path), str(path))
    assert torch.equal(loaded.eval()(ids), model(ids))
    assert type(example.config).model_validate_json(example.config.model_dump_json()) == example.config


def test_logits_are_one_a_word_and_place(example, model, ids):
    assert model(ids).shape == (*ids.shape, example.config.vocab_size)


def test_the_logits_are_what_was_read_times_the_table(example, model, ids):
    hidden = model.hidden_states(ids)
    assert_close(hidden @ model.output_embeddings.T, model(ids))
    assert_close(model.logits(hidden), model(ids))
    assert (model.output_embeddings is model.embedding.weight) == getattr(example.config, "tie_embeddings", False)


def test_the_future_changes_nothing(model, ids):
    logits = model(ids)
    for place in range(1, ids.shape[1]):
        changed = ids.clone()
        changed[:, place:] = (changed[:, place:] + 7) % 30 + 3
        others = model(changed)
        assert_close(others[:, :place], logits[:, :place], atol=1e-5, rtol=0)
        assert (others[:, place:] - logits[:, place:]).abs().amax(dim=(0, 2)).min() > 1e-2


def test_order_and_the_past_matter(model, ids):
    changed = ids.clone()
    changed[:, [0, 1]] = ids[:, [1, 0]]
    assert (model(changed) - model(ids))[:, 2:].abs().amax(dim=2).min() > 1e-3


def test_blanks_before_a_text_change_nothing(model, ids):
    for blanks in (1, 5):
        anything = torch.randint(40, (len(ids), blanks))
        document_ids = torch.cat([torch.zeros_like(anything), torch.ones_like(ids)], dim=1)
        assert_close(model(torch.cat([anything, ids], dim=1), document_ids)[:, blanks:], model(ids))


def test_blanks_have_finite_logits_and_gradients(model, ids):
    document_ids = torch.ones_like(ids)
    document_ids[:2, :4] = 0
    document_ids[0] = 0  # a row may be blank from end to end
    logits = model(ids, document_ids)
    logits.square().mean().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_texts_packed_in_a_row_do_not_see_each_other(model, ids):
    one, other, blank = ids[:, :4], ids[:, 4:], torch.zeros(len(ids), 2, dtype=torch.long)
    document_ids = torch.tensor([[1] * 4 + [2] * 5 + [0] * 2]).expand(len(ids), -1)
    logits = model(torch.cat([one, other, blank], dim=1), document_ids)
    assert_close(logits[:, :4], model(one))
    assert_close(logits[:, 4:9], model(other))
    assert (model(ids)[:, 4:] - model(other)).abs().amax(dim=2).min() > 1e-3  # unsegmented, they do


def test_batched_equals_one_by_one(model, ids):
    logits = model(ids)
    for row in range(len(ids)):
        assert_close(model(ids[row : row + 1])[0], logits[row])


@torch.no_grad()
def test_cached_steps_from_ragged_prompts_equal_the_full_pass_of_each_text_alone(model, prompts, written):
    assert model.start(prompts).first.tolist() == [prompt[-1] for prompt in prompts]
    found = stepped(model, prompts, written)
    for prompt, text, logits in zip(prompts, written.tolist(), found, strict=True):
        alone = model(torch.tensor([[*prompt, *text]]))[0, len(prompt) - 1 :]
        assert_close(logits, alone, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_ragged_prompts_batched_equal_prompts_one_by_one(model, prompts, written):
    found = stepped(model, prompts, written)
    for row, prompt in enumerate(prompts):
        assert_close(stepped(model, [prompt], written[row : row + 1])[0], found[row], atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_prompts_of_one_token_and_of_one_length_need_no_blanks(model, ids, written):
    for length in (1, 4):
        prompts = ids[:, :length].tolist()
        assert getattr(model.start(prompts), "left_padding", None) is None
        whole = model(torch.cat([ids[:, :length], written], dim=1))[:, length - 1 :]
        assert_close(stepped(model, prompts, written), whole, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_reordered_rows_go_on_as_those_rows(model, prompts, written):
    rows = torch.tensor([2, 0, 0, 3, 1, 2])
    state, copied = model.start(prompts), model.start([prompts[row] for row in rows])
    _, state = model.step(state.first, state)
    _, copied = model.step(copied.first, copied)
    state.reorder(rows)
    assert torch.equal(state.first, copied.first)
    for tokens in written[rows].T:
        logits, state = model.step(tokens, state)
        wanted, copied = model.step(tokens, copied)
        assert_close(logits, wanted)


@torch.no_grad()
def test_beams_of_a_prompt_begin_with_its_cache(model, prompts, written):
    beams = torch.tensor([[2, 2, 2], [0, 0, 0]])  # prompts 2 and 0, three beams each
    state, copied = model.start(prompts), model.start([prompts[row] for row in beams.flatten()])
    state.reorder(beams)
    tokens = written.flatten()[: beams.numel()]
    logits, state = model.step(tokens, state)
    wanted, copied = model.step(tokens, copied)
    assert_close(logits, wanted)
    state.reorder(torch.tensor([[5, 3, 4]]))  # the first prompt is done; the other's beams change places
    copied.reorder(torch.tensor([5, 3, 4]))
    assert_close(model.step(tokens[:3], state)[0], model.step(tokens[:3], copied)[0])


def test_watched_equals_unwatched_and_every_tap_fires(model, ids):
    plain = model(ids)
    with capture(model, "*") as seen:
        assert_close(model(ids), plain)
    assert set(seen) == set(points(model))
    for path, (value, *_) in seen.items():  # the gates of a recurrent cell have a value for each token
        if path.endswith("weights"):
            assert_close(value.sum(-1), torch.ones(value.shape[:-1]), msg=f"rows of {path} do not sum to 1")


def test_watched_weights_of_blanks_are_zero_and_no_text_looks_at_them(model, ids):
    document_ids = torch.ones_like(ids)
    document_ids[:2, :3] = 0
    plain = model(ids, document_ids)
    if not any(path.endswith(".weights") for path in points(model)):
        pytest.skip("it has no attention")
    with capture(model, "*.weights") as seen:
        assert_close(model(ids, document_ids), plain)
    for (weights,) in seen.values():
        assert_close(weights.sum(-1), document_ids[:, None].expand(weights.shape[:-1]).float())
        assert not weights[:2, ..., :3].any()


@torch.no_grad()
def test_watched_steps_equal_unwatched_ones(model, prompts, written):
    plain = stepped(model, prompts, written)
    with capture(model, "*") as seen:
        assert_close(stepped(model, prompts, written), plain, atol=2e-5, rtol=1e-4)
    reads = not isinstance(model.start(prompts), WindowState)  # a window of a prompt is kept, and nothing computed
    calls = reads + 1 + written.shape[1]  # the prompts but for their last tokens, those, what was written
    of_a_token = ("_gate", "candidate")  # of a recurrent cell, also while it reads the prompt
    counts = {len(values) for path, values in seen.items() if not path.endswith(of_a_token)}
    assert counts == {calls}


def test_there_is_no_source_to_be_aligned_with(model):
    assert not model.alignment_taps


def test_gradient_reaches_every_parameter(model, ids):
    model(ids).square().mean().backward()
    silent = [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert silent == []


def test_overfits_one_batch(example, ids):
    model = example.model().train()
    given, answers = ids[:, :-1], ids[:, 1:]

    def measure():
        logits = model(given)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
        return loss, loss.item() < 0.05 and torch.equal(logits.argmax(-1), answers)

    loss, known = overfit(model, measure, learning_rate=1e-2, steps=100)
    assert known, loss


STRATEGIES: list[Callable[[], Any]] = [
    Greedy,
    lambda: Beam(3, num_return=3),
    lambda: Sample(temperature=0.7, top_p=0.9),
]


@pytest.mark.parametrize("make", STRATEGIES)
def test_writing_in_a_batch_equals_writing_alone(model, prompts, make):
    limits = [9, 12, 4, 14]
    together = generate(model, prompts, make(), Limits(limits))
    for row, (prompt, found) in enumerate(zip(prompts, together, strict=True)):
        if row and isinstance(make(), Sample):
            break  # a row draws from the stream of its number: alone, only the first has the same
        (alone,) = generate(model, [prompt], make(), Limits([limits[row]]))
        assert [one.tokens for one in alone] == [one.tokens for one in found]
        assert [one.score for one in alone] == pytest.approx([one.score for one in found], abs=1e-4)


def test_greedy_writes_what_the_full_pass_finds_likeliest(model, prompts):
    for prompt, (found,) in zip(prompts, generate(model, prompts, Greedy(), Limits([8] * 4)), strict=True):
        text, wanted = [*prompt], []
        while len(wanted) < 8:
            token = model(torch.tensor([text]))[0, -1].argmax().item()
            if token == model.config.special_ids.eos_id:
                break
            text.append(token)
            wanted.append(token)
        assert (found.tokens, found.ended) == (wanted, len(wanted) < 8)


def test_a_beam_of_one_is_greedy(model, prompts):
    limits = Limits([9] * len(prompts))
    greedy, beam = generate(model, prompts, Greedy(), limits), generate(model, prompts, Beam(1), limits)
    for (one,), (other,) in zip(greedy, beam, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@torch.no_grad()
def test_a_log_probability_is_what_the_full_pass_says(model, prompts):
    for prompt, hypotheses in zip(
        prompts, generate(model, prompts, Beam(4, num_return=4), Limits([8] * 4)), strict=True
    ):
        assert len({(*found.tokens, found.ended) for found in hypotheses}) == 4
        for found in hypotheses:
            text = [*found.tokens, model.config.special_ids.eos_id] if found.ended else found.tokens
            logits = model(torch.tensor([[*prompt, *text[:-1]]]))[0, len(prompt) - 1 :]
            total = logits.log_softmax(-1).gather(1, torch.tensor(text)[:, None]).sum()
            assert found.log_probability == pytest.approx(total.item(), abs=1e-4)
