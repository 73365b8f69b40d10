"""Tokenized pairs on disk: whole or not there, checked when opened."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data.stores.pairs import TokenizedPairs
from regard.errors import DataError

PAIRS = [("ab", "xyz"), ("", "q"), ("abcdef", "")]


def encode_batch(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


def as_texts(pairs: TokenizedPairs) -> list[tuple[str, ...]]:
    return [tuple("".join(map(chr, side)) for side in pairs[i]) for i in range(len(pairs))]


def build(folder):
    return TokenizedPairs.build(PAIRS, encode_batch, folder, vocab_size=300)


def test_what_goes_in_comes_out(tmp_path):
    for pairs in (build(tmp_path / "a"), TokenizedPairs.open(tmp_path / "a")):
        assert as_texts(pairs) == PAIRS
        assert pairs.source_lengths.tolist() == [2, 0, 6]
        assert pairs.target_lengths.tolist() == [3, 1, 0]
        assert pairs[0][0].dtype == np.uint16
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(*[st.text(st.characters(codec="ascii"), max_size=5)] * 2), max_size=12), st.integers(1, 5))
def test_any_pairs_in_blocks_of_any_size(tmp_path_factory, pairs, block):
    folder = tmp_path_factory.mktemp("any") / "a"
    built = TokenizedPairs.build(iter(pairs), encode_batch, folder, vocab_size=300, block=block)
    assert as_texts(built) == pairs


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_no_more_room_than_they_need(tmp_path, size, dtype):
    pairs = TokenizedPairs.build(
        [("a", "b")], lambda texts: [[size - 1] for _ in texts], tmp_path / "a", vocab_size=size
    )
    assert pairs[0][0].dtype == dtype
    assert pairs[0][1].tolist() == [size - 1]


def test_an_id_outside_the_vocabulary_is_not_folded(tmp_path):
    with pytest.raises(OverflowError):
        TokenizedPairs.build([("a", "b")], lambda texts: [[65_536] for _ in texts], tmp_path / "a", vocab_size=300)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("i", [-1, 3])
def test_no_pair_outside(tmp_path, i):
    with pytest.raises(IndexError):
        build(tmp_path / "a")[i]


def test_views_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="read-only"):
        build(tmp_path / "a")[0][0][0] = 7


def test_a_stopped_build_leaves_nothing(tmp_path):
    def interrupted():
        yield from PAIRS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TokenizedPairs.build(interrupted(), encode_batch, tmp_path / "a", vocab_size=300, block=2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path):
    build(tmp_path / "a")
    with pytest.raises(DataError, match="exists already"):
        TokenizedPairs.build([("other", "pairs")], encode_batch, tmp_path / "a", vocab_size=300)
    assert as_texts(TokenizedPairs.open(tmp_path / "a")) == PAIRS


FILES = ["source.ids", "source.offsets", "target.ids", "target.offsets", "index.json"]


@pytest.mark.parametrize("name", FILES)
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
        TokenizedPairs.open(tmp_path / "a")
    assert str(path) in str(caught.value)
    if damage == "cut" and name != "index.json":
        assert f"got {len(raw) - 1} bytes, wanted {len(raw)}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "index",
    [
        "[]",
        "{}",
        '{"layout": 2, "what": "tokens", "files": {}, "dtype": "<u2"}',
        '{"layout": 2, "what": "tokenized pairs", "files": [], "dtype": "<u2"}',
        "7",
    ],
)
def test_a_foreign_index_is_refused(tmp_path, index):
    build(tmp_path / "a")
    (tmp_path / "a" / "index.json").write_text(index)
    with pytest.raises(DataError, match=r"index\.json"):
        TokenizedPairs.open(tmp_path / "a")


def test_an_index_of_another_layout_is_refused(tmp_path):
    build(tmp_path / "a")
    path = tmp_path / "a" / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layout": 99}))
    with pytest.raises(DataError, match="not the index of this version"):
        TokenizedPairs.open(tmp_path / "a")
