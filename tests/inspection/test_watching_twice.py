"""Watching a tap twice, watching what is no tap in a padded batch, and mistakes in the choices of a reader."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.cli.showing import to_data
from regard.errors import InputError
from regard.inspection.capture import capture
from regard.inspection.drawing.html import to_html
from regard.inspection.drawing.scene import Figure, Matrix, Scene
from regard.inspection.interventions import intervene, parse_switch, scale_head
from regard.inspection.trace import Trace
from regard.inspection.views import find_view
from regard.inspection.views.attention import image
from regard.inspection.views.base import Choices, Subject, find_token
from regard.layers.tap import Tap, is_watching
from regard.models.transformer import Transformer, TransformerConfig
from tests.contracts.examples import example_of
from tests.inspection.views.tiny import axis_of, traced


def test_one_watcher_may_watch_twice():
    tap = Tap()

    def double(value):
        return 2 * value

    first, second = tap.watch(double), tap.watch(double)
    assert tap(torch.ones(1)).item() == 4
    second()
    second()
    assert tap(torch.ones(1)).item() == 2
    first()
    assert not tap.watched
    assert not is_watching()


def test_the_same_intervention_twice_leaves_nothing_behind():
    model = example_of("gpt").loud_model()
    half = scale_head("blocks.0.attention", 0, 0.5)
    with intervene(model, [half]), intervene(model, [half]):
        pass
    assert not is_watching()


@pytest.mark.parametrize("text", ["blocks.*.attention:0", "blocks.0.attention:²"])
def test_a_wrong_switch_is_an_input_error(text):
    with pytest.raises(InputError), intervene(example_of("gpt").loud_model(), [parse_switch(text)]):
        pass
    assert not is_watching()


def test_a_token_that_is_a_digit_but_no_number():
    with pytest.raises(InputError):
        find_token(axis_of([5, 6, 7, 8]), "²")


@torch.inference_mode()
def test_norms_and_taps_have_the_same_shape_in_a_padded_batch():
    config = TransformerConfig(vocab_size=40, width=64, heads=2, layers=1, feed_forward=64)
    model, pad = Transformer(config).eval(), config.special_ids.pad_id
    source = torch.tensor([[5, 6, 7, 8, 9, 2], [5, 6, 2, pad, pad, pad]])
    for point in ("norm_attention", "feed_forward", "attention.output", "hidden"):
        with capture(model, f"encoder.blocks.0.{point}") as captured:
            model.start(source)
        assert [value.shape for value in captured[f"encoder.blocks.0.{point}"]] == [(2, 6, 64)], point


def test_data_of_a_figure_is_json():
    values = torch.tensor([[1.0, -torch.inf, torch.nan]]).numpy()
    data = to_data(Figure.of(Scene(1, 1, [Matrix(0, 0, 1, 1, values)], "title")))
    json.dumps(data, allow_nan=False)
    assert data["matrices"][0]["values"] == [[1.0, "-inf", "nan"]]


def test_layers_of_a_captioner_are_those_that_look_at_the_image():
    subject = traced("captioner", image.VIEW, number=1)
    figure = image.VIEW.draw(subject, Choices(layer=1))
    assert [frame.name for frame in figure.frames][1] == "layer 1, head 0"
    with pytest.raises(InputError):
        find_view("image").draw(subject, Choices(attention="decoder.blocks.*.attention"))


def test_a_caption_with_more_tokens_than_pictures_says_so():
    subject = traced("captioner", image.VIEW)
    axes = dict(subject.trace.info.axes)
    axes["target"] = axes["target"].model_copy(update={"next_tokens": ("t7",) * 100})
    info = subject.trace.info.model_copy(update={"axes": axes})
    values = subject.trace.values | {"image": np.zeros((8, 8, 3), np.uint8)}
    scene = image.VIEW.draw(replace(subject, trace=replace(subject.trace, info=info, values=values)), Choices()).scene
    assert scene.caption.endswith("The first 24 of 100 tokens.")


@pytest.mark.parametrize("name", ["heads", "head", "masks"])
def test_a_vit_has_a_label_for_its_first_token(name):
    view = find_view(name)
    figure = view.draw(traced("captioner", view, number=5), Choices())
    to_html(figure)


def test_the_trace_of_a_vit_comes_back_from_its_file(tmp_path):
    view = find_view("heads")
    made = traced("captioner", view, number=5).trace
    made.save(tmp_path / "t.safetensors")
    again = Trace.open(tmp_path / "t.safetensors")
    assert "patches attends to patches" in [frame.name for frame in view.draw(Subject(again), Choices()).frames]
