"""Where a long text is cut: the tokens of the parts are the tokens of the whole."""

import random

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

from regard.tokenizers.boundaries import cut_at_spaces, is_cut_at_spaces
from regard.tokenizers.text import TextTokenizer

SIGNS = "abcABC 123  \n\t'-.,é漢🙂\u0301\u00a0\u2028"


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    chance = random.Random(0)
    words = ["".join(chance.choices(SIGNS, k=4)) for _ in range(500)]
    return TextTokenizer.train([" ".join(chance.choices(words, k=5000))], 600)


def whole(tokenizer: TextTokenizer, text: str) -> list[int]:
    return tokenizer._core.encode(text, add_special_tokens=False).ids


@given(st.text(st.sampled_from(SIGNS), max_size=200), st.integers(1, 40))
def test_the_tokens_of_the_parts_are_those_of_the_whole(tokenizer, text, size):
    parts = list(cut_at_spaces(text, size))
    assert "".join(parts) == text
    assert [number for part in parts for number in whole(tokenizer, part)] == whole(tokenizer, text)


def test_parts_are_as_long_as_asked_and_end_with_a_word():
    assert list(cut_at_spaces("word " * 4, 6)) == ["word word", " word word "]


def test_a_stretch_without_an_isolated_space_stays_whole():
    assert next(cut_at_spaces("a" * 300 + "  b" * 50 + " c", 100)) == "a" * 300 + "  b" * 50


def test_a_long_text_is_encoded_in_parts(tokenizer, monkeypatch):
    """Equal to the library on the whole text, and to itself in any batch."""
    chance = random.Random(1)
    text = " ".join("".join(chance.choices(SIGNS, k=5)) for _ in range(20_000))
    called = []
    encode_in_parts = TextTokenizer._encode_in_parts
    monkeypatch.setattr(TextTokenizer, "_encode_in_parts", lambda *given: called.append(1) or encode_in_parts(*given))
    assert tokenizer.encode_batch(["short", text]) == [whole(tokenizer, "short"), whole(tokenizer, text)]
    assert called


def test_only_gpt2s_pretokenizer_is_cut(tokenizer):
    assert is_cut_at_spaces(tokenizer._core)
    core = tokenizers.Tokenizer(models.BPE())
    assert not is_cut_at_spaces(core)
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    assert is_cut_at_spaces(core)
    core.normalizer = normalizers.NFC()
    assert not is_cut_at_spaces(core)
    core.normalizer = None
    core.add_tokens(["new york"])  # spans a space
    assert not is_cut_at_spaces(core)
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)  # would prepend a space to each part
    assert not is_cut_at_spaces(core)
