"""The tokenizer: nothing is unknown, nothing is lost, and every token knows its word."""

import json
import os
import subprocess
import sys
import unicodedata

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, trainers

from regard.errors import ConfigError, FolderError, InputError
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.words import split_words, whitespace_word_ids

TEXTS = [
    "The cat sat on the mat.",
    "The cats are sitting on the mats, walking and talking.",
    "¿Qué estás haciendo? Estoy haciendo café.",
    "¿Dónde está el gato? El gato está en la casa.",
] * 3

# Property tests cannot take fixtures.
SMALL = BPETokenizer.train(TEXTS, 300)
BYTEWISE = BPETokenizer.train([], 259)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab \n\t\x00é🙂e\u0301</s>¿", max_size=20)


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer.train(TEXTS, 400)


def without_first_space(text: str) -> str:
    return unicodedata.normalize("NFC", text.removeprefix(" "))


def test_specials_have_their_places(tokenizer):
    last = tokenizer.vocab_size - 1
    assert (tokenizer.eos_id, tokenizer.pad_id, tokenizer.bos_id) == (0, last, last)
    assert tokenizer.token_labels([0, 1, last]) == ["</s>", "<unk>", "<pad>"]
    assert tokenizer.decode([last, 1, 0]) == ""


def test_other_readers_of_the_file_close_and_decode_a_sentence_as_we_do(tokenizer):
    core = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    ids = core.encode("the cat").ids
    assert ids == [*tokenizer.encode("the cat"), tokenizer.eos_id]
    assert core.decode(ids, skip_special_tokens=True) == "the cat"


def test_size_is_at_most_what_was_asked():
    assert BPETokenizer.train(TEXTS, 270).vocab_size == 270
    assert BPETokenizer.train(TEXTS, 259).vocab_size == 259
    assert 259 < BPETokenizer.train(TEXTS, 100_000).vocab_size < 1000
    with pytest.raises(ConfigError, match="vocabulary of 258 .* at least 259"):
        BPETokenizer.train(TEXTS, 258)


@settings(deadline=None)
@given(ANY_TEXT)
def test_decode_undoes_encode(text):
    ids = SMALL.encode(text)
    assert unicodedata.normalize("NFC", SMALL.decode(ids)) == without_first_space(text)
    assert all(2 <= number < SMALL.pad_id for number in ids)


@settings(deadline=None)
@given(st.lists(ANY_TEXT, max_size=5))
def test_many_at_once_equal_one_by_one(texts):
    assert SMALL.encode_batch(texts) == [SMALL.encode(text) for text in texts]


def test_the_commonest_words_stay_whole():
    tokenizer = BPETokenizer.train(TEXTS, 330, whole_words=60)
    assert len(tokenizer.encode("The cats sitting haciendo")) == 4
    merged = BPETokenizer.train(TEXTS, tokenizer.vocab_size)  # as many tokens, but some are steps on the way to a word
    assert len(merged.encode("The cats sitting haciendo")) > 4
    for text in (*TEXTS, "unheard-of 🙂"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert BPETokenizer.train(iter(TEXTS), 330, whole_words=60).to_json() == tokenizer.to_json()


def test_normalizes_to_composed_letters(tokenizer):
    assert tokenizer.encode("cafe\u0301") == tokenizer.encode("café")
    assert tokenizer.decode(tokenizer.encode("cafe\u0301")) == "café"


def test_first_word_is_the_same_token_as_later(tokenizer):
    assert tokenizer.encode("cat cat")[0] == tokenizer.encode("cat cat")[-1]


@pytest.mark.parametrize("special", ["<pad>", "<unk>", "</s>"])
def test_a_typed_special_is_ordinary_text(tokenizer, special, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_json())
    for each in (tokenizer, BPETokenizer.load(tmp_path / "tokenizer.json")):
        ids = each.encode(f"the cat {special} sat")
        assert not {tokenizer.eos_id, 1, tokenizer.pad_id} & set(ids)
        assert each.decode(ids) == f"the cat {special} sat"


def test_decode_leaves_specials_out_and_survives_half_a_character(tokenizer):
    ids = tokenizer.encode("the cat")
    assert tokenizer.decode([tokenizer.bos_id, *ids, 0, tokenizer.pad_id]) == "the cat"
    smile = tokenizer.encode("a 🙂")
    assert tokenizer.decode(smile[:-1]) == "a \ufffd"


def test_text_that_utf8_cannot_write_is_the_users_mistake(tokenizer):
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode("a\ud800b")
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode_batch(["fine", "a\ud800b"])
    with pytest.raises(TypeError):
        tokenizer.encode(7)


def test_split_words():
    assert split_words("¿Qué tal, Tom?") == ["¿", "Qué", "tal", ",", "Tom", "?"]
    assert split_words("don't  stop...\n") == ["don", "'", "t", "stop", ".", ".", "."]
    assert split_words(" \n") == []


def test_words_between_spaces():
    assert whitespace_word_ids("¿Qué tal, Tom?") == [0, 0, 1, 1, 2, 2]
    assert whitespace_word_ids("  a  b ") == [0, 1]


def test_words_of_tokens(tokenizer):
    ids = [tokenizer.bos_id, *tokenizer.encode("¿Dónde está el gatito? The walkings"), tokenizer.eos_id]
    words = tokenizer.word_ids(ids)
    names = split_words(tokenizer.decode(ids))
    assert words[0] == words[-1] == -1
    for number, word in enumerate(names):
        mine = [i for i, of in zip(ids, words, strict=True) if of == number]
        assert tokenizer.decode(mine) == word


def test_words_of_two_word_tokens_and_spaces():
    tokenizer = BPETokenizer.train(["I don't know, I don't"] * 5, 400)
    ids = tokenizer.encode("I don't")
    assert tokenizer.token_labels(ids) == ["I", "don", "'t"]
    assert tokenizer.word_ids(ids) == [0, 1, 2]  # 't is the words ' and t: it belongs to the first
    ids = tokenizer.encode("I   I  ")
    assert tokenizer.decode(ids) == "I   I  "
    assert set(tokenizer.word_ids(ids)) == {0, 1}
    assert tokenizer.word_ids(ids)[-1] == 1
    assert tokenizer.word_ids(tokenizer.encode("  ")) == [-1] * len(tokenizer.encode("  "))
    assert tokenizer.word_ids([]) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, SMALL.vocab_size - 1), max_size=30))
