"""Attention in small numbers: every number of the figures computed another way."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.inspection.drawing.scene import Text
from regard.inspection.examples import draw_example, movies, multi_head, scores, softmax_gradient, thinking, xxt
from regard.layers.attention import Dot, ScaledDot
from tests.inspection.views.subjects import has_title, matrices


def frame(name, number):
    return draw_example(name).frames[number].draw()


def texts(scene):
    return {item.text for item in scene.items if isinstance(item, Text)}


# ------------------------------------------------ scores


def test_the_scores_become_0_88_and_0_12():
    drawn = matrices(frame("scores", 0))
    assert drawn["q1 · k"].values.tolist() == [[112, 96, 16, 8]]
    assert drawn["÷ √64"].values.tolist() == [[14, 12, 2, 1]]
    exponentials = [math.exp(score) for score in (14, 12, 2, 1)]
    expected = [one / sum(exponentials) for one in exponentials]
    assert drawn["softmax"].values[0].tolist() == pytest.approx(expected, rel=1e-5)
    assert [round(one, 2) for one in expected] == [0.88, 0.12, 0.0, 0.0]
    assert "z1 = 0.88 v1 + 0.12 v2 + 0.00 v3 + 0.00 v4" in texts(frame("scores", 0))


def test_without_the_root_the_first_word_takes_all():
    scene = frame("scores", 1)
    assert "0.9999999" in texts(scene)
    assert "0.1192020" in texts(scene)
    assert has_title(scene, f"v2: {1 / (1 + math.exp(16)):.6g}")


def test_the_quiz_names_the_wrong_answers():
    mean, shares, right, swapped = (answer.tolist() for answer in scores.quiz_answers().values())
    assert mean == [0.5, 0.5]
    assert shares == pytest.approx([112 / 208, 96 / 208])
    assert [round(one, 2) for one in shares] == [0.54, 0.46]
    assert right == pytest.approx([1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))])
    assert swapped == right[::-1]
    wrong = [text for text in texts(frame("scores", 2)) if "wrong" in text]
    assert len(wrong) == 3
    assert any("112 / (112 + 96)" in text for text in wrong)


def test_the_note_says_what_the_weights_really_are():
    (note,) = draw_example("scores").notes
    assert note.endswith("they are 0.8808, 0.1192, 0.0000, 0.0000")


# ------------------------------------------------ thinking, xxt


def test_thinking_machines_follows_the_formula():
    query, key, value = thinking.X @ thinking.W_Q, thinking.X @ thinking.W_K, thinking.X @ thinking.W_V
    products = (query @ key.T).tolist()
    assert products == [[10, 5], [6, 6]]
    drawn = matrices(frame("thinking", 7))
    for name, one in (("X", thinking.X), ("W_K", thinking.W_K), ("Q", query), ("Kᵀ", key.T), ("V", value)):
        np.testing.assert_array_equal(drawn[name].values, one)
    np.testing.assert_allclose(drawn["scores / √3"].values, np.array(products) / math.sqrt(3), rtol=1e-6)
    first = 1 / (1 + math.exp(-5 / math.sqrt(3)))
    np.testing.assert_allclose(drawn["softmax"].values, [[first, 1 - first], [0.5, 0.5]], rtol=1e-5)
    expected = F.scaled_dot_product_attention(query[None], key[None], value[None])[0]
    np.testing.assert_allclose(drawn["Z"].values, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("number", "names"),
    list(
        enumerate(
            [
                ["X", "W_Q", "Q"],
                ["X", "W_K", "K"],
                ["X", "W_V", "V"],
                ["Q", "Kᵀ", "scores"],
                ["scores", "scores / √3"],
                ["scores / √3", "softmax"],
                ["softmax", "V", "Z"],
            ]
        )
    ),
)
def test_each_step_shows_its_own_equation(number, names):
    step, whole = matrices(frame("thinking", number)), matrices(frame("thinking", 7))
    assert list(step) == names
    for name in names:
        np.testing.assert_array_equal(step[name].values, whole[name].values)


def test_xxt_is_the_softmax_of_x_times_itself():
    x = np.array(list(xxt.WORDS.values()))
    drawn = matrices(draw_example("xxt").scene)
    similarity = x @ x.T
    weights = np.exp(similarity) / np.exp(similarity).sum(1, keepdims=True)
    np.testing.assert_allclose(drawn["similarity"].values, similarity, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn["softmax"].values, weights, rtol=1e-5)
    np.testing.assert_allclose(drawn["Y"].values, weights @ x, rtol=1e-5)


# ------------------------------------------------ softmax-gradient


@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0, 22.6, 100.0])
def test_the_largest_gradient_is_that_of_the_closed_form(scale):
    given = np.arange(8) - 3.5
    exponentials = np.exp(given / np.sqrt((given**2).mean()) * scale)
    weights = exponentials / exponentials.sum()
    jacobian = np.diag(weights) - np.outer(weights, weights)
    assert softmax_gradient.largest_gradient(scale) == pytest.approx(np.abs(jacobian).max(), rel=1e-6, abs=0)


def test_the_gradient_vanishes_exponentially():
    small, large = (softmax_gradient.largest_gradient(scale) for scale in (1.0, 100.0))
    assert small > 0.2
    assert 0 < large < 1e-18
    assert has_title(draw_example("softmax-gradient").scene, f": 100 → {large:.6g}")


def test_the_scores_spread_with_the_root_of_the_width():
    for width in (16, 1024):
        assert softmax_gradient.deviation(width, Dot()) == pytest.approx(math.sqrt(width), rel=0.05)
        assert softmax_gradient.deviation(width, ScaledDot()) == pytest.approx(1.0, rel=0.05)


# ------------------------------------------------ movies, multi-head


def test_a_wish_returns_a_mixture_of_the_values():
    keys, values = movies.catalog()
    for number, query in enumerate(movies.WISHES.values()):
        products = (keys.numpy() * query).sum(1)
        weights = np.exp(products) / np.exp(products).sum()
        scene = frame("movies", number)
        drawn = matrices(scene)
        np.testing.assert_allclose(drawn["weights"].values[:, 0], weights, rtol=1e-5)
        np.testing.assert_allclose(drawn["returned"].values, [[weights @ values[:, 0].numpy()]], rtol=1e-5)
        assert has_title(
            scene, f"WALL-E → softmax: {float(movies.look_up(list(movies.WISHES)[number]).weights[0, 5]):.6g}"
        )
    assert any(text.startswith("returned: 0.96 WALL-E + ") for text in texts(frame("movies", 1)))


def test_no_wish_returns_the_mean_of_all_values():
    _, values = movies.catalog()
    torch.testing.assert_close(movies.look_up("no wish at all").output[0], values.mean(0))


def test_two_heads_keep_apart_what_one_head_averages():
    animal, street, tired = (multi_head.SENTENCE.index(word) for word in ("animal", "street", "tired"))
    ((one, mixed), (two, apart)) = multi_head.attended(1), multi_head.attended(2)
    others = len(multi_head.SENTENCE) - 3
    strong, weak = math.exp(9 / 2), math.exp(0.6 * 9 / 2)
    assert one[0, animal] == one[0, tired] == pytest.approx(strong / (2 * strong + weak + others))
    strong, weak = math.exp(9 / math.sqrt(2)), math.exp(0.6 * 9 / math.sqrt(2))
    assert float(two[0, animal]) == pytest.approx(strong / (strong + weak + others + 1), rel=1e-5)
    assert float(two[1, tired]) == pytest.approx(strong / (strong + others + 2), rel=1e-5)
    assert two[0, animal] > 0.9
    assert two[1, tired] > 0.9
    assert two[0, street] > two[1, street]
    assert torch.equal(mixed[:2], mixed[2:])
    assert apart[0] > 0.9 > 0.1 > apart[1]
    assert apart[3] > 0.9 > 0.1 > apart[2]


def test_the_drawn_weights_are_those_of_each_head():
    drawn = matrices(frame("multi-head", 0))
    for name, (heads, head) in {"one head": (1, 0), "head 0": (2, 0), "head 1": (2, 1)}.items():
        np.testing.assert_array_equal(drawn[name].values[0], multi_head.attended(heads)[0][head])
