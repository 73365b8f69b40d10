"""Alignments: known error rates, and tokens gathered into words."""

import numpy as np
import pytest

from regard.metrics.alignment import argmax_links, count_errors, format_pharaoh, tokens_to_words


def test_error_rate_by_hand():
    """A = {0-0, 1-1, 2-0}, S = {0-0, 1-1}, P = S + {2-2}: 1 - (2 + 2) / (3 + 2)."""
    counts = count_errors({(0, 0), (1, 1), (2, 0)}, {(0, 0), (1, 1)}, {(2, 2)})
    assert counts.aer == pytest.approx(0.2)


def test_gold_itself_has_no_error_and_possible_links_cost_nothing():
    sure, possible = {(0, 0), (1, 2)}, {(0, 0), (1, 2), (2, 1)}
    assert count_errors(sure, sure, possible).aer == 0
    assert count_errors(possible, sure, possible).aer == 0
    assert count_errors({(5, 5)}, sure, possible).aer == 1


def test_counts_of_sentences_add_up():
    one, other = count_errors({(0, 0)}, {(0, 0)}, set()), count_errors({(1, 0)}, {(0, 0)}, set())
    assert one.plus(other).aer == pytest.approx(0.5)


def test_a_words_tokens_are_summed_on_the_source_and_averaged_on_the_target():
    weights = np.array([[0.5, 0.25, 0.2, 0.05], [0.1, 0.1, 0.7, 0.1], [0.0, 0.2, 0.7, 0.1]])
    words = tokens_to_words(weights, source_word_ids=[0, 0, 1, -1], target_word_ids=[0, 1, 1])
    assert words == pytest.approx(np.array([[0.75, 0.2], [0.2, 0.7]]))
    assert argmax_links(words) == {(0, 0), (1, 1)}
    assert format_pharaoh({(1, 1), (0, 0)}) == "0-0 1-1"


def test_a_word_without_a_token_of_its_own_is_left_out():
    """ "don't" may be the tokens don + 't: two tokens, three words, and the last word has none."""
    words = tokens_to_words(np.array([[0.9, 0.1], [0.2, 0.8]]), source_word_ids=[0, 1], target_word_ids=[0, 2])
    assert words == pytest.approx(np.array([[0.9, 0.1], [0.2, 0.8]]))
