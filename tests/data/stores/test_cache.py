"""The cache mends itself, and several processes may use it at the same time."""

import logging
import multiprocessing
import shutil

import pytest

from regard.data.stores.cache import cache_folder, cached, changed_since, content_key, fingerprint
from regard.data.stores.pairs import TokenizedPairs
from regard.errors import DataError

PAIRS = [("ab", "xyz"), ("", "q"), ("abcdef", "")]


def encode_batch(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


def as_texts(pairs: TokenizedPairs) -> list[tuple[str, ...]]:
    return [tuple("".join(map(chr, side)) for side in pairs[i]) for i in range(len(pairs))]


def build(folder):
    return TokenizedPairs.build(PAIRS, encode_batch, folder, vocab_size=300)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_cache_builds_once(cache):
    built = []

    def counted(folder):
        built.append(folder)
        return build(folder)

    assert as_texts(cached("key", counted, TokenizedPairs.open)) == PAIRS
    assert as_texts(cached("key", counted, TokenizedPairs.open)) == PAIRS
    assert built == [cache / "key"]


def test_an_entry_without_anything_in_it_is_found_too(cache):
    def empty(folder):
        return TokenizedPairs.build([], encode_batch, folder, vocab_size=300)

    for _ in range(2):
        assert len(cached("key", empty, TokenizedPairs.open)) == 0


def test_damaged_cache_entry_is_built_again_with_one_warning(cache, caplog):
    cached("key", build, TokenizedPairs.open)
    (cache / "key" / "source.ids").write_bytes(b"")
    with caplog.at_level(logging.WARNING, "regard"):
        assert as_texts(cached("key", build, TokenizedPairs.open)) == PAIRS
    assert len(caplog.records) == 1
    assert "source.ids" in caplog.text
    assert [path.name for path in cache.iterdir()] == ["key"]
    caplog.clear()
    cached("key", build, TokenizedPairs.open)
    assert not caplog.records


def test_damaged_cache_entry_that_another_process_removes_first(cache):
    class Remover(logging.Handler):
        def emit(self, record):
            shutil.rmtree(cache / "key")

    cached("key", build, TokenizedPairs.open)
    (cache / "key" / "source.ids").write_bytes(b"")
    handler = Remover()
    logging.getLogger("regard").addHandler(handler)
    try:
        assert as_texts(cached("key", build, TokenizedPairs.open)) == PAIRS
    finally:
        logging.getLogger("regard").removeHandler(handler)


def test_the_slower_of_two_builders_takes_the_work_of_the_faster(cache):
    def overtaken(folder):
        def pairs():
            yield from PAIRS
            build(folder)  # another process finishes first

        return TokenizedPairs.build(pairs(), encode_batch, folder, vocab_size=300)

    assert as_texts(cached("key", overtaken, TokenizedPairs.open)) == PAIRS
    assert [path.name for path in cache.iterdir()] == ["key"]


def _child(barrier, results) -> None:
    barrier.wait(250)
    results.put(as_texts(cached("key", build, TokenizedPairs.open)))


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_at_the_same_time_all_end_well(cache, damaged):
    if damaged:
        cached("key", build, TokenizedPairs.open)
        (cache / "key" / "target.offsets").write_bytes(b"")
    context = multiprocessing.get_context("forkserver")
    barrier, results = context.Barrier(3), context.Queue()
    children = [context.Process(target=_child, args=(barrier, results)) for _ in range(3)]
    for child in children:
        child.start()
    assert [results.get(timeout=250) for _ in children] == [PAIRS] * 3
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert [path.name for path in cache.iterdir()] == ["key"]


def test_cache_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="set REGARD_CACHE"):
        cached("key", build, TokenizedPairs.open)


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


def test_a_fingerprint_is_of_what_a_file_or_pattern_holds(tmp_path):
    one = tmp_path / "a.txt"
    one.write_text("a")
    before = fingerprint(one), fingerprint(tmp_path / "*.txt")
    assert changed_since([one, tmp_path / "*.txt"], before) == []
    one.write_text("other")
    assert changed_since([one, tmp_path / "*.txt"], before) == [one, tmp_path / "*.txt"]
    (tmp_path / "b.txt").write_text("new")
    one.write_text("a")
    assert changed_since([one, tmp_path / "*.txt"], before) == [tmp_path / "*.txt"]


def test_what_is_not_known_has_not_changed(tmp_path):
    one = tmp_path / "a.txt"
    one.write_text("a")
    assert changed_since([one], []) == changed_since([one], [None]) == []
    before = [fingerprint(one)]
    one.unlink()
    assert fingerprint(one) is None
    assert changed_since([one], before) == []


def test_a_folder_is_known_by_names_and_sizes_but_for_what_is_made_in_it(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(b"1")
    before = fingerprint(tmp_path)
    for made in ("runs/x/run.json", "runs/x/checkpoints/step-1/model.bin", "out/MANIFEST.json", ".hidden/a", ".b"):
        (tmp_path / made).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / made).write_bytes(b"1")
    assert fingerprint(tmp_path) == before
    (tmp_path / "pictures" / "a.png").write_bytes(b"12")
    assert fingerprint(tmp_path) != before
    (tmp_path / "pictures" / "a.png").write_bytes(b"1")
    (tmp_path / "pictures" / "a.png").rename(tmp_path / "pictures" / "b.png")
    assert fingerprint(tmp_path) != before
    (tmp_path / "pictures" / "b.png").rename(tmp_path / "pictures" / "a.png")
    assert fingerprint(tmp_path) == before


def test_a_file_is_digested_once(tmp_path, monkeypatch):
    one = tmp_path / "a.txt"
    one.write_text("a")
    fingerprint(one)
    monkeypatch.setattr("regard.data.stores.cache.digest", None)
    assert content_key([one], b"", {})
