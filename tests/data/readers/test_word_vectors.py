"""Files of word vectors: what they hold comes back exactly, and every fault is one line that says where."""

import gzip
import struct

import numpy as np
import pytest

from regard.data.readers.word_vectors import WordVectors, read_vectors, write_vectors
from regard.errors import DataError, InputError

GLOVE = "the 0.5 -1.25 3\n, 1e-2 2 -.5\n. . . 7 8 9\n1984 1 2 3\nniño 4 5 6\n"
WORDS = ["the", ",", ". . .", "1984", "niño"]
NUMBERS = np.array([[0.5, -1.25, 3], [0.01, 2, -0.5], [7, 8, 9], [1, 2, 3], [4, 5, 6]], np.float32)


def binary(rows, header=None, line_end=b"\n"):
    """What word2vec writes; gensim writes it without the line ends."""
    body = b"".join(word.encode() + b" " + struct.pack("<3f", *row) + line_end for word, row in rows)
    return (header or f"{len(rows)} 3\n").encode() + body


ROWS = list(zip(WORDS[:2] + WORDS[3:], NUMBERS[[0, 1, 3, 4]].tolist(), strict=True))  # a binary word ends at a space


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", GLOVE.encode()),
        ("glove.txt.gz", gzip.compress(GLOVE.encode(), mtime=0)),
        ("vectors.vec", b"5 3\n" + GLOVE.replace("\n", " \n").encode()),  # word2vec ends each line with a space
        ("vectors.txt.gz", gzip.compress(b"5 3\n" + GLOVE.encode(), mtime=0)),
        ("dos.txt", b"\xef\xbb\xbf" + GLOVE.replace("\n", "\r\n").encode()),
        ("tabs.txt", GLOVE.replace("the ", "the\t").encode()),
    ],
)
def test_text_is_read_as_it_is(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    found = read_vectors(tmp_path / name)
    assert found.words == WORDS
    assert found.matrix.dtype == np.float32
    np.testing.assert_array_equal(found.matrix, NUMBERS)
    assert found.rows["niño"] == 4


@pytest.mark.parametrize("line_end", [b"\n", b""])
@pytest.mark.parametrize("name", ["vectors.bin", "vectors.bin.gz"])
def test_binary_is_read_as_it_is(tmp_path, name, line_end):
    content = binary(ROWS, line_end=line_end)
    (tmp_path / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith("gz") else content)
    found = read_vectors(tmp_path / name)
    assert found.words == [word for word, _ in ROWS]
    np.testing.assert_array_equal(found.matrix, NUMBERS[[0, 1, 3, 4]])


def test_the_first_of_the_same_words_counts_and_the_others_are_counted(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\na 5 6\nb 7 8\nc 9 9\n")
    found = read_vectors(tmp_path / "v.txt")
    assert (found.words, found.repeated) == (["a", "b", "c"], 2)
    np.testing.assert_array_equal(found.matrix, [[1, 2], [3, 4], [9, 9]])


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin"])
def test_only_the_first_so_many_are_read_and_the_rest_is_not_looked_at(tmp_path, name):
    content = {
        "v.txt": b"the 1 2 3\nof 4 5 6\nbroken line\n",
        "v.vec": b"999 3\nthe 1 2 3\nof 4 5 6\nbroken line\n",
        "v.bin": binary([("the", [1, 2, 3]), ("of", [4, 5, 6])], "999 3\n") + b"broken",
    }[name]
    (tmp_path / name).write_bytes(content)
    found = read_vectors(tmp_path / name, most=2)
    assert found.words == ["the", "of"]
    np.testing.assert_array_equal(found.matrix, [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(InputError, match="wanted 1 or more"):
        read_vectors(tmp_path / name, most=0)


def test_only_chosen_words_are_kept(tmp_path):
    (tmp_path / "v.txt").write_text(GLOVE, encoding="utf-8")
    found = read_vectors(tmp_path / "v.txt", only={"niño", "the", "nowhere"})
    assert found.words == ["the", "niño"]
    np.testing.assert_array_equal(found.matrix, NUMBERS[[0, 4]])
    assert read_vectors(tmp_path / "v.txt", only=set()).words == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 3\n", "v.txt:2: got 1 columns after the word, wanted 2 numbers"),
        (b"a 1 2\nb 3 4 5\n", "v.txt:2: got 3 columns after the word, wanted 2 numbers"),
        (b"a 1 2\n3 4\n", "v.txt:2: got 1 columns after the word, wanted 2 numbers"),
        (b"a 1 2\nb 3 x\n", "v.txt:2: got 'x', wanted a word and 2 numbers"),
        (b"a 1 2\nb 1_0 2\n", "v.txt:2: got '1_0', wanted a word and 2 numbers"),
        (b"a 1 2\n\nb nan 4\n", "v.txt:3: 'b' has a number that is not finite"),
        (b"a 1 2\nb inf 4\n", "v.txt:2: 'b' has a number that is not finite"),
        (b"a 1 2\nb 1e39 4\n", "v.txt:2: 'b' has a number that is not finite in 32 bits"),
        (b"a 1 2\n\xff\xfe 3 4\n", "v.txt:2: the word b'\\xff\\xfe' is not UTF-8"),
        (b"2 2\na 1 2\nb 3\n", "v.txt:3: got 1 columns"),
        (b"3 2\na 1 2\nb 3 4\n", "the header says 3 words and there are 2; truncated?"),
        (b"1 2\na 1 2\nb 3 4\n", "the header says 1 words and there are 2"),
        (b"1000000000000 2\na 1 2\n", "the header says 1,000,000,000,000 words and there are 1"),
        (b"2 1000000000000\na 1 2\n", "v.txt:1: the header says vectors of 1,000,000,000,000 numbers"),
        (b"2 0\na\n", "v.txt:1: the header says vectors of 0 numbers"),
        (b"", "no vectors"),
        (b"\n\n", "no vectors"),
        (b"0 3\n", "no vectors"),
        (b"once upon a time\n", "v.txt:1: got 'time', wanted a word and 1 numbers"),
        (b"a 1 2\n" + b"b" * 1_000_100, "v.txt:2: the line has more than 1,000,000 bytes"),
    ],
)
def test_a_fault_of_a_text_is_one_line(tmp_path, content, message):
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_vectors(tmp_path / "v.txt")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the 1 2 3\n", "does not begin with two numbers"),
        (b"", "does not begin with two numbers"),
        (binary(ROWS)[:-6], "word 4 is truncated"),
        (binary(ROWS, "1000000000000 3\n"), "the header says 1,000,000,000,000 words and there are 4"),
        (binary(ROWS, "4 1000000000000\n"), "the header says vectors of 1,000,000,000,000 numbers"),
        (b"1 3\n" + b"x" * 5000, "word 1 has more than 4,096 bytes"),
        (binary([("a", [1, 2, float("nan")])]), "word 1: 'a' has a number that is not finite"),
        (b"1 3\n\xff " + bytes(12), "word 1: the word b'\\xff' is not UTF-8"),
        (b"1 3\n " + bytes(12), "word 1 is empty"),
    ],
)
def test_a_fault_of_a_binary_file_is_one_line(tmp_path, content, message):
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(DataError) as error:
        read_vectors(tmp_path / "v.bin")
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["v.txt.gz", "v.bin.gz"])
def test_a_packed_file_that_is_cut_off_is_named(tmp_path, name):
    content = GLOVE.encode() * 50 if name == "v.txt.gz" else binary(ROWS)
    (tmp_path / name).write_bytes(gzip.compress(content, mtime=0)[:-12])
    with pytest.raises(DataError, match="damaged or truncated after"):
        read_vectors(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_vectors(tmp_path / "v.txt")


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_what_is_written_is_read_again_to_the_bit(tmp_path, name):
    """Numbers of every size: random bits, but for those that are no number or nearly zero."""
    bits = np.random.default_rng(1).integers(0, 2**32, 40_000, dtype=np.uint32).view(np.float32)
    matrix = bits[np.isfinite(bits) & (np.abs(bits) >= np.finfo(np.float32).tiny)][:30_000].reshape(3, -1)
    write_vectors(tmp_path / name, WordVectors([". . .", "niño", "5"], matrix))
    found = read_vectors(tmp_path / name)
    assert found.words == [". . .", "niño", "5"]
    np.testing.assert_array_equal(found.matrix, matrix)


@pytest.mark.parametrize("word", ["", " a", "a\nb", "a 5", "a\n"])
def test_a_word_that_would_not_come_back_is_refused_and_nothing_is_left(tmp_path, word):
    with pytest.raises(InputError, match="would be read back differently"):
        write_vectors(tmp_path / "v.txt", WordVectors([word], np.zeros((1, 2), np.float32)))
    assert list(tmp_path.iterdir()) == []


def test_vectors_are_written_as_text_alone(tmp_path):
    with pytest.raises(InputError, match="written as text"):
        write_vectors(tmp_path / "v.bin", WordVectors(["a"], np.zeros((1, 2), np.float32)))
