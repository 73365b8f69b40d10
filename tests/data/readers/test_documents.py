"""Reading documents: every format gives the same text, nothing is changed, every bad file is one line."""

import builtins
import gzip
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from regard.data import chunking as cutting
from regard.data.chunking import TextChunk, chunk_stream
from regard.data.readers import documents
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import expand_patterns, read_documents
from regard.errors import DataError

TEXTS = ["Call me Ishmael.\n\nSome years ago", "  Çà et là 🙂\t\n", "a"]


def write(path: Path, raw: bytes) -> Path:
    packers = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    path.write_bytes(packers.get(path.suffix.lower(), bytes)(raw))
    return path


def write_lines(path: Path, *values: object) -> Path:
    return write(path, "".join(json.dumps(value) + "\n" for value in values).encode())


def write_column(path: Path, values: list, name="text", kind=None) -> Path:
    pq.write_table(pa.table({"id": list(range(len(values))), name: pa.array(values, kind)}), path)
    return path


def read(*paths, on_error="stop", report=None, field="text") -> list[str]:
    """The documents whole."""
    found = [""]
    for piece in read_documents(paths, field=field, on_error=on_error, report=report or BadRows()):
        found[-1] += piece.text
        found += [""] * piece.is_last
    assert found.pop() == "", "the last document is closed"
    return found


def failure(*paths, **settings) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_format_gives_the_same_text(tmp_path, packing):
    files = [write(tmp_path / f"{i}.txt{packing}", text.encode()) for i, text in enumerate(TEXTS)]
    assert read(*files) == TEXTS
    assert read(write_lines(tmp_path / f"a.jsonl{packing}", *({"id": 3, "text": text} for text in TEXTS))) == TEXTS
    assert read(write_lines(tmp_path / "B.JSONL", *({"body": text} for text in TEXTS)), field="body") == TEXTS
    assert read(write_column(tmp_path / "a.parquet", TEXTS)) == TEXTS


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_text_column(tmp_path, kind):
    assert read(write_column(tmp_path / "a.parquet", TEXTS, kind=kind)) == TEXTS


def test_line_ends_become_one_and_a_bom_is_dropped(tmp_path):
    raw = b"\xef\xbb\xbfone\r\ntwo\rthree\n\xef\xbb\xbf\r\n"
    assert read(write(tmp_path / "a.md", raw)) == ["one\ntwo\rthree\n\ufeff\n"]
    assert read(write_lines(tmp_path / "a.jsonl", {"text": "a\r\nb"})) == ["a\nb"]
    assert read(write(tmp_path / "b.txt", b"a\r")) == ["a\r"]


def test_empty_documents_blank_lines_and_empty_files_among_others_are_no_text(tmp_path):
    lines = write(tmp_path / "a.jsonl", b'{"text": ""}\n\n{"text": "x"}\n  \n')
    assert read(write(tmp_path / "a.txt", b""), lines) == ["x"]


@settings(max_examples=60, deadline=None)
@example(text="ab\r\ncd\r\n", chunk=3)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.text("\r\naé🙂\ufeff"),
    chunk=st.integers(3, 9),
)
def test_reading_in_chunks_of_any_size_changes_nothing(tmp_path_factory, text, chunk):
    path = write(tmp_path_factory.mktemp("any") / "a.txt", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "CHUNK_CHARACTERS", chunk)
        got = "".join(documents._read_text(path))
    assert got == text.removeprefix("\ufeff").replace("\r\n", "\n")


WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("ab1.' \n\r\t\u00a0\u2028\x1cé'st", max_size=30) | st.text(max_size=12)),
    st.integers(2, 12),
)
def test_pieces_have_the_words_of_the_whole(chunks, size):
    text = "".join(chunks).encode("utf-8", "replace").decode()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("CHUNK_CHARACTERS", size),
            ("MAX_WITHOUT_NEWLINE", 2 * size),
            ("MAX_WITHOUT_SPACE", 10**6),
        ):
            patch.setattr(cutting, name, value)
        pieces = list(chunk_stream(iter([text[:7], text[7:20], text[20:]])))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True] * bool(pieces)
    parts = [word for piece in pieces for word, _ in WORDS.pre_tokenize_str(piece.text)]
    assert parts == [word for word, _ in WORDS.pre_tokenize_str(text)]


