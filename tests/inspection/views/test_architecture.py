"""The block diagram: every parameter of the model is in one of its parts, and repeated blocks are counted."""

import pytest

from regard.inspection.drawing.terminal import to_terminal
from regard.inspection.parts import parts_of
from regard.inspection.trace import TraceInfo, modules_of
from regard.inspection.views.architecture import VIEW
from regard.inspection.views.base import Choices
from tests.contracts.examples import EXAMPLES, example_of, named
from tests.inspection.views.tiny import check_inside, texts, titles, traced


def info_of(example):
    model = example.model()
    return model, TraceInfo(
        kind=example.kind,
        task="",
        interface=model.interface,
        config=model.config.model_dump(mode="json"),
        axes={},
        modules=modules_of(model),
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_the_parts_have_all_parameters_of_the_model(example):
    model, info = info_of(example)
    own = sum(
        one.numel() for path, one in model.named_parameters() if path.endswith("transformer.first")
    )  # class token
    assert sum(part.parameters for part in parts_of(info)) + own == sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("kind", ["gpt", "llama", "transformer", "t5", "rnn", "conv", "bert", "captioner"])
def test_the_drawing_states_the_parameters(kind):
    subject = traced(kind, VIEW)
    figure = VIEW.draw(subject, Choices())
    total = sum(one.numel() for one in subject.pipeline.model.parameters())
    assert figure.scene.title == f"{kind}: {total:,} parameters"
    check_inside(figure)


def test_a_terminal_prints_the_decoder_above_the_encoder_and_never_both_on_a_line():
    lines = to_terminal(VIEW.draw(traced("transformer", VIEW), Choices()).scene).plain.splitlines()
    stacks = [line.split()[1] for line in lines if line.startswith("blocks: ")]
    assert stacks == ["DecoderBlock", "EncoderBlock"]
    assert max(line.count("Attention") for line in lines) == 1
    assert lines[-2].startswith("embedding ")  # what both share is at the bottom, above the input
    assert lines[-1] == "source: 5 tokens  target: 4 tokens"


def test_repeated_blocks_are_drawn_once():
    subject = traced("gpt", VIEW)
    scene = VIEW.draw(subject, Choices()).scene
    block = sum(one.numel() for one in subject.pipeline.model.blocks[0].parameters())
    assert f"× 2   {2 * block:,}" in texts(scene)
    assert titles(scene)["blocks.0"] == 2 * block
    attention = sum(one.numel() for one in subject.pipeline.model.blocks[0].attention.parameters())
    assert titles(scene)["blocks.0.attention"] == attention
    assert "text: 5 tokens" in texts(scene)


def test_encoder_left_decoder_right_and_norms_beside_their_sublayer():
    _, info = info_of(example_of("transformer"))
    parts = {part.module.path: part for part in parts_of(info)}
    assert parts["embedding"].side == "both"
    assert (parts["encoder.blocks.0"].side, parts["decoder.blocks.0"].side) == ("left", "right")
    names = [one.name for one in parts["encoder.blocks.0"].inside]
    assert names == ["attention", "norm attention", "feed forward", "norm feed forward"]
    _, info = info_of(example_of("transformer", 1))  # pre-norm
    names = [one.name for one in parts_of(info)[2].inside]
    assert names == ["norm attention", "attention", "norm feed forward", "feed forward"]


def test_two_streams_of_text_and_regions():
    _, info = info_of(example_of("vilbert-pretraining"))
    sides = {part.name: part.side for part in parts_of(info)}
    assert (sides["text blocks"], sides["region blocks"], sides["co attention layers"]) == ("left", "right", "both")
    layers = next(part for part in parts_of(info) if part.name == "co attention layers")
    assert layers.count == 2
    assert [one.side for one in layers.inside] == ["left", "right", "left", "right"]
