"""The view `next`: its numbers are torch's softmax, and its cut is that of sampling."""

import pytest
import torch

from regard.errors import InputError
from regard.generation import Sample
from regard.inspection.drawing.scene import Line
from regard.inspection.views.base import Choices
from regard.inspection.views.next import VIEW
from tests.inspection.views.tiny import check_inside, texts, titles, traced

MASKED = [1, 9, 3, 30, 3, 2]


def logits_of(subject, position):
    with torch.inference_mode():
        output = subject.inputs.forward()
    return getattr(output, "tokens", output)[0, position]


@pytest.mark.parametrize("kind", ["gpt", "llama", "transformer", "t5", "rnn", "conv", "captioner"])
def test_the_bars_are_the_softmax_of_the_last_position(kind):
    subject = traced(kind, VIEW)
    figure = VIEW.draw(subject, Choices(temperature=0.7))
    wanted = (logits_of(subject, -1) / 0.7).softmax(-1).topk(10)
    found = titles(figure.scene)
    assert list(found) == [*(f"t{number}" if number != 3 else "[MASK]" for number in wanted.indices.tolist())]
    assert list(found.values()) == pytest.approx(wanted.values.tolist(), rel=1e-4)
    rest = 1 - wanted.values.sum().item()
    assert f"the other 30 tokens together: {rest:.1%}" in texts(figure.scene)
    check_inside(figure)


@pytest.mark.parametrize("kind", ["bert-masked-lm", "bert-pretraining"])
def test_a_masked_language_model_has_a_frame_for_each_mask(kind):
    subject = traced(kind, VIEW, ids=MASKED)
    figure = VIEW.draw(subject, Choices(limit=3))
    assert [frame.name for frame in figure.frames] == ["2 [MASK]", "4 [MASK]"]
    for frame, position in zip(figure.frames, (2, 4), strict=True):
        wanted = logits_of(subject, position).softmax(-1).topk(3).values
        assert list(titles(frame.draw()).values()) == pytest.approx(wanted.tolist(), rel=1e-4)
    with pytest.raises(InputError, match=r"there is no \[MASK\] in this text"):
        VIEW.draw(traced(kind, VIEW), Choices())


@pytest.mark.parametrize(("top_k", "top_p"), [(4, None), (None, 0.5), (6, 0.6)])
def test_what_is_kept_is_what_sampling_can_choose(top_k, top_p):
    subject = traced("gpt", VIEW)
    scene = VIEW.draw(subject, Choices(temperature=1.5, top_k=top_k, top_p=top_p, limit=40)).scene
    strategy = Sample(temperature=1.5, top_k=top_k, top_p=top_p or 1.0)
    uniform = torch.linspace(0, 1, 4001, dtype=torch.float64)[:-1]
    sampled = strategy.pick(logits_of(subject, -1).expand(4000, -1), uniform).unique()
    assert f"keeps {len(sampled)} tokens; grey ones are cut." in scene.caption
    (line,) = [item for item in scene.items if isinstance(item, Line)]
    labels = [item for item in scene.items if getattr(item, "text", "").startswith("t")]
    above = {item.text for item in labels if item.y < line.points[0][1]}
    assert {f"t{number}" for number in sampled.tolist() if number != 3} <= above


def test_a_token_chooses_the_position():
    subject = traced("gpt", VIEW)
    figure = VIEW.draw(subject, Choices(token="t12"))
    assert figure.frames[figure.chosen].name == "2 t12"
    assert next(iter(titles(figure.scene).values())) == pytest.approx(
        logits_of(subject, 2).softmax(-1).max().item(), rel=1e-4
    )
