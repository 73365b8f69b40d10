"""The parts of images with captions: names as Flickr8k lists them, a file of captions, their overlap."""

import pytest

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.caption_splits import is_name_list, read_listed, read_split
from regard.errors import DataError


@pytest.fixture
def flickr(tmp_path):
    """Ten images in Flickr8k's layout: two captions each in one file, and lists of names for the splits."""
    folder = tmp_path / "Flicker8k_Dataset"
    folder.mkdir()
    names = [f"{number}.jpg" for number in range(10)]
    for name in names:
        (folder / name).touch()
    (tmp_path / "Flickr8k.token.txt").write_text(
        "".join(f"{name}#{each}\ta dog {name} {each} .\n" for name in names for each in range(2))
    )
    for split, part in (("train", names[:6]), ("dev", names[6:8]), ("test", names[8:])):
        (tmp_path / f"Flickr_8k.{split}Images.txt").write_text("".join(f"{name}\n" for name in part))
    return tmp_path


def split(flickr, dev=("Flickr_8k.devImages.txt",), images="Flickr_8k.trainImages.txt"):
    report = BadRows()
    training, validation = read_split(
        [flickr / "Flicker8k_Dataset", flickr / "Flickr8k.token.txt"],
        [flickr / one for one in dev],
        images=flickr / images if images else None,
        on_error="stop",
        report=report,
    )
    return [one.name for one in training], validation and [one.name for one in validation], report


def test_the_published_lists_of_names_are_the_parts(flickr):
    training, validation, report = split(flickr)
    assert training == [f"{number}.jpg" for number in range(6)]
    assert validation == ["6.jpg", "7.jpg"]
    assert report.summary() == ["left out: 2 images of Flickr8k.token.txt in none of the lists"]
    paths = [flickr / "Flicker8k_Dataset", flickr / "Flickr8k.token.txt", flickr / "Flickr_8k.testImages.txt"]
    assert [one.name for one in read_listed(paths, BadRows())] == ["8.jpg", "9.jpg"]
    assert len(read_listed(paths[:2], BadRows())) == 10


def test_an_image_to_evaluate_on_is_not_trained_on(flickr):
    training, validation, _ = split(flickr, images=None)
    assert not set(training) & set(validation)
    assert len(training) == 8


def test_a_file_of_captions_of_the_same_folder_is_a_part_too(flickr):
    (flickr / "dev.tsv").write_text("7.jpg\ta cat\n")
    training, validation, _ = split(flickr, dev=["dev.tsv"], images=None)
    assert validation == ["7.jpg"]
    assert "7.jpg" not in training


def test_without_lists_all_are_left_to_be_split(flickr):
    training, validation, report = split(flickr, dev=(), images=None)
    assert len(training) == 10
    assert validation is None
    assert report.summary() == []


def test_a_list_of_other_images_is_an_error(flickr):
    (flickr / "other.txt").write_text("x.jpg\ny.jpg\n")
    with pytest.raises(DataError, match=r"other.txt: 2 of its 2 images are not in .*token.txt, the first: x.jpg"):
        split(flickr, dev=["other.txt"])
    with pytest.raises(DataError, match="has all images of"):
        split(flickr, dev=["Flickr_8k.trainImages.txt"])


def test_captions_are_no_list_of_names(flickr):
    assert is_name_list(flickr / "Flickr_8k.devImages.txt")
    assert not is_name_list(flickr / "Flickr8k.token.txt")
