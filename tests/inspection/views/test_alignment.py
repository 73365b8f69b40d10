"""The alignment view: the model's cross-attention, and with gold links the head that aligns best."""

from dataclasses import replace

import numpy as np
import pytest

from regard.errors import InputError
from regard.inspection.trace import Axis, Trace
from regard.inspection.views import choose_view, find_view
from regard.inspection.views.attention.alignment import word_ids
from regard.inspection.views.base import Choices, Subject
from tests.inspection.views.subjects import SOURCE, TARGET, matrices, subject_of

draw = find_view("alignment").draw
GOLD = ((0, 0), (2, 1), (1, 2))  # the red house: la casas roja
PATH = "decoder.blocks.{}.cross_attention.weights"


def with_weights(**heads) -> Subject:
    """A translator's trace whose cross-attention has some heads replaced: layer0head1=…"""
    trace: Trace = subject_of("transformer").trace
    values = dict(trace.values)
    for name, weights in heads.items():
        layer, head = int(name[5]), int(name[-1])
        values[PATH.format(layer)] = values[PATH.format(layer)].copy()
        values[PATH.format(layer)][head] = weights
    return Subject(replace(trace, values=values))


def test_the_mean_comes_first_then_every_head():
    subject = subject_of("transformer")
    figure = draw(subject, Choices())
    layers = [subject.trace.values[PATH.format(layer)] for layer in range(2)]
    (matrix,) = matrices(figure.scene).values()
    np.testing.assert_allclose(matrix.values, np.concatenate(layers).mean(0), atol=1e-6)
    assert (tuple(matrix.rows), tuple(matrix.columns)) == (TARGET, SOURCE)
    (last,) = matrices(figure.frames[-1].draw()).values()
    np.testing.assert_array_equal(last.values, layers[1][-1])


def test_a_layer_is_one_of_the_cross_attention_and_keeps_its_number():
    figure = draw(subject_of("transformer"), Choices(layer=1, head=0))
    assert [frame.name for frame in figure.frames] == ["mean of the heads of layer 1", "layer 1, head 0"]
    assert figure.chosen == 1
    with pytest.raises(InputError, match="--layer 2: wanted 0 to 1"):
        draw(subject_of("transformer"), Choices(layer=2))


def test_the_best_head_by_gold_links_is_chosen_and_its_links_are_outlined():
    aligned = np.full((5, 4), 0.01)  # la casa ·s roja </s>, the red house </s>
    for row, column in enumerate((0, 2, 2, 1, 3)):
        aligned[row, column] = 0.97
    figure = draw(with_weights(layer1head2=aligned), Choices(gold=GOLD))
    assert figure.frames[figure.chosen].name == "layer 1, head 2 (best)"
    assert sum("best" in frame.name for frame in figure.frames) == 1
    assert figure.scene.title.endswith("AER 0%")
    matrix, _ = matrices(figure.scene).values()
    assert matrix.outlined is not None
    assert np.argwhere(matrix.outlined).tolist() == [[0, 0], [1, 2], [2, 2], [3, 1]]


def test_the_error_rate_is_that_of_each_words_largest_weight():
    wrong = np.zeros((5, 4))
    wrong[:, 0] = 1.0  # all of them look at the first word: one of three links is right
    figure = draw(with_weights(layer0head0=wrong), Choices(gold=GOLD))
    assert figure.frames[1].draw().title.endswith("AER 67%")


def test_of_heads_with_the_same_error_rate_the_one_nearer_to_the_gold_links_is_best():
    near, far = np.zeros((5, 4)), np.zeros((5, 4))
    near[:, 0], far[:, 0] = 0.55, 0.9  # the largest weight is at the first word in both
    for row, column in enumerate((0, 2, 2, 1)):
        near[row, column] += 0.45
        far[row, column] += 0.1
    heads = {f"layer{layer}head{head}": far for layer in range(2) for head in range(3)} | {"layer0head2": near}
    figure = draw(with_weights(**heads), Choices(gold=GOLD))
    assert figure.frames[figure.chosen].name == "layer 0, head 2 (best)"


def test_the_error_rate_of_every_head_stands_beside_the_alignment():
    aligned, wrong = np.full((5, 4), 0.01), np.zeros((5, 4))
    for row, column in enumerate((0, 2, 2, 1, 3)):
        aligned[row, column] = 0.97
    wrong[:, 0] = 1.0
    figure = draw(with_weights(layer1head2=aligned, layer0head1=wrong), Choices(gold=GOLD))
    table = figure_table(figure)
    assert (table.values[1, 2], table.values[0, 1]) == pytest.approx((0, 2 / 3))
    assert table.outlined[1, 2]
    assert table.name == "AER of each layer (down) and head"


def figure_table(figure):
    return next(matrix for name, matrix in matrices(figure.scene).items() if name.startswith("AER"))


def test_a_possible_link_is_no_error_if_it_is_found_and_none_if_it_is_not():
    weights = np.full((5, 4), 0.01)
    for row, column in enumerate((0, 1, 1, 1, 3)):  # casas: red, which is only possible
        weights[row, column] = 0.97
    sure, possible = ((0, 0), (1, 2)), ((1, 1),)
    assert (
        figure_table(draw(with_weights(layer0head0=weights), Choices(gold=sure, possible=possible))).values[0, 0] == 0
    )
    assert figure_table(draw(with_weights(layer0head0=weights), Choices(gold=sure))).values[0, 0] == pytest.approx(0.2)


def test_gold_links_count_space_separated_words():
    subject = subject_of("transformer")
    axes = {
        "source": Axis(tokens=("the", "red", "·house", "·."), text="the redhouse."),
        "target": Axis(tokens=("<bos>", "la", "casa", "·s", "roja"), next_tokens=TARGET, text="la casas roja"),
    }
    changed = replace(subject.trace, info=subject.trace.info.model_copy(update={"axes": axes}))
    (matrix, _) = matrices(draw(Subject(changed), Choices(gold=((1, 1),))).scene).values()
    assert np.argwhere(matrix.outlined).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]  # the full stop is attached
    with pytest.raises(InputError, match="gold link 2-0 is not of this pair; wanted source words 0 to 1"):
        draw(Subject(changed), Choices(gold=((2, 0),)))


def test_a_view_without_an_alignment_takes_no_gold():
    info = subject_of("transformer").trace.info
    for chosen in (Choices(gold=GOLD), Choices(possible=GOLD)):
        with pytest.raises(InputError, match="the view heads does not take --gold; .* alignment, checkpoints do"):
            choose_view("heads", info, chosen)


def test_a_gold_link_outside_of_the_sentences_is_an_error():
    with pytest.raises(InputError, match="gold link 3-0 is not of this pair; wanted source words 0 to 2"):
        draw(subject_of("transformer"), Choices(gold=((3, 0),)))


def test_tokens_belong_to_words_by_their_labels():
    assert word_ids(("walk", "·ing", "home", "</s>", "[SEP]", "<")) == [0, 0, 1, -1, -1, 2]
    assert word_ids(("·ing", "home")) == [0, 1]


def test_a_language_model_has_no_alignment():
    with pytest.raises(InputError, match="no attention from a target to a source"):
        choose_view("alignment", subject_of("gpt").trace.info)
