"""The views `steps` and `cache`: their numbers are those of real decoding with a KV cache."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard import ops
from regard.errors import InputError
from regard.inspection.capture import capture, points
from regard.inspection.decoding import step_cost
from regard.inspection.views import cache, choose_view, steps
from regard.inspection.views.base import Choices
from regard.tasks.base import TraceRequest
from regard.tasks.show import show
from tests.inspection.views.tiny import SOURCE, TARGET, check_inside, matrices, texts, titles, traced

KINDS = ["gpt", "llama", "transformer", "t5"]


def decode(subject):
    """The logits and the keys of each layer after each token, one step after the other."""
    model = subject.pipeline.model
    is_prompt = model.interface == "causal_lm"
    tokens = SOURCE if is_prompt else TARGET
    with torch.inference_mode():
        state = model.start([tokens[:1]] if is_prompt else torch.tensor([SOURCE]))
        for token in tokens:
            logits, state = model.step(torch.tensor([token]), state)
            yield logits[0], [one.contents for one in state.caches]


@pytest.mark.parametrize("kind", KINDS)
def test_the_bars_and_bytes_of_each_step_are_those_of_decoding(kind):
    subject = traced(kind, steps.VIEW, num_prompt=1)
    figure = steps.VIEW.draw(subject, Choices())
    assert figure.choice == "step"
    for frame, (logits, caches) in zip(figure.frames, decode(subject), strict=False):
        found = titles(frame.draw())
        num_bytes = sum(part.numel() * 4 for one in caches for part in (one.key, one.value))
        assert found.pop("bytes") == num_bytes
        assert list(found.values()) == pytest.approx(logits.softmax(-1).topk(8).values.tolist(), rel=1e-3)
    check_inside(figure)


def test_the_steps_of_a_prompt_begin_at_its_last_token():
    figure = steps.VIEW.draw(traced("gpt", steps.VIEW, num_prompt=3), Choices())
    assert [frame.name for frame in figure.frames] == ["1 t30", "2 t2"]
    assert figure.frames[0].draw().title == "step 1 of 2: t5 t9 t12 → t30"


def test_attention_is_that_of_the_newest_position_in_the_last_layer():
    subject = traced("transformer", steps.VIEW)
    scene = steps.VIEW.draw(subject, Choices()).frames[2].draw()
    own = subject.trace.value("decoder.blocks.1.attention.weights").mean(0)[2, :3]
    cross = subject.trace.value("decoder.blocks.1.cross_attention.weights").mean(0)[2]
    assert matrices(scene)["attention to the target"].values[0].tolist() == pytest.approx(own.tolist())
    assert matrices(scene)["attention to the source"].values[0].tolist() == pytest.approx(cross.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_the_keys_are_those_of_the_cache(kind):
    subject = traced(kind, cache.VIEW, num_prompt=1)
    figure = cache.VIEW.draw(subject, Choices(layer=1, head=1))
    for at, (frame, (_, caches)) in enumerate(zip(figure.frames, decode(subject), strict=False)):
        (matrix,) = matrices(frame.draw()).values()
        wanted = caches[1].key[0, 1].numpy()
        assert matrix.values[: at + 1].ravel().tolist() == pytest.approx(wanted.ravel().tolist(), abs=1e-4)
        assert matrix.masked[:, 0].tolist() == [position > at for position in range(len(matrix.rows))]
    check_inside(figure)


def test_grouped_queries_share_keys():
    subject = traced("llama", cache.VIEW)  # 6 heads, 2 key heads of 4 numbers, 2 layers
    found = titles(cache.VIEW.draw(subject, Choices()).scene)
    assert found["now, 2 key heads"] * 1024 == 2 * 2 * 5 * 2 * 4 * 4
    assert found["now, 6 key heads (no sharing)"] == pytest.approx(3 * found["now, 2 key heads"])
    assert found["all 32 positions, 2 key heads"] * 1024 == 2 * 2 * 32 * 2 * 4 * 4


def decoder_weights(model):
    return [path for path in points(model) if path.endswith(".weights") and not path.startswith("encoder")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_of_a_step_is_what_torch_counts(kind):
    subject = traced(kind, cache.VIEW)
    model = subject.pipeline.model.requires_grad_(False)
    is_prompt = model.interface == "causal_lm"
    with torch.inference_mode():
        state = model.start([[5]] if is_prompt else torch.tensor([SOURCE]))
        for number in range(1, 4):
            counter = FlopCounterMode(display=False)
            with counter, ops.disabled(), capture(model, *decoder_weights(model)):  # watched: attention is written out
                _, state = model.step(torch.tensor([7]), state)
            cost = step_cost(model.config, number, None if is_prompt else len(SOURCE))
            assert cost.with_cache == counter.get_total_flops() / 2
    shown = texts(cache.VIEW.draw(subject, Choices()).scene)
    last = step_cost(model.config, len(SOURCE if is_prompt else TARGET), None if is_prompt else len(SOURCE))
    assert f"{last.with_cache / 1e6:,.3f} million" in shown
    assert f"{last.without_cache / 1e6:,.3f} million" in shown


def test_what_cannot_be_shown_is_said():
    with pytest.raises(InputError, match="its decoder has no self-attention"):
        choose_view("cache", traced("rnn", cache.VIEW).trace.info)
    with pytest.raises(InputError, match="it does not generate text"):
        choose_view("steps", traced("bert-masked-lm", cache.VIEW).trace.info)
    with pytest.raises(InputError, match="--layer 2: wanted 0 to 1"):
        cache.VIEW.draw(traced("gpt", cache.VIEW), Choices(layer=2))


@pytest.mark.parametrize(("kind", "asked", "wanted"), [("gpt", None, 8), ("gpt", 3, 3), ("transformer", None, None)])
def test_a_language_model_generates_eight_tokens_if_none_are_asked_for(kind, asked, wanted):
    subject, seen = traced(kind, steps.VIEW, num_prompt=1), []

    def trace_inputs(_pipeline, request):
        seen.append(request.max_new_tokens)
        return subject.inputs

    task = SimpleNamespace(name=subject.trace.info.task, trace_inputs=trace_inputs)
    show(task, subject.pipeline, TraceRequest(["a text"], asked), "steps", Choices())
    assert seen == [wanted]
