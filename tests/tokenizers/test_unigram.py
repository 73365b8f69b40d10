"""Unigram tokenizers from a tokenizer.json and from the SentencePiece model it was converted from: the same ids."""

import io

import pytest
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from regard.errors import FolderError
from regard.tokenizers.bpe import BPETokenizer
from regard.tokenizers.sentencepiece import SentencePieceTokenizer
from regard.tokenizers.unigram import UnigramTokenizer

TEXTS = ["the cat sat on the mat", "the cats are walking and talking", "¿dónde está el gato? está en la casa"] * 20
SENTINELS = [f"<extra_id_{number}>" for number in reversed(range(3))]


@pytest.fixture(scope="module")
def model():
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=made,
        vocab_size=60,
        minloglevel=2,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
    )
    return made.getvalue()


@pytest.fixture(scope="module")
def content(model):
    """As Hugging Face converts it."""
    own = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocab = [(own.id_to_piece(number), own.get_score(number)) for number in range(own.get_piece_size())]
    vocab += [(sentinel, 0.0) for sentinel in SENTINELS]
    core = tokenizers.Tokenizer(models.Unigram(vocab, unk_id=2))
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    core.add_special_tokens(["<pad>", "</s>", "<unk>", *SENTINELS])
    core.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return core.to_str()


def unigram(content):
    return UnigramTokenizer(tokenizers.Tokenizer.from_str(content), content.encode())


@pytest.fixture(scope="module", params=["spiece.model", "tokenizer.json"])
def tokenizer(request, model, content):
    if request.param == "tokenizer.json":
        return unigram(content)
    return SentencePieceTokenizer(model, extra_tokens=SENTINELS)


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS[:3],
        "  the   cat ",
        "the 猫猫 cat",
        "a <extra_id_0> b",
        "the<extra_id_2>cat <extra_id_1>",
        "<extra_id_0><extra_id_1>",
        "the </s> cat<pad>",
        "<unk>",
        "",
    ],
)
def test_both_forms_give_the_same_ids(model, content, text):
    ours, other = unigram(content), SentencePieceTokenizer(model, extra_tokens=SENTINELS)
    ids = ours.encode(text)
    assert ids == other.encode(text)
    assert ours.vocab == other.vocab
    assert ours.decode(ids) == other.decode(ids)
    assert ours.token_labels(ids) == other.token_labels(ids)
    assert ours.word_ids(ids) == other.word_ids(ids)


def test_decode_undoes_encode(tokenizer):
    for text in [*TEXTS[:3], "the<extra_id_0> cat"]:
        assert tokenizer.decode([*tokenizer.encode(text), 1, 0]) == text


def test_a_sentinel_in_a_text_is_one_token(tokenizer):
    first, _, last = range(tokenizer.vocab_size - 3, tokenizer.vocab_size)
    ids = tokenizer.encode("the <extra_id_2> mat <extra_id_0>")
    assert ids == [*tokenizer.encode("the"), first, *tokenizer.encode("mat"), last]
    assert tokenizer.token_labels([first, last]) == ["<extra_id_2>", "<extra_id_0>"]


@pytest.mark.parametrize("text", ["</s>", "<pad>", "<unk>", "the </s> cat", "猫</s>"])
def test_no_text_spells_a_special_token(tokenizer, text):
    assert not {tokenizer.eos_id, tokenizer.pad_id} & {*tokenizer.encode(text)}


def test_files_are_those_it_was_read_from(tokenizer, model, content):
    (written,) = tokenizer.to_files().items()
    assert written in (("spiece.model", model), ("tokenizer.json", content.encode()))


def test_another_tokenizer_is_refused(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(BPETokenizer.train(TEXTS, 300).to_json())
    with pytest.raises(FolderError, match="tokenizer.json is no Unigram tokenizer"):
        UnigramTokenizer.load(path)
    path.write_text(content[:500])
    with pytest.raises(FolderError, match="tokenizer.json: cannot be read as a tokenizer.json"):
        UnigramTokenizer.load(path)
    path.write_text(content.replace("</s>", "<end>"))
    with pytest.raises(FolderError, match="has no </s>; wanted the tokenizer of a T5 or Marian model; copy it again"):
        UnigramTokenizer.load(path)
    path.unlink()
    with pytest.raises(FolderError, match="tokenizer.json: cannot be read"):
        UnigramTokenizer.load(path)
