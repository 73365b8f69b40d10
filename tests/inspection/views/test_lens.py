"""The logit lens: the last row is the model's own prediction, the others its final norm and output layer."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import InputError
from regard.inspection.lens import lens_logits, lens_taps
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices
from regard.inspection.views.lens import VIEW
from tests.inspection.views.tiny import check_inside, matrices, traced

LAST = {
    "gpt": lambda model, hidden: model.logits(model.norm(hidden)),
    "llama": lambda model, hidden: model.logits(model.norm(hidden)),
    "transformer": lambda model, hidden: model.logits(model.decoder.norm(hidden)),
    "t5": lambda model, hidden: model.logits(model.decoder.norm(hidden) * model.config.width**-0.5),
    "bert-masked-lm": lambda model, hidden: model.token_logits(hidden),
    "bert-pretraining": lambda model, hidden: model.token_logits(hidden),
}


@pytest.mark.parametrize("kind", LAST)
def test_each_row_is_the_final_norm_and_output_layer_of_a_block(kind):
    subject = traced(kind, VIEW)
    model = subject.pipeline.model
    found = lens_logits(model, subject.inputs, subject.trace, 40)
    taps = lens_taps(subject.trace.info)
    assert len(found) == len(taps) == 2
    with torch.inference_mode():
        output = subject.inputs.forward()
        assert_close(found[-1], getattr(output, "tokens", output)[0])
        first = torch.from_numpy(subject.trace.value(taps[0]))[None]
        assert_close(found[0], LAST[kind](model, first)[0])
    assert not torch.allclose(found[0], found[-1], atol=0.1)


@pytest.mark.parametrize("kind", ["gpt", "transformer", "bert-masked-lm"])
def test_the_last_layer_is_on_top_with_the_models_own_probabilities(kind):
    subject = traced(kind, VIEW)
    figure = VIEW.draw(subject, Choices())
    (matrix,) = matrices(figure.scene).values()
    with torch.inference_mode():
        wanted = subject.inputs.forward()[0].softmax(-1).max(-1)
    assert matrix.values[0].tolist() == pytest.approx(wanted.values.tolist(), rel=1e-5)
    assert matrix.rows == ["layer 1", "layer 0"]
    tokens = [item.title for item in figure.scene.items if getattr(item, "title", "").startswith("layer 1")]
    assert [title.split(" → ")[1].split(":")[0] for title in tokens] == [
        "[MASK]" if number == 3 else f"t{number}" for number in wanted.indices.tolist()
    ]
    check_inside(figure)


@pytest.mark.parametrize("kind", ["rnn", "conv", "captioner"])
def test_a_model_without_such_blocks_has_no_lens(kind):
    with pytest.raises(InputError, match="the view lens has no meaning .* no blocks with self-attention"):
        choose_view("lens", traced(kind, VIEW).trace.info)


def test_a_classifier_has_no_lens():
    info = traced("bert-sequence-classification", VIEW, task="classification").trace.info
    with pytest.raises(InputError, match="it does not predict tokens"):
        choose_view("lens", info)