def test_where_pieces_are_cut(monkeypatch):
    for name, value in (("CHUNK_CHARACTERS", 8), ("MAX_WITHOUT_NEWLINE", 16), ("MAX_WITHOUT_SPACE", 40)):
        monkeypatch.setattr(cutting, name, value)

    def cut(text: str) -> list[str]:
        return [piece.text for piece in chunk_stream([text])]

    assert cut("abc\ndef\ng") == ["abc\ndef\n", "g"]  # behind the last line end that stands alone
    assert cut("abc\n\ndef\n g h i") == ["abc\n\ndef\n g h i"]  # none does, and it is not long yet
    assert cut("abc\n\ndef  ghij k lmno") == ["abc\n\ndef  ghij", " k lmno"]
    assert cut("x" * 90) == ["x" * 40, "x" * 40, "x" * 10]  # no place at all


def test_a_large_file_is_streamed(tmp_path):
    line = "It was the best of times, it was the worst of times.\n"
    path = write(tmp_path / "a.txt.gz", line.encode() * 600_000)  # 32 MB
    tracemalloc.start()
    lengths = [len(piece.text) for piece in read_documents([path], report=BadRows())]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(lengths) == len(line) * 600_000
    assert max(lengths) <= 2 << 20
    assert peak < 16 << 20


def test_a_long_line_is_a_document_in_pieces(tmp_path):
    text = "word " * 700_000
    pieces = list(read_documents([write_lines(tmp_path / "a.jsonl", {"text": text})], report=BadRows()))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert len(pieces) > 1


def test_patterns_mean_what_they_match_in_order(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "c.md", "deep/er/d.txt", ".hidden.txt"):
        (tmp_path / name).write_text(name)
    assert read(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert read(str(tmp_path / "**" / "*.txt")) == ["a.txt", "b.txt", "deep/er/d.txt"]
    assert read(tmp_path / "c.md", tmp_path / "[ab].txt") == ["c.md", "a.txt", "b.txt"]
    (tmp_path / "[ab].txt").write_text("itself")
    assert read(tmp_path / "[ab].txt") == ["itself"]  # a file of that name goes before the pattern


def test_files_that_cannot_be_read_at_all(tmp_path):
    assert "no such file" in failure(tmp_path / "no.txt")
    assert "no such file" in failure(tmp_path / "no.jsonl")
    assert "no such file" in failure(tmp_path / "no.parquet")
    assert "matches no file" in failure(tmp_path / "*.txt")
    assert f"{tmp_path}: the folder has no .txt" in failure(tmp_path)
    assert "got no files" in failure()
    assert expand_patterns([tmp_path / "no.txt"]) == [tmp_path / "no.txt"]


def test_no_text_at_all_is_an_error(tmp_path):
    files = [write(tmp_path / name, b"") for name in ("a.txt", "b.jsonl", "c.txt", "d.txt")]
    assert failure(files[0]).startswith(f"{files[0]}: no text at all")
    assert "and 1 more: no text at all" in failure(*files)
    assert "no text at all" in failure(write(tmp_path / "bom.txt", b"\xef\xbb\xbf"))
    assert "no text at all" in failure(write_lines(tmp_path / "e.jsonl", 7), on_error="skip")


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"abc\0def", "byte 3 (from 0) is 0x00"),
        (b"\xef\xbb\xbfab\xff", "byte 5 (from 0) is 0xff"),
        ("é".encode() * 700_000 + b"\xe9t\xe9", "byte 1,400,000 (from 0) is 0xe9"),
        ("é".encode() * 700_000 + b"\xc3", "byte 1,400,000 (from 0) is 0xc3"),
        (b"x" * (1 << 20) + b"yz\0", "byte 1,048,578 (from 0) is 0x00"),
        ("Grüße".encode("utf-16"), "byte 3 (from 0) is 0x00"),
    ],
)
def test_what_is_no_text_is_an_error_with_its_place(tmp_path, raw, said, on_error):
    path = write(tmp_path / "a.txt.gz", raw)
    assert failure(path, on_error=on_error).startswith(
        f"{path}: {said}, so this is not UTF-8 text; convert it to UTF-8"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1]", 'wrong JSON: got an array, wanted an object: {"text": "..."}'),
        (b"{", "bad JSON: "),
        (b"[" * 100_000, "bad JSON: "),
        (b'{"body": "x", "id": 1}', "no field: no 'text' among its fields (body, id); data.field="),
        (b'{"text": null}', "wrong field: 'text' is null, wanted text"),
        (b'{"text": true}', "wrong field: 'text' is a truth value, wanted text"),
        (b'{"text": "ab\\ud800"}', "bad character: a lone surrogate at character 3 of 'text'"),
        (b'{"text": "\xff"}', "invalid UTF-8: byte 11 of the line is 0xff"),
    ],
)
def test_a_bad_line_is_named_or_left_out(tmp_path, line, said):
    path = write(tmp_path / "a.jsonl", b'{"text": "one"}\n\n' + line + b'\n{"text": "two"}\n')
    assert failure(path).startswith(f"{path}:3: {said}")
    assert "data.on_error=skip" in failure(path)
    report = BadRows()
    assert read(path, on_error="skip", report=report) == ["one", "two"]
    assert report.count == 1
    assert said in report.summary()[1]


