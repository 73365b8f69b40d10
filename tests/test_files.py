"""Folders whole or not at all, and damage found and named."""

import errno
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.errors import FolderError
from regard.files import MANIFEST, read_json, remove_leftovers, verify, write_file, write_files, write_folder

FILES = {"a.json": b'{"x": 1}\n', "b.bin": bytes(range(256))}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    write_folder(path, FILES)
    return path


def test_what_was_written_verifies(folder):
    assert set(verify(folder)) == set(FILES)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MANIFEST} == FILES


def test_a_folder_is_replaced_whole(folder):
    write_folder(folder, {"c": b"new"})
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "c"]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(FILES)), place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found_and_the_file_named(folder, name, place, bit):
    write_folder(folder, FILES)
    data = bytearray(FILES[name])
    data[place % len(data)] ^= 1 << bit
    (folder / name).write_bytes(data)
    with pytest.raises(FolderError, match=f"{name} is damaged.*SHA-256"):
        verify(folder)


@pytest.mark.parametrize("length", [0, 1, 255])
def test_a_truncated_file_is_found(folder, length):
    (folder / "b.bin").write_bytes(FILES["b.bin"][:length])
    with pytest.raises(FolderError, match=f"b.bin is damaged: {length} bytes, the manifest says 256"):
        verify(folder)


def test_a_missing_file_is_found(folder):
    (folder / "a.json").unlink()
    with pytest.raises(FolderError, match=r"a.json is missing"):
        verify(folder)


def test_a_swapped_file_is_found(folder, tmp_path):
    other = tmp_path / "other"
    write_folder(other, {**FILES, "b.bin": bytes(reversed(range(256)))})
    (folder / "b.bin").write_bytes((other / "b.bin").read_bytes())
    with pytest.raises(FolderError, match=r"b.bin is damaged"):
        verify(folder)


@pytest.mark.parametrize(
    "manifest",
    [b"", b"[1]", b"{", b'{"a.json": 3}', b'{"a.json": {"size": 1}}', b'{"../x": {"size": 1, "sha256": ""}}'],
)
def test_a_damaged_manifest_is_found(folder, manifest):
    (folder / MANIFEST).write_bytes(manifest)
    with pytest.raises(FolderError, match=MANIFEST):
        verify(folder)


def test_a_manifest_may_name_a_file_that_no_file_system_has(folder):
    (folder / MANIFEST).write_text(json.dumps({"a" * 300: {"size": 1, "sha256": ""}}))
    with pytest.raises(FolderError, match="a is missing"):
        verify(folder)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"a": ["\\ud800"]}', "is not Unicode text"),
        ('{"\\ud800": 1}', "is not Unicode text"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested more than 100 levels deep"),
        ("[" * 100_000, "maximum recursion depth"),
    ],
)
def test_json_that_nobody_writes_is_refused(tmp_path, content, said):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(FolderError, match=f"a.json cannot be read as JSON: .*{said}"):
        read_json(tmp_path / "a.json")


def test_no_manifest_means_no_model_folder(folder):
    (folder / MANIFEST).unlink()
    with pytest.raises(FolderError, match="it is not a model folder, or saving it did not finish"):
        verify(folder)


@pytest.mark.parametrize("fatal", range(6))
def test_a_crash_at_any_write_leaves_the_old_folder_or_the_new_one(folder, fatal, monkeypatch):
    """Die at the n-th sync: what stands under the name is whole, and what is left over is cleared away."""
    count = iter(range(100))
    real = os.fsync

    def dying(handle):
        if next(count) == fatal:
            raise KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", dying)
    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, {"a.json": b"new", "b.bin": b"new"})
    monkeypatch.undo()
    assert set(verify(folder)) == set(FILES)
    assert (folder / "a.json").read_bytes() in (FILES["a.json"], b"new")
    remove_leftovers(folder.parent)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_more_space_is_not_the_advice_where_there_is_no_place_to_write(tmp_path):
    with pytest.raises(FolderError, match="No such file or directory; choose another folder$"):
        write_file(tmp_path / "nowhere" / "a.html", b"x")


@pytest.mark.parametrize("broken", [OSError(errno.EFBIG, "File too large"), KeyboardInterrupt()])
def test_a_folder_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path, monkeypatch, broken):
    def failing(handle):
        raise broken

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises((FolderError, KeyboardInterrupt)) as told:
        write_folder(tmp_path / "model", FILES)
    assert not list(tmp_path.iterdir())
    if isinstance(broken, OSError):
        assert (
            str(told.value)
            == f"cannot write {tmp_path}/model: File too large; free some space or choose another folder"
        )


@pytest.mark.parametrize("crash", [KeyboardInterrupt, OSError(errno.EIO, "Input/output error")])
@pytest.mark.parametrize("fatal", [0, 1])
def test_a_folder_whose_replacement_is_interrupted_keeps_the_old_content(folder, fatal, crash, monkeypatch):
    """Fail at the n-th rename of a folder: no moment leaves the name without a whole folder for the next start."""
    count = iter(range(100))
    real = os.rename

    def failing(source, target):
        if source.is_dir() and next(count) >= fatal:  # a crash: nothing afterwards succeeds either
            raise crash
        real(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises((KeyboardInterrupt, FolderError, OSError)):
        write_folder(folder, {"c": b"new"})
    monkeypatch.undo()
    remove_leftovers(folder.parent)
    assert set(verify(folder)) == set(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_failed_rename_leaves_the_old_folder_under_its_name(folder, monkeypatch):
    real = os.rename

    def failing(source, target):
        if source.name.startswith(".new-model"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(FolderError, match=f"cannot write {folder}: No space left on device; "):
        write_folder(folder, {"c": b"new"})
    assert set(verify(folder)) == set(FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("fatal", [0, 1, 2])  # renames of the file, the manifest and the folder
def test_a_process_killed_while_it_replaces_an_empty_folder_leaves_it(tmp_path, fatal):
    """A kill, after which nothing is cleaned up: the empty folder stands, and the next write leaves nothing else."""
    folder = tmp_path / "out"
    folder.mkdir()
    if not (child := os.fork()):
        _die_at_rename(fatal)
        write_folder(folder, {"a.json": b"{}"})
        os._exit(1)  # no such rename
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert folder.is_dir()
    write_folder(folder, FILES)
    assert set(verify(folder)) == set(FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _die_at_rename(fatal: int) -> None:
    """Exit at the n-th rename, before it, as if killed; only for a child process."""
    count, real = iter(range(100)), os.rename

    def rename(source, target):
        if next(count) == fatal:
            os._exit(9)
        real(source, target)

    os.rename = rename


def test_a_file_that_cannot_be_flushed_is_named(tmp_path, monkeypatch):
    def failing(handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(FolderError, match=f"cannot write {tmp_path}/x.json: Input/output error; "):
        write_file(tmp_path / "x.json", b"1")
    assert not list(tmp_path.iterdir())


def test_the_manifest_goes_first_and_comes_last(folder, monkeypatch):
    order = []
    monkeypatch.setattr(
        "regard.files._write_file", lambda path, data: order.append((path.name, (folder / MANIFEST).exists()))
    )
    write_files(folder, FILES)
    assert order == [("a.json", False), ("b.bin", False), (MANIFEST, False)]


def test_one_file_is_replaced_whole(tmp_path):
    path = tmp_path / "x.json"
    write_file(path, b"old")
    write_file(path, json.dumps({"a": 1}).encode())
    assert json.loads(path.read_bytes()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_folder_stays_and_its_folder_is_replaced(tmp_path):
    write_folder(tmp_path / "real", {"a": b"old"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_folder(tmp_path / "link", {"a": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
