"""Files of regions: both formats give the same, and every bad one is one line."""

import io
import json
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from regard.data.readers.regions import read_regions
from regard.data.regions import UNKNOWN_CLASS
from regard.errors import DataError


def arrays(**changes) -> dict[str, np.ndarray]:
    """Two pictures, of two regions and of one."""
    boxes = np.array([[[0, 0, 0.5, 0.5], [0.25, 0.5, 1, 1]], [[0, 0, 1, 1], [0, 0, 0, 0]]], np.float32)
    features = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    found = {"features": features, "boxes": boxes, "classes": np.array([[4, 5], [6, 0]])} | changes
    return {name: value for name, value in found.items() if value is not None}


def npz(folder, **changes):
    np.savez(folder / "regions.npz", **arrays(**changes))
    return folder / "regions.npz"


def test_both_formats_give_the_same(tmp_path):
    one = read_regions(npz(tmp_path, names=np.array(["a.png", "b.png"])))
    save_file(arrays(), tmp_path / "regions.safetensors", {"names": json.dumps(["a.png", "b.png"])})
    other = read_regions(tmp_path / "regions.safetensors", features=3)
    assert one.names == other.names == ["a.png", "b.png"]
    for number in range(2):
        for mine, yours in zip(one.regions[number], other.regions[number], strict=True):
            assert np.array_equal(mine, yours)


def test_a_picture_gets_a_region_of_all_of_it_unless_it_has_one(tmp_path):
    first, second = (read_regions(npz(tmp_path)).regions[number] for number in range(2))
    assert first.features.tolist() == [[1.5, 2.5, 3.5], [0, 1, 2], [3, 4, 5]]
    assert first.boxes.tolist() == [[0, 0, 1, 1, 1], [0, 0, 0.5, 0.5, 0.25], [0.25, 0.5, 1, 1, 0.375]]
    assert first.classes.tolist() == [UNKNOWN_CLASS, 4, 5]
    assert second.features.tolist() == [[6, 7, 8]]  # its empty box is padding
    assert second.classes.tolist() == [6]


def test_pictures_without_names_are_numbered_and_classes_need_not_be(tmp_path):
    found = read_regions(npz(tmp_path, classes=None))
    assert found.names == ["0", "1"]
    assert found.regions[0].classes is None


BOXES = arrays()["boxes"]
BAD = [
    ({"boxes": None}, "has no boxes; wanted features"),
    ({"colors": np.zeros(2)}, "has colors, wanted features, boxes and perhaps classes and names only"),
    ({"features": np.zeros((2, 2))}, r"features are float64 \(2, 2\), wanted numbers \(N, R, F\)"),
    ({"features": np.array([[["a"]]])}, "features are <U1"),
    ({"boxes": BOXES[:1]}, r"boxes are float32 \(1, 2, 4\), wanted numbers \(2, 2, 4\)"),
    ({"boxes": BOXES * 100}, r"box 0 of image 0 is \[0.0, 0.0, 50.0, 50.0\], wanted left < right"),
    ({"boxes": BOXES[..., [2, 1, 0, 3]]}, "box 0 of image 0 is .* wanted left < right"),
    ({"boxes": BOXES[..., [0, 3, 2, 1]]}, "box 0 of image 0 is .* wanted left < right and top < bottom"),
    ({"boxes": BOXES[:, ::-1]}, "image 1 has an empty box before a real one"),
    ({"boxes": BOXES * 0}, "image 0 has .* no box"),
    ({"boxes": np.full_like(BOXES, np.nan)}, "numbers that are not finite"),
    ({"classes": np.array([[4, 5], [-1, 0]])}, "classes are .* wanted whole numbers"),
    ({"classes": np.array([4, 5])}, r"classes are .* \(2,\), wanted whole numbers \(2, 2\)"),
    ({"names": np.array(["a"])}, r"names are .* \(1,\), wanted one for each of 2 images"),
    ({"names": np.array("a")}, r"names are .* \(\), wanted one for each of 2 images"),
    ({"names": np.array([{}, {}], object)}, "cannot be read as .npz"),
    ({"features": np.full((2, 2, 3), 1e300)}, "numbers that are not finite"),
    ({"classes": np.full((2, 2), 2**63, np.uint64)}, "classes are .* wanted whole numbers"),
]


@pytest.mark.parametrize(("changes", "said"), BAD, ids=lambda value: str(value)[:30])
def test_what_is_wrong_in_a_file_is_one_line_with_its_name(tmp_path, changes, said):
    path = npz(tmp_path, **changes)
    with pytest.raises(DataError, match=f"regions.npz: .*{said}") as error:
        read_regions(path)
    assert "\n" not in str(error.value)


def test_files_that_are_none_are_one_line(tmp_path):
    (tmp_path / "cut.npz").write_bytes(npz(tmp_path).read_bytes()[:100])
    (tmp_path / "cut.safetensors").write_bytes(b"x" * 30)
    (tmp_path / "regions.pt").write_bytes(b"")
    for name, said in {
        "cut.npz": "cannot be read as .npz",
        "cut.safetensors": "cannot be read as .safetensors",
        "regions.pt": "got the ending '.pt', wanted .npz or .safetensors",
        "none.npz": "no such file",
    }.items():
        with pytest.raises(DataError, match=f"{name}: {said}"):
            read_regions(tmp_path / name)
    with pytest.raises(DataError, match="its regions have 3 features, the model reads 5"):
        read_regions(npz(tmp_path), features=5)


def archive(folder, method=zipfile.ZIP_STORED, **members):
    good = {f"{name}.npy": npy(array) for name, array in arrays(classes=None).items()}
    with zipfile.ZipFile(folder / "odd.npz", "w", method) as file:
        for name, content in (good | {name.replace("_", "."): content for name, content in members.items()}).items():
            file.writestr(name, content)
    return folder / "odd.npz"


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_an_array_that_says_it_is_huge_is_refused_before_it_is_read(tmp_path):
    lying = npy(np.zeros((2, 2, 3), np.float32)).replace(b"(2, 2, 3), }       ", b"(2, 2, 99999999), }")
    with pytest.raises(DataError, match=r"features.npy says that it has 1,599,999,984 bytes, and has 48"):
        read_regions(archive(tmp_path, features_npy=lying))


def test_an_archive_that_would_grow_without_bound_is_refused(tmp_path):
    path = archive(tmp_path, zipfile.ZIP_DEFLATED, features_npy=npy(np.zeros((2, 2, 10**6), np.float32)))
    with pytest.raises(DataError, match="would take 16,0.* bytes, more than 200 times its size"):
        read_regions(path)


@pytest.mark.parametrize("name", ["features", "features.txt"])
def test_a_member_that_is_no_array_is_refused(tmp_path, name):
    path = archive(tmp_path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, b"x")
    with pytest.raises(DataError, match=f"{name} is no array"):
        read_regions(path)


def test_damage_anywhere_in_an_archive_is_one_line(tmp_path):
    np.savez_compressed(tmp_path / "good.npz", **arrays())
    content = (tmp_path / "good.npz").read_bytes()
    for at in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            read_regions(tmp_path / "bad.npz")
        except DataError as error:
            assert "\n" not in str(error)  # noqa: PT017 - some damage is harmless


def test_names_that_are_no_characters_are_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot be read as .npz"):
        read_regions(npz(tmp_path, names=np.array([2**31 - 1] * 2, "<u4").view("<U1")))
