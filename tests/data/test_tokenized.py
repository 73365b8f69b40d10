"""Tokenized pairs on disk: whole or not there, checked when opened, and a cache that mends itself."""

import json
import logging
import multiprocessing
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data.tokenized import TokenizedPairs, cache_folder, cached, content_key
from regard.errors import DataError

PAIRS = [("ab", "xyz"), ("", "q"), ("abcdef", "")]


def encode_all(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


def as_texts(pairs: TokenizedPairs) -> list[tuple[str, ...]]:
    return [tuple("".join(map(chr, side)) for side in pairs[i]) for i in range(len(pairs))]


def build(folder):
    return TokenizedPairs.build(PAIRS, encode_all, folder, size=300)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
    built = TokenizedPairs.build(iter(pairs), encode_all, folder, size=300, block=block)
    assert as_texts(built) == pairs


@pytest.mark.parametrize(("size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_no_more_room_than_they_need(tmp_path, size, dtype):
    pairs = TokenizedPairs.build([("a", "b")], lambda texts: [[size - 1] for _ in texts], tmp_path / "a", size=size)
    assert pairs[0][0].dtype == dtype
    assert pairs[0][1].tolist() == [size - 1]


def test_an_id_outside_the_vocabulary_is_not_folded(tmp_path):
    with pytest.raises(OverflowError):
        TokenizedPairs.build([("a", "b")], lambda texts: [[65_536] for _ in texts], tmp_path / "a", size=300)
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
        TokenizedPairs.build(interrupted(), encode_all, tmp_path / "a", size=300, block=2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_never_overwritten(tmp_path):
    build(tmp_path / "a")
    with pytest.raises(DataError, match="already there"):
        TokenizedPairs.build([("other", "pairs")], encode_all, tmp_path / "a", size=300)
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


@pytest.mark.parametrize("index", ["[]", "{}", '{"layout": 1, "files": [], "dtype": "<u2"}', "7"])
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


def test_cache_builds_once(cache):
    built = []

    def counted(folder):
        built.append(folder)
        return build(folder)

    assert as_texts(cached("key", counted)) == PAIRS
    assert as_texts(cached("key", counted)) == PAIRS
    assert built == [cache / "key"]


def test_damaged_cache_entry_is_built_again_with_one_warning(cache, caplog):
    cached("key", build)
    (cache / "key" / "source.ids").write_bytes(b"")
    with caplog.at_level(logging.WARNING, "regard"):
        assert as_texts(cached("key", build)) == PAIRS
    assert len(caplog.records) == 1
    assert "source.ids" in caplog.text
    assert [path.name for path in cache.iterdir()] == ["key"]
    caplog.clear()
    cached("key", build)
    assert not caplog.records


def test_damaged_cache_entry_that_another_process_removes_first(cache):
    class Remover(logging.Handler):
        def emit(self, record):
            shutil.rmtree(cache / "key")

    cached("key", build)
    (cache / "key" / "source.ids").write_bytes(b"")
    handler = Remover()
    logging.getLogger("regard").addHandler(handler)
    try:
        assert as_texts(cached("key", build)) == PAIRS
    finally:
        logging.getLogger("regard").removeHandler(handler)


def test_the_slower_of_two_builders_takes_the_work_of_the_faster(cache):
    def overtaken(folder):
        def pairs():
            yield from PAIRS
            build(folder)  # another process finishes first

        return TokenizedPairs.build(pairs(), encode_all, folder, size=300)

    assert as_texts(cached("key", overtaken)) == PAIRS
    assert [path.name for path in cache.iterdir()] == ["key"]


def _child(barrier, results) -> None:
    barrier.wait(60)
    results.put(as_texts(cached("key", build)))


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_at_the_same_time_all_end_well(cache, damaged):
    if damaged:
        cached("key", build)
        (cache / "key" / "target.offsets").write_bytes(b"")
    context = multiprocessing.get_context("forkserver")
    barrier, results = context.Barrier(3), context.Queue()
    children = [context.Process(target=_child, args=(barrier, results)) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=60) for _ in children] == [PAIRS] * 3
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert [path.name for path in cache.iterdir()] == ["key"]


def test_cache_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="set REGARD_CACHE"):
        cached("key", build)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("REGARD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "regard"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "regard"
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "y"))
    assert cache_folder() == tmp_path / "y"


def test_key_follows_the_contents_and_nothing_else(tmp_path):
    one, copy, other = tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "c.tsv"
    one.write_text("a\tb")
    copy.write_text("a\tb")
    other.write_text("a\tc")
    same = content_key([one], b"tokenizer", {"longest": 3, "on_error": "stop"})
    assert same == content_key([copy], b"tokenizer", {"on_error": "stop", "longest": 3})
    different = {
        content_key([other], b"tokenizer", {"longest": 3, "on_error": "stop"}),
        content_key([one, one], b"tokenizer", {"longest": 3, "on_error": "stop"}),
        content_key([one], b"tokenize", {"longest": 3, "on_error": "stop"}),
        content_key([one], b"tokenizer", {"longest": 4, "on_error": "stop"}),
        content_key([one.rename(tmp_path / "a.jsonl")], b"tokenizer", {"longest": 3, "on_error": "stop"}),
    }
    assert len(different - {same}) == 5
