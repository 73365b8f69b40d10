"""Token streams on disk: what goes in comes out; they are there whole or not at all, and checked when opened."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.chunking import TextChunk
from regard.data.stores.cache import cached
from regard.data.stores.token_stream import TokenStream
from regard.errors import DataError

PIECES = [TextChunk("abc", is_last=False), TextChunk("de"), TextChunk("f"), TextChunk("ghé")]
ROW = [97, 98, 99, 100, 101, 0, 102, 0, 103, 104, 233, 0]


def encode_batch(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


def build(folder, pieces=PIECES, end=0, **settings) -> TokenStream:
    return TokenStream.build(pieces, encode_batch, end, folder, **{"vocab_size": 300, "shard": 5} | settings)


def test_what_goes_in_comes_out(tmp_path):
    for stream in (build(tmp_path / "a"), TokenStream.open(tmp_path / "a")):
        assert len(stream) == len(ROW)
        assert stream.tokens(0, 12).tolist() == ROW
        assert stream.documents == 3
        assert stream.text_bytes == len("abcdefghé".encode())
        assert stream.document_of(np.arange(12)).tolist() == [0] * 6 + [1] * 2 + [2] * 4
        assert stream.tokens(1, 3).dtype == np.uint16
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {"00000.ids", "00001.ids", "00002.ids", "documents.offsets", "index.json"}
    assert (tmp_path / "a" / "00002.ids").stat().st_size == 2 * 2
    index = json.loads((tmp_path / "a" / "index.json").read_text())
    assert (index["tokens"], index["documents"], index["text_bytes"], index["dtype"]) == (12, 3, 10, "<u2")


@given(
    documents=st.lists(st.lists(st.text("abc", max_size=4), min_size=1, max_size=3), max_size=6),
    block=st.integers(1, 9),
    shard=st.integers(1, 9),
    end=st.none() | st.just(7),
    data=st.data(),
)
@settings(max_examples=50, deadline=None)
def test_any_documents_in_any_blocks_and_files(tmp_path_factory, documents, block, shard, end, data):
    pieces = [TextChunk(text, is_last=i == len(texts) - 1) for texts in documents for i, text in enumerate(texts)]
    stream = build(tmp_path_factory.mktemp("any") / "a", iter(pieces), end, block=block, shard=shard)
    closing = [] if end is None else [end]
    rows = [encode_batch(["".join(texts)])[0] + closing for texts in documents]
    row = [number for document in rows for number in document]
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(row))] * 2)))
    assert stream.tokens(start, stop).tolist() == row[start:stop]
    assert stream.tokens(0, len(stream)).tolist() == row
    assert stream.documents == len(documents)
    numbers = [i for i, document in enumerate(rows) for _ in document]
    assert stream.document_of(np.arange(len(row))).tolist() == numbers


def test_no_end_behind_a_document_that_was_cut(tmp_path):
    pieces = [TextChunk("ab", is_truncated=True), TextChunk("c"), TextChunk("d", is_last=False)]
    stream = build(tmp_path / "a", pieces)
    assert stream.tokens(0, 5).tolist() == [97, 98, 99, 0, 100]
    assert stream.documents == 3
    assert stream.document_of(np.array([1, 2, 4])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_no_more_room_than_they_need(tmp_path, size, dtype):
    stream = TokenStream.build(
        [TextChunk("a")], lambda texts: [[size - 1] for _ in texts], None, tmp_path / "a", vocab_size=size
    )
    assert stream.tokens(0, 1).dtype == dtype
    assert stream.tokens(0, 1).tolist() == [size - 1]


def test_an_id_outside_the_vocabulary_is_not_folded(tmp_path):
    with pytest.raises(OverflowError):
        TokenStream.build(
            [TextChunk("a")], lambda texts: [[65_536] for _ in texts], None, tmp_path / "a", vocab_size=300
        )
    assert list(tmp_path.iterdir()) == []


def test_many_pieces_are_tokenized_together_and_never_all(tmp_path):
    blocks = []

    def counting(texts):
        blocks.append(len(texts))
        return encode_batch(texts)

    TokenStream.build([TextChunk("abc")] * 10, counting, 0, tmp_path / "a", vocab_size=300, block=9)
    assert blocks == [3, 3, 3, 1]


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 13), (3, 2)])
def test_no_tokens_outside(tmp_path, start, stop):
    with pytest.raises(IndexError):
        build(tmp_path / "a").tokens(start, stop)


def test_a_stopped_build_leaves_nothing(tmp_path):
    def interrupted():
        yield from PIECES
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "a", interrupted(), block=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["00000.ids", "00002.ids", "documents.offsets", "index.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_damage_names_the_file(tmp_path, name, damage):
    build(tmp_path / "a")
    path = tmp_path / "a" / name
    raw = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(raw[:-1])
        case "flipped":
            path.write_bytes(bytes([raw[0] ^ 1]) + raw[1:])
        case "missing":
            path.unlink()
    with pytest.raises(DataError) as caught:
        TokenStream.open(tmp_path / "a")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"shard": 0}, {"tokens": 99}, {"tokens": "x"}, {"what": "tokenized pairs"}])
def test_a_foreign_index_is_refused(tmp_path, change):
    build(tmp_path / "a")
    path = tmp_path / "a" / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=r"index\.json: cannot be read as the index of a token stream"):
        TokenStream.open(tmp_path / "a")


def test_it_goes_into_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    for _ in range(2):
        assert cached("key", build, TokenStream.open).tokens(0, 12).tolist() == ROW
    (tmp_path / "key" / "00001.ids").write_bytes(b"")
    assert cached("key", build, TokenStream.open).tokens(0, 12).tolist() == ROW