def test_words_go_up_and_stay_inside_the_text(ids):
    words = [word for word in SMALL.word_ids(ids) if word >= 0]
    assert words == sorted(words)
    assert max(words, default=-1) < len(split_words(SMALL.decode(ids)))
    assert len(SMALL.token_labels(ids)) == len(ids)


@settings(deadline=None)
@given(ANY_TEXT)
def test_words_of_single_characters_are_exact(text):
    """With one token a byte, a byte's word is that of the character it is part of."""
    bytewise = BYTEWISE.encode(text)
    decoded = BYTEWISE.decode(bytewise)
    seen = [word for word in dict.fromkeys(BYTEWISE.word_ids(bytewise)) if word >= 0]
    assert seen == list(range(len(split_words(decoded))))


def test_words_after_half_a_character():
    half, letter = BYTEWISE.encode("€")[1], BYTEWISE.encode("a")[-1]
    assert BYTEWISE.decode([half, letter]) == "\ufffda"
    assert BYTEWISE.word_ids([half, letter]) == [0, 1]


def test_pieces_tell_a_beginning_from_a_going_on():
    tokenizer = BPETokenizer.train(["walk walk talk talk ing ing"] * 3, 300)
    ids = tokenizer.encode("walking walk\n")
    pieces = tokenizer.token_labels(ids)
    assert pieces[0] == "walk"
    assert all(piece.startswith("·") for piece in pieces[1 : pieces.index("walk", 1)])
    assert pieces[-1] == "·\\n"
    assert tokenizer.token_labels(tokenizer.encode("é"))[-1] == "·\\xa9"
    assert tokenizer.token_labels(tokenizer.encode("  walk"))[0] == "␣"


def test_same_texts_same_tokenizer(tokenizer):
    assert BPETokenizer.train(iter(TEXTS), 400).to_json() == tokenizer.to_json()


@pytest.mark.parametrize(("seed", "threads"), [("1", "1"), ("2", "4")])
def test_same_tokenizer_in_every_process(tokenizer, seed, threads):
    code = (
        "import sys, json; from regard.tokenizers.bpe import BPETokenizer\n"
        "sys.stdout.buffer.write(BPETokenizer.train(json.load(sys.stdin), 400).to_json().encode())"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(TEXTS).encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads},
    )
    assert child.stdout.decode() == tokenizer.to_json()
    assert child.stderr == b""


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json())
    loaded = BPETokenizer.load(str(path))
    assert loaded.to_json() == tokenizer.to_json()
    assert loaded.vocab_size == tokenizer.vocab_size
    assert loaded.encode(TEXTS[2]) == tokenizer.encode(TEXTS[2])
    assert tokenizers.Tokenizer.from_file(str(path)).get_vocab_size() == tokenizer.vocab_size


def test_padding_and_truncation_in_the_file_do_not_count(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    core = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    core.enable_padding()
    core.enable_truncation(2)
    core.save(str(path))
    texts = [TEXTS[0], "a"]
    assert BPETokenizer.load(path).encode_batch(texts) == tokenizer.encode_batch(texts)


@pytest.mark.parametrize("damage", ["cut", "empty", "not json", "other json", "not text", "missing", "folder"])
def test_damaged_file_is_one_line_with_its_name(tokenizer, tmp_path, damage):
    path = tmp_path / "tokenizer.json"
    whole = tokenizer.to_json().encode()
    match damage:
        case "folder":
            path.mkdir()
        case "missing":
            pass
        case _:
            contents = {"cut": whole[:500], "empty": b"", "not json": b"hello", "other json": b"{}"}
            path.write_bytes(contents.get(damage, b"\xff\xfe\x00"))
    with pytest.raises(FolderError) as caught:
        BPETokenizer.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_foreign_tokenizers_are_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    core = tokenizers.Tokenizer(models.BPE())
    core.train_from_iterator(TEXTS, trainers.BpeTrainer(show_progress=False))
    core.save(str(path))
    with pytest.raises(FolderError, match="wanted .*<pad>"):
        BPETokenizer.load(path)
    core = tokenizers.Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(show_progress=False, special_tokens=["</s>", "<unk>"])
    core.train_from_iterator(["日本"], trainer)
    core.add_special_tokens(["<pad>"])
    core.save(str(path))
    with pytest.raises(FolderError, match="byte-level"):
        BPETokenizer.load(path)
