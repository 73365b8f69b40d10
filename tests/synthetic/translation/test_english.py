"""English forms against words written by hand."""

import pytest

from regard.synthetic.translation import english
from regard.synthetic.translation.verbs import VERBS
from regard.synthetic.translation.vocabulary import NOUNS


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("boy", "boys"),
        ("box", "boxes"),
        ("bus", "buses"),
        ("glass", "glasses"),
        ("church", "churches"),
        ("city", "cities"),
        ("child", "children"),
        ("man", "men"),
        ("woman", "women"),
        ("mouse", "mice"),
        ("foot", "feet"),
        ("knife", "knives"),
        ("wolf", "wolves"),
        ("scarf", "scarves"),
        ("tomato", "tomatoes"),
        ("photo", "photos"),
    ],
)
def test_plural(singular: str, plural: str) -> None:
    assert english.plural(singular) == plural


@pytest.mark.parametrize(
    "forms",
    [
        "eat eats ate eating",
        "write writes wrote writing",
        "run runs ran running",
        "swim swims swam swimming",
        "begin begins began beginning",
        "put puts put putting",
        "see sees saw seeing",
        "go goes went going",
        "have has had having",
        "carry carries carried carrying",
        "study studies studied studying",
        "fly flies flew flying",
        "play plays played playing",
        "wash washes washed washing",
        "push pushes pushed pushing",
        "dance dances danced dancing",
        "visit visits visited visiting",
        "open opens opened opening",
        "order orders ordered ordering",
        "travel travels traveled traveling",
        "show shows showed showing",
    ],
)
def test_verb(forms: str) -> None:
    base = forms.split()[0]
    found = (base, english.third_person(base), english.past(base), english.gerund(base))
    assert " ".join(found) == forms


@pytest.mark.parametrize(("word", "article"), [("boy", "a"), ("eagle", "an"), ("honest", "an"), ("hotel", "a")])
def test_article(word: str, article: str) -> None:
    assert english.article(word) == article


def test_every_plural_differs_from_its_singular() -> None:
    assert all(english.plural(lemma) != lemma for group in NOUNS.values() for lemma in group)


def test_only_three_verbs_hide_their_past() -> None:
    bases = {row[0].split()[0] for row in VERBS}
    assert {base for base in bases if english.past(base) == base} == {"read", "put", "cut"}
