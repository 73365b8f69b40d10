"""The causal mask: weights of what may be seen alone, and NaN if scores are multiplied by -∞."""

import numpy as np

from regard.inspection.examples import draw_example
from tests.inspection.views.subjects import matrices


def drawn(number):
    """The one matrix of a frame."""
    (matrix,) = matrices(draw_example("mask").frames[number].draw()).values()
    return matrix


def test_weights_are_the_softmax_of_the_scores_up_to_the_query():
    scores, weights = drawn(0).values, drawn(2).values
    for query in range(12):
        exponentials = np.exp(scores[query, : query + 1])
        np.testing.assert_allclose(weights[query, : query + 1], exponentials / exponentials.sum(), rtol=1e-5)
        assert not weights[query, query + 1 :].any()
    np.testing.assert_array_equal(drawn(1).masked, np.triu(np.ones((12, 12), bool), 1))


def test_multiplied_by_minus_infinity_a_row_with_a_negative_hidden_score_is_nan():
    scores, multiplied = drawn(0).values, drawn(3).values
    expected = (np.triu(scores, 1) < 0).any(1)
    assert expected.sum() == 10
    np.testing.assert_array_equal(np.isnan(multiplied).all(1), expected)
