"""Words of written text: those a tagger learned from, each at its place."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tokenizers.treebank import word_spans

# Each text with its words, as the CoNLL files have them, parted by spaces.
WRITTEN = {
    "Ada lived in (central) Paris.": "Ada lived in ( central ) Paris .",
    "The U.S. and J. R. O'Brien met Jean-Luc.": "The U.S. and J. R. O'Brien met Jean-Luc .",
    'He said "no," twice!': 'He said " no , " twice !',
    "J.K. Rowling, J.-L. Godard (U.S.), Dr. No": "J.K. Rowling , J.-L. Godard ( U.S. ) , Dr. No",
    "3.5% of $1,000.50, or -3.5 and .5.": "3.5 % of $ 1,000.50 , or -3.5 and .5 .",
    "AT&T's shares don't, can’t, WON'T move": "AT&T 's shares do n't , ca n’t , WO N'T move",
    "We'll see; I'm the U.S.'s, they're John's.": "We 'll see ; I 'm the U.S. 's , they 're John 's .",
    "John 's already apart , do n't": "John 's already apart , do n't",
    "the dogs' and 'quoted' words": "the dogs ' and ' quoted ' words",
    "Wait... Paris--London—Rome… (well)...": "Wait ... Paris -- London — Rome … ( well ) ...",
    "... -- ?!": "... -- ? !",
    "東京 tower 東京。": "東 京 tower 東 京 。",
    "it is at 5 p.m. on http://a.b/c-d?e=f.": "it is at 5 p.m. on http://a.b/c-d?e=f .",
    "plan a.": "plan a .",
    "": "",
    " \t\n ": "",
    "\u0301 \u200b cat": "cat",
}


def words(text):
    return [text[start:stop] for start, stop in word_spans(text)]


@pytest.mark.parametrize("text", WRITTEN)
def test_words_as_they_are_in_tagged_files(text):
    assert words(text) == WRITTEN[text].split()


@given(st.text() | st.text("aB.'’-3,( \u0301東n't"))
def test_every_letter_and_sign_is_in_one_word_in_order(text):
    spans = word_spans(text)
    assert all(start < stop for start, stop in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert not any(character.isspace() for word in words(text) for character in word)
    seen = [c for c in text if not c.isspace() and unicodedata.category(c)[0] not in "MC"]
    assert [c for word in words(text) for c in word if unicodedata.category(c)[0] not in "MC"] == seen


@given(st.lists(st.sampled_from(" ".join(WRITTEN.values()).split()), max_size=8))
def test_what_is_apart_already_stays_so(apart):
    assert words(" ".join(apart)) == apart
