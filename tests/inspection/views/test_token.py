"""The view of one token: its row of every head's weights, their mean, and a color for each head."""

import numpy as np
import pytest

from regard.errors import InputError
from regard.inspection.drawing.scene import Rectangle
from regard.inspection.trace import Axis
from regard.inspection.views import choose_view, find_view
from regard.inspection.views.base import Choices, find_token, find_tokens
from tests.inspection.views.subjects import SOURCE, TARGET, TEXT, has_title, line_titles, matrices, subject_of

draw = find_view("token").draw
IT = TEXT.index("it")


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        ("bert", ["blocks.0.attention", "blocks.1.attention"]),
        ("gpt", ["blocks.0.attention", "blocks.1.attention"]),
        ("vilbert", ["text_blocks.0.attention", "co_attention_layers.0.text_block.attention"]),
    ],
)
def test_each_row_is_the_tokens_query_in_one_head(kind, paths):
    subject = subject_of(kind)
    scene = draw(subject, Choices(token="it")).scene
    (matrix,) = matrices(scene).values()
    wanted = np.concatenate([subject.trace.values[f"{path}.weights"][:, IT] for path in paths])
    np.testing.assert_array_equal(matrix.values[: len(wanted)], wanted)
    assert tuple(matrix.columns) == TEXT
    assert matrix.rows[0] == "0.0"
    mean = matrix.values.mean(0)
    assert has_title(scene, f"animal: {mean[2]:.6g}")
    assert has_title(scene, f"mean: it → the: {mean[1]:.6g}")


def test_a_layer_has_a_square_and_lines_for_each_head():
    subject = subject_of("bert")
    figure = draw(subject, Choices(token="it", layer=1))
    assert [frame.name for frame in figure.frames] == ["all layers", "layer 0", "layer 1"]
    weights = subject.trace.values["blocks.1.attention.weights"][:, IT]
    squares = {
        item.title: item.opacity
        for item in figure.scene.items
        if isinstance(item, Rectangle) and item.title.startswith("head ")
    }
    for head, row in enumerate(weights):
        for key, weight in zip(TEXT, row, strict=True):
            title = f"head {head}: it → {key}: {weight:.6g}"
            assert squares[title] == pytest.approx(weight)
            assert (title in line_titles(figure.scene)) == (weight >= 0.02)


def test_a_translators_token_is_looked_for_in_its_source_first():
    subject = subject_of("transformer")
    (matrix,) = matrices(draw(subject, Choices(token="house")).scene).values()
    np.testing.assert_array_equal(matrix.values[0], subject.trace.values["encoder.blocks.0.attention.weights"][0, 2])
    assert tuple(matrix.columns) == SOURCE


def test_in_cross_attention_the_token_is_one_that_was_chosen():
    subject = subject_of("transformer")
    chosen = Choices(token="roja", attention="*cross_attention", head=1)
    (matrix,) = matrices(draw(subject, chosen).scene).values()
    weights = subject.trace.values["decoder.blocks.0.cross_attention.weights"]
    np.testing.assert_array_equal(matrix.values[0], weights[1, TARGET.index("roja")])
    assert matrix.rows[0] == "0.1"


def test_a_token_that_is_not_there_is_an_error():
    with pytest.raises(InputError, match=r"there is no token 'dog'; this text has \[CLS\], the, animal"):
        draw(subject_of("bert"), Choices(token="dog"))
    with pytest.raises(InputError, match="--layer 2: wanted 0 to 1"):
        draw(subject_of("bert"), Choices(token="it", layer=2))


def test_a_whole_word_comes_before_the_rest_of_another():
    axis = Axis(tokens=("it", "it", "wa", "·it"))
    assert find_token(axis, "it") == 1
    assert find_token(axis, "IT") == 1
    assert find_token(axis, "·it") == 3
    assert find_token(Axis(tokens=("wa", "·it")), "it") == 1


def test_a_word_of_several_tokens_is_the_mean_of_its_tokens_and_says_so():
    subject = subject_of("bert")
    scene = draw(subject, Choices(token="animals")).scene
    (matrix,) = matrices(scene).values()
    weights = subject.trace.values["blocks.0.attention.weights"][:, [2, 3]]
    np.testing.assert_allclose(matrix.values[: len(weights)], weights.mean(1), rtol=1e-6)
    assert scene.title.startswith("where “animals” (mean of 2 tokens) looks")
    assert draw(subject, Choices(token="3")).scene.title.startswith("where “·s” looks")
    with pytest.raises(InputError, match=r"'animals' is 2 tokens \(2 animal, 3 ·s\); choose one of them by its number"):
        find_token(Axis(tokens=TEXT), "animals")


def test_a_word_is_found_by_its_letters_where_tokens_are_characters():
    axis = Axis(tokens=("w", "a", "i", "t", " ", "i", "t"))
    assert find_tokens(axis, "it") == [5, 6]
    assert find_tokens(axis, "wait") == [0, 1, 2, 3]
    with pytest.raises(InputError, match="there is no token 'ait'"):
        find_tokens(axis, "ait")


def test_a_token_alone_chooses_this_view():
    assert choose_view(None, subject_of("gpt").trace.info, Choices(token="it")).name == "token"
