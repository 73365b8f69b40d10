"""WordPiece: what `transformers` reads and cuts, ours reads and cuts; folders open on both sides."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from regard.errors import ConfigError, FolderError, InputError
from regard.tokenizers.wordpiece import WordPieceTokenizer, truncated_lengths

SYMBOLS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    "the",
    "cat",
    "##s",
    "sat",
    "walk",
    "##ing",
    "##ed",
    "The",
    "Cat",
    "é",
    "e",
    "cafe",
    "café",
    "caf",
    "##é",
    "##e",
]
WORDS += ["中", "国", "a", "##b", ",", ".", "'", "[", "]", "mask", "MASK"]
TEXTS = [
    "The cats sat, walking.",
    "Café cafe CAFÉ e é",
    "中国the cat中",
    "x" * 101 + " the",
    "abbb " + "a" + "b" * 99 + " a" + "b" * 100,
    "",
    "  \t\n ",
    "unheard-of words [MASK] [SEP] \u200b\x00 the",
]
ANY_TEXT = st.text("abcetTh é中.,'[] \n") | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
STORY = ["The old captain walked home before dawn.", "Nobody was walking, nobody sang; señora Núñez waited."] * 5


def write_vocabulary(folder: Path, facts: dict | None = None, pieces=(*SYMBOLS, *WORDS)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    if facts is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    return folder


CLEANINGS = {
    "uncased": {"do_lower_case": True},
    "cased": {"do_lower_case": False},
    "accents kept": {"do_lower_case": True, "strip_accents": False},
    "accents gone, cased": {"do_lower_case": False, "strip_accents": True},
    "Chinese joined": {"do_lower_case": True, "tokenize_chinese_chars": False},
}


@pytest.fixture(scope="module", params=CLEANINGS)
def both(request, tmp_path_factory):
    """Ours and theirs, opened from the same vocab.txt."""
    facts = {"tokenizer_class": "BertTokenizer", **CLEANINGS[request.param]}
    folder = write_vocabulary(tmp_path_factory.mktemp("vocab_size"), facts)
    return WordPieceTokenizer.from_folder(folder), transformers.BertTokenizerFast.from_pretrained(folder)


def as_theirs(theirs, *texts, **settings):
    """What they make of texts in which symbols are text, which ours are by default."""
    return theirs(*texts, split_special_tokens=True, **settings)


@pytest.mark.parametrize("text", TEXTS)
def test_one_text_is_read_as_theirs(both, text):
    ours, theirs = both
    wanted = as_theirs(theirs, text, return_offsets_mapping=True)
    found = ours.encode(text)
    assert found.ids == wanted["input_ids"]
    assert found.segment_ids == wanted["token_type_ids"]
    assert found.word_ids == wanted.word_ids()
    assert found.offsets == wanted["offset_mapping"]
    assert found.num_truncated == 0
    assert ours.encode_ids(text) == found.ids[1:-1]
    assert ours.encode(text, parse_special_tokens=True).ids == theirs(text)["input_ids"]
    assert ours.decode(found.ids) == theirs.decode(found.ids, skip_special_tokens=True)


@given(first=ANY_TEXT, second=ANY_TEXT.filter(len), longest=st.integers(3, 20))
@settings(max_examples=60, deadline=None)
def test_two_texts_are_cut_as_theirs(both, first, second, longest):
    ours, theirs = both
    found = ours.encode(first, second, max_length=longest)
    wanted = as_theirs(theirs, first, second, truncation=True, max_length=longest, return_offsets_mapping=True)
    assert (found.ids, found.segment_ids, found.word_ids, found.offsets) == (
        wanted["input_ids"],
        wanted["token_type_ids"],
        wanted.word_ids(),
        wanted["offset_mapping"],
    )
    assert found.num_truncated == len(ours.encode(first, second).ids) - len(found.ids)
    alone = ours.encode(first, max_length=longest)
    assert alone.ids == as_theirs(theirs, first, truncation=True, max_length=longest)["input_ids"]


@given(first=st.integers(0, 30), second=st.integers(0, 30), room=st.integers(0, 60))
def test_the_longer_text_gives_way_first(first, second, room):
    one, other = truncated_lengths(first, second, room)
    assert one <= first
    assert other <= second
    assert one + other == min(first + second, room)
    if one < first and other < second:
        assert abs(one - other) <= 1
    elif one < first:
        assert one >= other - 1
    elif other < second:
        assert other >= one - 1


def test_words_given_apart_are_counted_as_given(both):
    ours, theirs = both
    words = ["The", "cats,", "", "walking", "unheard", "sat."]
    found = ours.encode_words(words, max_length=9)
    wanted = as_theirs(theirs, words, is_split_into_words=True, truncation=True, max_length=9)
    assert found.ids == wanted["input_ids"]
    assert found.word_ids == wanted.word_ids()
    assert found.num_truncated > 0
    assert {number for number in ours.encode_words(words).word_ids if number is not None} == {0, 1, 3, 4, 5}


def test_many_texts_are_each_as_alone(both):
    ours, _ = both
    seconds = TEXTS[::-1]
    assert ours.encode_batch(TEXTS, max_length=7) == [ours.encode(text, max_length=7) for text in TEXTS]
    pairs = zip(TEXTS, seconds, strict=True)
    assert ours.encode_batch(TEXTS, seconds, max_length=7) == [ours.encode(*pair, max_length=7) for pair in pairs]
    assert ours.encode_batch([]) == []
    assert ours.encode_ids_batch(TEXTS) == [ours.encode_ids(text) for text in TEXTS]


def test_a_folder_written_here_opens_there_and_encodes_equally(both, tmp_path):
    ours, _ = both
    for name, content in ours.to_files().items():
        (tmp_path / name).write_bytes(content)
    for theirs in (
        transformers.AutoTokenizer.from_pretrained(tmp_path),
        transformers.BertTokenizerFast.from_pretrained(tmp_path),
    ):
        for text in TEXTS:
            assert theirs(text)["input_ids"] == ours.encode(text, parse_special_tokens=True).ids
            pair = theirs(text, "the cats", truncation=True, max_length=6)
            found = ours.encode(text, "the cats", max_length=6, parse_special_tokens=True)
            assert (pair["input_ids"], pair["token_type_ids"]) == (found.ids, found.segment_ids)
        assert theirs.mask_token_id == ours.mask_id
        assert theirs.pad_token_id == ours.pad_id
    for again in (WordPieceTokenizer.from_folder(tmp_path), WordPieceTokenizer.load_saved(tmp_path)):
        assert again.to_json() == ours.to_json()
        assert again.to_files() == ours.to_files()
        assert again.cased == ours.cased


def test_a_word_is_the_longest_pieces_from_its_front():
    ours = WordPieceTokenizer.train(STORY, 120)
    assert ours.token_labels(ours.encode("walking").ids)[0] == "[CLS]"
    text = "walking nobody"
    found = ours.encode(text)
    spelled = "".join(name.removeprefix("·") for name in ours.token_labels(found.ids[1:-1]))
    assert spelled == text.replace(" ", "")
    assert ours.token_labels([ours.token_to_id("w"), ours.token_to_id("##g"), ours.eos_id]) == ["w", "·g", "[SEP]"]
    assert ours.decode(found.ids) == text
    assert ours.is_continuation[ours.token_to_id("##g")]
    assert not ours.is_continuation[ours.token_to_id("w")]


def test_training():
    ours = WordPieceTokenizer.train(iter(STORY), 120)
    assert (ours.pad_id, ours.unk_id, ours.bos_id, ours.eos_id, ours.mask_id) == (0, 1, 2, 3, 4)
    assert ours.special_ids == (0, 1, 2, 3, 4)
    assert ours.vocab_size <= 120
    assert WordPieceTokenizer.train(STORY, 64).vocab_size <= 64
    assert not ours.cased
    assert ours.unk_id not in ours.encode("SENORA NUNEZ walked").ids
    cased = WordPieceTokenizer.train(STORY, 120, cased=True)
    assert cased.cased
    assert cased.encode("The").ids != cased.encode("the").ids
    assert cased.unk_id not in cased.encode("Núñez").ids
    assert cased.unk_id in cased.encode("Nunez ZZ").ids
    with pytest.raises(ConfigError, match="vocabulary of 63; wanted at least 64"):
        WordPieceTokenizer.train(STORY, 63)
    longer = WordPieceTokenizer.train(["walking talking walked talked " * 10], 1000)
    assert longer.token_labels(longer.encode("walking").ids) == ["[CLS]", "walking", "[SEP]"]


def test_the_same_texts_the_same_tokenizer_in_every_process():
    code = (
        "import hashlib; from regard.tokenizers.wordpiece import WordPieceTokenizer;"
        "from regard.tokenizers import wordpiece, text;"
        "texts = [open(module.__file__).read() for module in (wordpiece, text)];"
        "print(hashlib.sha256(WordPieceTokenizer.train(texts, 400).to_json().encode()).hexdigest())"
    )
    found = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(3)}
    assert len(found) == 1


def test_rare_characters_do_not_fill_the_vocabulary():
    rare = "".join(map(chr, range(0x430, 0x437)))
    ours = WordPieceTokenizer.train(["walking home " * 8_000, rare], 80)
    assert ours.vocab_size < 80
    assert ours.encode(rare[0]).ids[1] == ours.unk_id
    assert ours.unk_id not in ours.encode("walking home").ids


@pytest.mark.parametrize("missing", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
def test_a_symbol_that_is_missing_is_named(tmp_path, missing):
    pieces = [piece for piece in [*SYMBOLS, *WORDS] if piece != missing]
    with pytest.raises(FolderError, match=rf"its \w+_token '\{missing}' is not in its vocabulary"):
        WordPieceTokenizer.from_folder(write_vocabulary(tmp_path, None, pieces))


def test_no_mask_is_no_mistake(tmp_path):
    pieces = [piece for piece in [*SYMBOLS, *WORDS] if piece != "[MASK]"]
    ours = WordPieceTokenizer.from_folder(write_vocabulary(tmp_path, {}, pieces))
    assert ours.mask_id is None
    assert "mask_token" not in json.loads(ours.to_files()["tokenizer_config.json"])


def test_symbols_of_other_names(tmp_path):
    pieces = ["<p>", "<u>", "<c>", "<s>", "<m>", "the"]
    names = {"unk_token": "<u>", "cls_token": {"content": "<c>"}, "sep_token": "<s>", "mask_token": "<m>"}
    folder = write_vocabulary(tmp_path, names, pieces)
    (folder / "special_tokens_map.json").write_text('{"pad_token": "<p>", "cls_token": "the"}')
    ours = WordPieceTokenizer.from_folder(folder)
    assert (ours.pad_id, ours.unk_id, ours.bos_id, ours.eos_id, ours.mask_id) == (0, 1, 2, 3, 4)
    assert ours.encode("the cat", "the").ids == [2, 5, 1, 3, 5, 3]


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FolderError, match=r"has no tokenizer; wanted tokenizer\.json or vocab\.txt"):
        WordPieceTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(FolderError, match=r"tokenizer\.json: cannot be read as a tokenizer\.json"):
        WordPieceTokenizer.from_folder(tmp_path)
    foreign = tokenizers.Tokenizer(models.BPE())
    with pytest.raises(FolderError, match=r"its pad_token .\[PAD\]. is not in its vocabulary"):
        WordPieceTokenizer.load(foreign.to_str().encode())
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(FolderError, match=r"vocab\.txt: cannot be read as a vocabulary"):
        WordPieceTokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("cased", [False, True])
def test_a_vocabulary_alone_is_read_as_theirs(tmp_path, cased):
    path = write_vocabulary(tmp_path) / "vocab.txt"
    ours = WordPieceTokenizer.load(path, cased=cased)
    theirs = transformers.BertTokenizerFast(vocab=str(path), do_lower_case=not cased)
    assert ours.cased == cased
    for text in TEXTS:
        found, wanted = ours.encode(text, "The cat"), as_theirs(theirs, text, "The cat")
        assert (found.ids, found.segment_ids) == (wanted["input_ids"], wanted["token_type_ids"])
    assert WordPieceTokenizer.load(str(path)).to_json() == WordPieceTokenizer.load(path, cased=False).to_json()


def test_a_vocabulary_that_is_none_is_named(tmp_path):
    with pytest.raises(FolderError, match=r"none\.txt: cannot be read as a vocabulary"):
        WordPieceTokenizer.load(tmp_path / "none.txt")
    (tmp_path / "words.txt").write_text("the\ncat\n")
    with pytest.raises(FolderError, match=r"words\.txt: its pad_token '\[PAD\]' is not in its vocabulary"):
        WordPieceTokenizer.load(tmp_path / "words.txt")


def test_half_a_character_is_a_mistake():
    ours = WordPieceTokenizer.train(STORY, 100)
    for mistaken in (lambda: ours.encode("a\ud800"), lambda: ours.encode_words(["a\ud800"])):
        with pytest.raises(InputError, match="surrogate"):
            mistaken()


def test_load_reads_what_to_json_writes(tmp_path):
    ours = WordPieceTokenizer.train(STORY, 100)
    path = tmp_path / "tokenizer.json"
    path.write_text(ours.to_json(), encoding="utf-8")
    assert (
        WordPieceTokenizer.load(path).to_json()
        == WordPieceTokenizer.load(path.read_bytes()).to_json()
        == ours.to_json()
    )
