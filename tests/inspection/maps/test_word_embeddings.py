"""A model's table as word vectors: the rows that are words, under the names people use."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as Core
from tokenizers import decoders, models
from torch.testing import assert_close

from regard.errors import InputError
from regard.inspection.maps.neighbors import word_embeddings
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.text import TextTokenizer
from regard.tokenizers.words import single_token_words
from tests.contracts.examples import CAUSAL_LM, SEQ2SEQ, named


@pytest.mark.parametrize("example", [*SEQ2SEQ, *CAUSAL_LM], ids=named)
def test_every_model_says_where_its_words_are_looked_up(example):
    model = example.model()
    rows, width = model.input_embeddings.shape
    assert rows == 40
    ids = torch.tensor([[5]])
    before = model.embedding(ids)
    with torch.no_grad():
        model.input_embeddings[5] += 1
    assert_close(model.embedding(ids) - before, torch.full((1, 1, width), model.embedding.scale))


def test_words_are_those_with_the_space_before_them():
    tokens = [b"", b" walk", b"ing", b"walk", b" don't", b" ,", b",", b" ", b" ni\xc3\xb1o", b" \xc3", b" a b", b" 42"]
    words = [None, "walk", None, None, "don't", None, None, None, "niño", None, None, "42"]
    assert single_token_words(tokens) == words


def test_where_no_token_has_a_space_all_but_parts_and_signs_are_words():
    assert single_token_words([b"walk", b"##ing", b"[CLS]", b"", b".", b"_"]) == ["walk", None, None, None, None, None]


def test_a_trained_tokenizer_names_its_words():
    names = BPETokenizer.train(["the cat sat on the mat, the cat"] * 9, 300, whole_words=6).single_token_words()
    assert {"the", "cat", "sat", "mat"} <= {name for name in names if name}
    assert names[0] is None
    assert names[-1] is None
    plain = TextTokenizer.train(["the cat sat on the mat"] * 9, 300)
    assert {"cat", "sat", "mat"} <= set(plain.single_token_words())
    assert plain.single_token_words()[plain.eos_id] is None
    assert len(plain.single_token_words()) == plain.vocab_size


def test_of_characters_every_letter_is_a_word():
    letters = TextTokenizer.characters(["a cat, no?"])
    assert [name for name in letters.single_token_words() if name] == ["a", "c", "n", "o", "t"]


def test_word_pieces_are_told_from_words():
    core = Core(models.WordPiece({"[UNK]": 0, "walk": 1, "##ing": 2, "[CLS]": 3}, unk_token="[UNK]"))
    core.decoder = decoders.WordPiece()
    core.add_special_tokens(["[UNK]", "[CLS]"])
    assert TextTokenizer(core).single_token_words() == [None, "walk", None, None]


def test_the_table_has_the_named_rows_and_the_first_of_each_name():
    weight = torch.arange(12.0).reshape(6, 2)
    found = word_embeddings(weight, [None, "a", "b", None, "a"])  # a table may have more rows than tokens
    assert found.words == ["a", "b"]
    np.testing.assert_array_equal(found.matrix, [[2, 3], [4, 5]])
    weight[1] = 99
    np.testing.assert_array_equal(found.matrix[0], [2, 3])


def test_a_table_without_words_is_refused():
    with pytest.raises(InputError, match="none of the 2 tokens"):
        word_embeddings(torch.zeros(2, 2), [None, None])