def test_too_long_a_line_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 40)
    path = write_lines(tmp_path / "a.jsonl", {"text": "x" * 50}, {"text": "y"})
    assert "the line has more than 40 bytes" in failure(path)
    assert read(path, on_error="skip") == ["y"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_cut_file_is_an_error(tmp_path, name, packing):
    path = write_lines(tmp_path / f"{name}{packing}", *({"text": str(number)} for number in range(3000)))
    path.write_bytes(path.read_bytes()[:-20])
    assert f"{path}: damaged or truncated after " in failure(path, on_error="skip")
    write(tmp_path / "plain", b"no packed text").rename(path)
    assert "damaged or truncated after 0" in failure(path)


def test_bad_parquet(tmp_path):
    path = write_column(tmp_path / "a.parquet", ["a", None, "b"])
    assert failure(path).startswith(f"{path}:2: no text: ")
    assert read(path, on_error="skip") == ["a", "b"]
    assert failure(path, field="body").startswith(f"{path}: has no column 'body', only id, text; give one")
    assert "column 'id' holds int64, wanted text" in failure(path, field="id")
    path.write_bytes(path.read_bytes()[:-30])
    assert f"{path}: cannot be read as Parquet (" in failure(path)
    write(tmp_path / "a.parquet", b"")
    assert f"{path}: cannot be read as Parquet (" in failure(path)
    assert "decompress the file" in failure(write(tmp_path / "a.parquet.gz", b"x"))


def test_a_row_that_is_no_utf8_costs_only_itself(tmp_path):
    raw = pa.array([b"a", b"\xff", b"b"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    assert "invalid UTF-8" in failure(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", on_error="skip") == ["a", "b"]


def test_without_pyarrow_one_line_says_what_to_install(tmp_path, monkeypatch):
    path = write_column(tmp_path / "a.parquet", TEXTS)
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'regard[parquet]'" in failure(path)


def test_a_piece_closes_its_document_unless_it_says_otherwise():
    assert TextChunk("x") == TextChunk("x", is_last=True, is_truncated=False)


@pytest.mark.parametrize("text", [" " * 50, "\n\n\n", " \t\r\n\x0b\u00a0\u3000\n"])
def test_white_space_alone_is_no_text(tmp_path, text):
    (tmp_path / "blank.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"blank.txt: no text at all"):
        list(read_documents([tmp_path / "blank.txt"], report=BadRows()))
