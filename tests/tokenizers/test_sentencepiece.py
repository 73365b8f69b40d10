"""SentencePiece tokenizers: ids of a vocab.json or of the model itself, words for alignments, language codes."""

import io
import json

import pytest
import sentencepiece

from regard.errors import FolderError, InputError
from regard.tokenizers.sentencepiece import SentencePieceTokenizer
from regard.tokenizers.words import split_words
from tests.attack.translators import UNKNOWN, piece, spiece_model

TEXTS = ["the cat sat on the mat", "the cats are walking and talking", "¿dónde está el gato? está en la casa"] * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pieces")
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=made, vocab_size=60, minloglevel=2, hard_vocab_limit=False
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(made.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    pieces = [model.id_to_piece(number) for number in range(3, model.get_piece_size())]
    names = ["</s>", "<unk>", ">>spa<<", *pieces, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    return folder


@pytest.fixture(scope="module")
def names(folder):
    return SentencePieceTokenizer.from_folder(folder)


def test_decode_undoes_encode(names):
    for text in TEXTS[:3]:
        ids = names.encode(text)
        assert names.decode([names.bos_id, *ids, names.eos_id]) == text
        assert max(ids) < names.pad_id == names.vocab_size - 1


def test_a_language_in_front_is_one_token(names):
    ids = names.encode(">>spa<< the cat")
    assert ids[0] == 2
    assert names.decode(ids[1:]) == "the cat"
    with pytest.raises(InputError, match=">>sp<< is no language of this model; the nearest are >>spa<<"):
        names.encode(">>sp<< the cat")


def test_text_that_utf8_cannot_write_is_the_users_mistake(names):
    with pytest.raises(InputError, match="surrogate"):
        names.encode("caf\udce9")


def test_what_has_no_piece_is_unknown(names):
    assert names.decode(names.encode("the 猫")).split() == ["the", "⁇"]


def test_every_token_knows_its_word(names):
    text = "¿dónde está el gato? the cats"
    ids = [*names.encode(text), names.eos_id]
    words = names.word_ids(ids)
    assert words[-1] == -1
    owners = [word for word in words if word >= 0]
    assert owners == sorted(owners)
    assert max(owners) < len(split_words(text))
    assert len(names.token_labels(ids)) == len(ids)
    assert names.token_labels(ids)[-1] == "</s>"
    for number, word in enumerate(split_words(text)):
        mine = "".join(names.decode([i]) for i, of in zip(ids, words, strict=True) if of == number)
        assert not mine or word.startswith(mine.strip()[:1]) or mine.strip().startswith(word)


def test_files_are_those_it_was_read_from(names, folder, tmp_path):
    for name, content in names.to_files().items():
        (tmp_path / name).write_bytes(content)
    again = SentencePieceTokenizer.from_folder(tmp_path)
    assert again.encode(TEXTS[0]) == names.encode(TEXTS[0])
    assert (tmp_path / "source.spm").read_bytes() == (folder / "source.spm").read_bytes()


def test_a_vocabulary_of_other_things_is_refused(folder, tmp_path):
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    for broken in ("[]", '{"</s>": "zero"}', '{"</s>": -1}', "nothing"):
        (tmp_path / "vocab.json").write_text(broken)
        with pytest.raises(FolderError, match="vocab.json"):
            SentencePieceTokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.prove)])
def test_a_model_cut_off_at_any_place_is_refused(folder, names, every):
    whole = (folder / "source.spm").read_bytes()
    for size in range(0, len(whole), every):
        with pytest.raises(FolderError, match="is truncated|cannot be read as a SentencePiece model"):
            SentencePieceTokenizer(whole[:size], names.vocab)


def test_a_cut_between_two_pieces_is_named(folder, names, tmp_path):
    for name, content in names.to_files().items():
        (tmp_path / name).write_bytes(content)
    whole = (folder / "source.spm").read_bytes()
    place = 0
    for _ in range(20):  # a piece is its tag, its size, itself
        place += 2 + whole[place + 1]
    (tmp_path / "source.spm").write_bytes(whole[:place])
    with pytest.raises(FolderError, match=r"source.spm is truncated.*; copy it again"):
        SentencePieceTokenizer.from_folder(tmp_path)


def test_a_model_file_alone_numbers_its_own_tokens(tmp_path):
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=made,
        vocab_size=60,
        minloglevel=2,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
    )
    path = tmp_path / "spiece.model"
    path.write_bytes(made.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    tokenizer = SentencePieceTokenizer.load_model(path, ["<extra_id_1>", "<extra_id_0>"])
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id, tokenizer.bos_id) == (0, 1, 2, 0)
    assert tokenizer.vocab_size == model.get_piece_size() + 2
    assert tokenizer.vocab["<extra_id_0>"] == tokenizer.vocab_size - 1
    for text in [*TEXTS[:3], "the 猫"]:
        assert tokenizer.encode(text) == model.encode(text)
    assert tokenizer.decode([*tokenizer.encode(TEXTS[0]), 1, 0, 0]) == TEXTS[0]
    assert tokenizer.to_files() == {"spiece.model": made.getvalue()}


def test_a_model_file_without_a_pad_token_is_refused(folder, tmp_path):
    with pytest.raises(FolderError, match=r"source\.spm has no <pad>; .*; copy it again"):
        SentencePieceTokenizer.load_model(folder / "source.spm")


@pytest.mark.parametrize("vocab", [None, {"<pad>": 0, "</s>": 1, "<unk>": 2}])
def test_a_token_that_is_not_utf_8_is_refused(vocab):
    with pytest.raises(FolderError, match="is damaged: a token is not UTF-8"):
        SentencePieceTokenizer(spiece_model(piece("<unk>", UNKNOWN) + piece(b"\xff")), vocab)
