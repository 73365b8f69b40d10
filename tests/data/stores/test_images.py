"""Prepared pictures: the pixels are those of each picture, bad ones are named, the second time nothing is decoded."""

import json
import threading

import numpy as np
import pytest

from regard.data.readers.bad_rows import BadRows
from regard.data.stores import images as prepared
from regard.data.stores.images import ImageStore, prepare_images
from regard.errors import DataError, ImageError
from regard.images.decoding import read_image
from regard.images.preprocessing import preprocess
from tests.images import making

SIDE = 6


def ready(path):
    return preprocess(read_image(path), SIDE)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def paths(tmp_path):
    """Odd and bad pictures, in turn."""
    files = making.odd_pictures() | {name: data for name, (data, _) in making.bad_pictures().items()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return [tmp_path / name for name in sorted(files)]


def build(paths, preparing=ready, report=None, progress=None, **settings):
    report = report if report is not None else BadRows()
    return prepare_images(paths, preparing, side=SIDE, settings=settings, report=report, progress=progress)


def never(path):
    raise AssertionError(f"{path} is prepared again")


def test_rows_are_the_pixels_of_the_good_pictures(paths):
    found = build(paths)
    good = [path for path in paths if path.name not in making.bad_pictures()]
    assert [paths[place] for place in found.path_indices] == good
    assert len(found) == len(good) == len(making.odd_pictures())
    wanted = np.stack([ready(path) for path in good])
    assert np.array_equal(found[range(len(found))], wanted)
    assert np.array_equal(found[[3, 0, 3]], wanted[[3, 0, 3]])


def test_bad_pictures_are_named_each_time(paths, tmp_path):
    first, again = BadRows(), BadRows()
    build(paths, report=first)
    found = build(paths, never, report=again)
    assert first.summary() == again.summary()
    assert again.by_reason == {"bad image": len(making.bad_pictures())}
    place = paths.index(tmp_path / "text.png")
    assert found.bad[place] == "is text, wanted a PNG or JPEG image"
    named = BadRows()
    build([paths[place], tmp_path / "rgb.png"], report=named)
    assert named.summary()[1] == f"  {tmp_path}/text.png: bad image: {found.bad[place]}"


def test_the_cache_goes_by_contents_and_settings(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(making.saved(making.gradient()))
    before = build([path], crop="center")[[0]]
    (tmp_path / "moved.png").write_bytes(path.read_bytes())
    assert np.array_equal(build([tmp_path / "moved.png"], never, crop="center")[[0]], before)
    with pytest.raises(AssertionError, match="prepared again"):
        build([path], never, crop="pad")
    path.write_bytes(making.saved(making.corners()))
    assert not np.array_equal(build([path], crop="center")[[0]], before)


def test_a_damaged_entry_is_built_again(tmp_path, caplog):
    path = tmp_path / "a.png"
    path.write_bytes(making.saved(making.gradient()))
    before = build([path])[[0]]
    (entry,) = (tmp_path / "cache").iterdir()
    for spoil in (_flip_a_pixel, _claim_another_number):
        spoil(entry)
        assert np.array_equal(build([path])[[0]], before)
    assert caplog.text.count("is damaged and will be rebuilt") == 2


def _flip_a_pixel(entry):
    raw = bytearray((entry / "pixels.u1").read_bytes())
    raw[5] ^= 1
    (entry / "pixels.u1").write_bytes(raw)


def _claim_another_number(entry):
    index = json.loads((entry / "index.json").read_text())
    (entry / "index.json").write_text(json.dumps(index | {"pictures": 7}))


def test_progress_is_told_to_the_end_and_order_stays_with_many_threads(tmp_path, monkeypatch):
    """The first of each block is held back till the last one is done."""
    monkeypatch.setattr(prepared, "THREADS", 4)
    monkeypatch.setattr(prepared, "BLOCK", 4)
    paths = [tmp_path / str(i) for i in range(10)]
    gate = [threading.Event() for _ in paths]

    def slow(path):
        i = int(path.name)
        if i % 4 == 0 and i != 8:
            assert gate[i + 3].wait(20)
        gate[i].set()
        return np.full((SIDE, SIDE, 3), i, np.uint8)

    told = []
    found = ImageStore.build(paths, slow, tmp_path / "x", side=SIDE, progress=lambda *now: told.append(now))
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert found[range(10)][:, 0, 0, 0].tolist() == list(range(10))


def test_no_good_picture_at_all(tmp_path):
    with pytest.raises(DataError, match=f"none of 1 images can be read; the first: {tmp_path}/none.png: cannot be"):
        build([tmp_path / "none.png"])
    with pytest.raises(DataError, match="none of 0 images"):
        build([])


def test_a_disk_without_room_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(prepared.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100}))
    with pytest.raises(DataError, match="set REGARD_CACHE to a folder on a larger disk"):
        build([tmp_path / "a.png"], never)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_mistake_of_the_program_is_not_hidden(paths):
    with pytest.raises(AssertionError):
        build(paths, lambda _: np.zeros((2, 2, 3), np.uint8))


def test_pixels_stay_on_the_disk(tmp_path):
    def color(_):
        return np.zeros((SIDE, SIDE, 3), np.uint8)

    found = ImageStore.build([tmp_path / "a"] * 3, color, tmp_path / "x", side=SIDE)
    assert isinstance(found._pixels.base.base, np.memmap) or isinstance(found._pixels.base, np.memmap)
    assert found[[0]].flags.writeable


def test_a_reason_is_told_without_the_path_twice(tmp_path):
    def bad(path):
        raise ImageError(f"{path}: is odd")

    found = ImageStore.build([tmp_path / "a"], bad, tmp_path / "x", side=SIDE)
    assert found.bad == {0: "is odd"}
