"""Scores of words' labels: entities as conlleval counts them, worked by hand, and single labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics.tagging import EntityCounts, are_entity_labels, extract_entities, tagging_metrics


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 1), ("LOC", 3, 3)]),
        ("B-PER B-PER", [("PER", 0, 0), ("PER", 1, 1)]),
        # IOB1: I begins one, B only where two of one type touch
        ("I-PER I-PER B-PER I-PER O", [("PER", 0, 1), ("PER", 2, 3)]),
        ("O I-LOC", [("LOC", 1, 1)]),
        ("I-PER I-LOC", [("PER", 0, 0), ("LOC", 1, 1)]),
        ("B-PER I-LOC I-LOC", [("PER", 0, 0), ("LOC", 1, 2)]),
        # BIOES
        ("S-PER S-PER B-LOC I-LOC E-LOC", [("PER", 0, 0), ("PER", 1, 1), ("LOC", 2, 4)]),
        ("E-PER E-PER", [("PER", 0, 0), ("PER", 1, 1)]),
        ("B-PER E-PER I-PER", [("PER", 0, 1), ("PER", 2, 2)]),
        ("S-PER I-PER", [("PER", 0, 0), ("PER", 1, 1)]),
        ("B-PER S-PER", [("PER", 0, 0), ("PER", 1, 1)]),
        ("I-PER E-LOC", [("PER", 0, 0), ("LOC", 1, 1)]),
        # BILOU, a type with a hyphen, no types
        ("U-PER B-LOC L-LOC", [("PER", 0, 0), ("LOC", 1, 2)]),
        ("B-MISC-X I-MISC-X", [("MISC-X", 0, 1)]),
        ("B I O B", [("", 0, 1), ("", 3, 3)]),
        ("", []),
    ],
)
def test_entities_by_hand(labels, wanted):
    assert extract_entities(labels.split()) == wanted


def test_scores_by_hand():
    """Wanted: two persons, two places. Found: one person right, one too long, one place right, one person too many."""
    wanted = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O", "B-LOC", "O"]]
    found = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "I-PER", "O", "B-PER"]]
    scores = tagging_metrics(found, wanted)
    assert scores.by_type == {"LOC": EntityCounts(1, 2, 1), "PER": EntityCounts(3, 2, 1)}
    assert scores.total == EntityCounts(4, 4, 2)
    assert (scores.by_type["PER"].precision, scores.by_type["PER"].recall) == (pytest.approx(1 / 3), 0.5)
    assert scores.by_type["PER"].f1 == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
    assert scores.metrics() == {"f1": 0.5, "precision": 0.5, "recall": 0.5, "accuracy": 5 / 8}


def test_an_entity_must_have_its_type_and_both_ends():
    wanted = [["O", "B-PER", "I-PER", "I-PER", "O"]]
    for near in ("O B-LOC I-LOC I-LOC O", "B-PER I-PER I-PER I-PER O", "O B-PER I-PER O O", "O B-PER B-PER I-PER O"):
        assert tagging_metrics([near.split()], wanted).total.correct == 0
    assert (
        tagging_metrics([["O", "I-PER", "I-PER", "I-PER", "O"]], wanted).total.f1 == 1
    )  # another scheme, the same entity


def test_entities_do_not_run_over_the_end_of_a_sentence():
    assert tagging_metrics([["I-PER"], ["I-PER"]], [["B-PER"], ["B-PER"]]).total == EntityCounts(2, 2, 2)


def test_shares_of_nothing_are_0():
    assert tagging_metrics([["O", "O"]], [["O", "B-PER"]]).metrics() == {
        "f1": 0,
        "precision": 0,
        "recall": 0,
        "accuracy": 0.5,
    }
    assert tagging_metrics([["O"]], [["O"]]).metrics() == {"f1": 0, "precision": 0, "recall": 0, "accuracy": 1}


def test_labels_of_single_words_have_accuracy_and_macro_f1():
    scores = tagging_metrics([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    # DET 1, NOUN 0, VERB 2·1/(1+2)
    assert scores.metrics() == {"accuracy": pytest.approx(2 / 3), "macro_f1": pytest.approx((1 + 0 + 2 / 3) / 3)}
    assert scores.total is None
    assert scores.by_type == {}


def test_which_labels_mark_entities():
    assert are_entity_labels(["O", "B-PER", "I-PER"])
    assert are_entity_labels(["O"])
    assert not are_entity_labels(["O", "NOUN"])
    assert not are_entity_labels(["-LRB-", "NN"])


def test_unequal_sentences_are_a_programmers_mistake():
    with pytest.raises(AssertionError):
        tagging_metrics([["O"]], [["O", "O"]])


SCHEMES = {"IOB2": "BI", "BIOES": "BIES"}


def written(spans: list[tuple[str, int]], scheme: str) -> list[str]:
    """Entities, each with its type and length, an O before each, in a scheme."""
    labels = []
    for kind, length in spans:
        labels.append("O")
        marks = ["B", *"I" * (length - 1)]
        if scheme == "BIOES":
            marks = ["S"] if length == 1 else [*marks[:-1], "E"]
        labels += [f"{mark}-{kind}" for mark in marks]
    return labels


@given(
    st.lists(st.tuples(st.sampled_from(["PER", "LOC"]), st.integers(1, 4)), max_size=6), st.sampled_from(list(SCHEMES))
)
def test_what_is_written_is_found(spans, scheme):
    found = extract_entities(written(spans, scheme))
    assert [(kind, last - first + 1) for kind, first, last in found] == spans
