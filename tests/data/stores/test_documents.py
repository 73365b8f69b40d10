"""Tokenized documents on disk: what was written is read, empty ones left out, damage found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.chunking import TextChunk
from regard.data.stores import documents as tokenized_documents
from regard.data.stores.documents import TokenizedDocuments
from regard.errors import DataError


def encode_batch(texts):
    return [[ord(character) for character in text if character != "-"] for text in texts]


def as_lists(found: TokenizedDocuments) -> list[list[list[int]]]:
    return [
        [found.ids[found.sentences[i] : found.sentences[i + 1]].tolist() for i in range(start, stop)]
        for start, stop in zip(found.documents, found.documents[1:], strict=False)
    ]


@given(
    texts=st.lists(st.lists(st.text("ab-\n", max_size=6), min_size=1, max_size=3), max_size=6),
    closed=st.booleans(),
    block=st.sampled_from([1, 3, 100]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read(tmp_path_factory, texts, closed, block):
    """A document comes in pieces; a sentence or a document without ids is left out."""
    folder = tmp_path_factory.mktemp("documents") / "one"
    pieces = [
        TextChunk(text, is_last=place == len(document) - 1 and (closed or document is not texts[-1]))
        for document in texts
        for place, text in enumerate(document)
    ]
    before, tokenized_documents.BLOCK = tokenized_documents.BLOCK, block
    try:
        built = TokenizedDocuments.build(pieces, encode_batch, folder, vocab_size=200)
    finally:
        tokenized_documents.BLOCK = before
    wanted = [encode_batch(line for text in document for line in text.split("\n")) for document in texts]
    wanted = [[ids for ids in document if ids] for document in wanted]
    wanted = [document for document in wanted if document]
    for found in (built, TokenizedDocuments.open(folder), TokenizedDocuments.of(wanted)):
        assert as_lists(found) == wanted
        assert len(found) == len(wanted)


@pytest.mark.parametrize(("size", "width"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_an_id_takes_two_bytes_or_four(tmp_path, size, width):
    found = TokenizedDocuments.build(
        [TextChunk("a\nb")], lambda texts: [[size - 1] for _ in texts], tmp_path / "x", vocab_size=size
    )
    assert found.ids.tolist() == [size - 1] * 2
    assert found.ids.dtype.itemsize == width


@pytest.mark.parametrize("name", ["pieces.ids", "sentences.offsets", "documents.offsets"])
def test_damage_is_found(tmp_path, name):
    folder = tmp_path / "documents"
    TokenizedDocuments.build([TextChunk("ab\nc"), TextChunk("d")], encode_batch, folder, vocab_size=200)
    raw = bytearray((folder / name).read_bytes())
    raw[0] ^= 1
    (folder / name).write_bytes(raw)
    with pytest.raises(DataError, match=f"{name}: was changed or damaged"):
        TokenizedDocuments.open(folder)


def test_the_files_are_mapped_not_read(tmp_path):
    found = TokenizedDocuments.build([TextChunk("ab\nc")], encode_batch, tmp_path / "x", vocab_size=200)
    for array in (found.ids, found.sentences, found.documents):
        assert isinstance(array.base, np.memmap)
