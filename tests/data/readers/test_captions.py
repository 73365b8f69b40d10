"""Captions of pictures: every format gives the same, what is bad is named, no name leads out of the folder."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data.readers import captions
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import CaptionedImage, read_captions, split_validation
from regard.data.splits import is_validation
from regard.errors import DataError

CAPTIONS = {"b.jpg": ("A dog , running .", "One dog"), "a.png": ('A sign says "stop"',), "sub/c.JPEG": ("Ein Mädchen",)}
ROWS = [(name, text) for name, texts in CAPTIONS.items() for text in texts]


@pytest.fixture
def folder(tmp_path):
    """Three pictures, as far as names go: nothing here opens one."""
    for name in CAPTIONS:
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(b"")
    return tmp_path / "pictures"


def read(folder, text, name="captions.jsonl", on_error="stop", report=None):
    file = folder.parent / name
    raw = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return read_captions(folder, file, on_error=on_error, report=report if report is not None else BadRows())


def failure(*arguments, **options) -> str:
    with pytest.raises(DataError) as caught:
        read(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def lines(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


COCO = {
    "info": {"year": 2014},
    "images": [{"id": i, "file_name": name, "height": 3} for i, name in enumerate(CAPTIONS)],
    "annotations": [{"image_id": list(CAPTIONS).index(name), "id": 7, "caption": f" {text}\n"} for name, text in ROWS],
}
FORMATS = {
    "image.jsonl": lines({"image": name, "caption": text} for name, text in ROWS),
    "file_name.jsonl": lines({"file_name": name, "captions": texts, "id": 3} for name, texts in CAPTIONS.items()),
    "picture.jsonl.gz": lines({"picture": f"./{name}", "caption": text} for name, text in ROWS) + "\n",
    "list.json": json.dumps([{"image": name, "caption": texts} for name, texts in CAPTIONS.items()]),
    "coco.json": json.dumps(COCO),
    "coco.json.gz": json.dumps(COCO),
    "plain.tsv": "".join(f"{name}\t{text}\n" for name, text in ROWS),
    "header.tsv": "image\tcaption\n" + "".join(f"{name}\t{text}\r\n" for name, text in ROWS),
    "Flickr8k.token.txt": "".join(f"{name}#{i}\t{text}\n" for i, (name, text) in enumerate(ROWS)),
    "results_20130124.token": "".join(f"{name}#{i}\t{text}\n" for i, (name, text) in enumerate(ROWS)),
    "captions.txt": "image,caption\n" + "".join(f"{name},{text}\n" for name, text in ROWS),
    "flickr8k.csv": "\ufeffimage,caption\n" + "".join(f"{name},{quoted(text)}\n" for name, text in ROWS),
    "flickr30k.csv": "image_name| comment_number| comment\n" + "".join(f"{name}| 0| {text}\n" for name, text in ROWS),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same(folder, name):
    report = BadRows()
    found = read(folder, FORMATS[name], name, report=report)
    assert found == [CaptionedImage(folder / name, texts, name) for name, texts in CAPTIONS.items()]
    assert report.summary() == []


BAD = {
    '{"image": "a.png"': "bad JSON",
    '["a.png", "x"]': "wrong fields",
    '{"image": "a.png"}': "wrong fields",
    '{"image": "a.png", "caption": 3}': "wrong fields",
    '{"image": 3, "caption": "x"}': "no name",
    '{"image": " ", "caption": "x"}': "no name",
    '{"image": "a.png", "caption": " "}': "empty caption",
    '{"image": "a.png", "captions": []}': "empty caption",
    '{"image": "a.png", "caption": "x\\u0000"}': "control character",
    '{"image": "a\\u0000.png", "caption": "x"}': "control character",
    '{"image": "a.png", "caption": "\\ud800"}': "control character",
    '{"image": "d.png", "caption": "x"}': "missing image",
    '{"image": "sub", "caption": "x"}': "missing image",
    json.dumps({"image": "a" * 5000, "caption": "x"}): "missing image",
    json.dumps({"image": "a.png", "caption": "x" * 5001}): "too long",
    '{"image": "../../etc/passwd", "caption": "x"}': "outside",
    '{"image": "sub/../a.png", "caption": "x"}': "outside",
    '{"image": "/etc/passwd", "caption": "x"}': "outside",
    '{"image": "..\\\\a.png", "caption": "x"}': "outside",
    '{"image": "C:\\\\a.png", "caption": "x"}': "outside",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_stops_or_is_named_and_counted(folder, line):
    good = lines({"image": name, "caption": texts} for name, texts in CAPTIONS.items())
    if BAD[line] != "missing image":
        assert f"captions.jsonl:4: {BAD[line]}: " in failure(folder, good + line)
    report = BadRows()
    assert len(read(folder, good + line + "\n" + line, on_error="skip", report=report)) == 3
    assert report.by_reason == {BAD[line]: 2}


def test_some_captions_of_pictures_that_are_not_there_stop_nothing(folder):
    """As in Flickr8k's own file, where five lines are of a name that ends in .jpg.1."""
    rows = [f"{name}#{i}\t{text}\n" for i, (name, text) in enumerate(ROWS)]
    odd, report = ["gone.jpg.1#0\ta dog\n", "gone.jpg.1#1\ta dog runs\n"], BadRows()
    found = read(folder, "".join(rows + odd), "Flickr8k.token.txt", report=report)
    assert [one.name for one in found] == list(CAPTIONS)
    assert report.by_reason == {"missing image": 2}
    said = failure(folder, "".join(rows + odd * len(rows)), "Flickr8k.token.txt")
    assert f"{2 * len(rows)} of its lines name images that are not in {folder}" in said
    assert "gone.jpg.1 in" in said


def test_outside_is_refused_even_where_a_picture_stands(folder):
    (folder.parent / "secret.png").write_bytes(b"")
    for name in ("../secret.png", str(folder.parent / "secret.png")):
        assert "leads out of the folder" in failure(folder, lines([{"image": name, "caption": "x"}]))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.tsv", "a.png\tx\na.png x\n", "a.tsv:2: wrong columns"),
        ("a.csv", "image,caption\na.png\n", "a.csv:2: wrong columns: got 1, wanted 2"),
        ("a.csv", 'image,caption\na.png,"x\n', "a.csv:2: bad quotes"),
        (
            "a.csv",
            "image_name| comment_number| comment\na.png| 4   A dog .\n",
            "a.csv:2: wrong columns: got 2, wanted 3",
        ),
        ("a.csv", "a.png,x\n", "is not a header"),
        ("a.xml", "", "got the ending '.xml'"),
        ("a.jsonl", "", "no caption of an image"),
        ("a.jsonl", b"\xff\xfe", "a.jsonl:1: invalid UTF-8"),
        ("a.json", "{", "is not JSON"),
        ("a.json", b"\xff", "is not JSON"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", "{}", "wanted COCO's"),
        ("a.json", '{"images": [[]], "annotations": [{"image_id": [], "caption": "x"}]}', "a.json:1: unknown image"),
        ("a.json", '{"images": [], "annotations": [{"image_id": 1}]}', "a.json:1: wrong fields"),
        ("a.json", '{"images": [{"id": 1}], "annotations": [{"image_id": 1, "caption": "x"}]}', "a.json:1: no name"),
    ],
)
def test_bad_files_are_one_line(folder, name, text, reason):
    assert reason in failure(folder, text, name)


def test_what_is_not_there(folder, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_captions(folder, tmp_path / "a.jsonl", on_error="skip", report=BadRows())
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(DataError, match="wanted the folder of the images"):
        read_captions(tmp_path / "none", tmp_path / "a.jsonl", on_error="skip", report=BadRows())
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b"[]" * 999)[:20])
    with pytest.raises(DataError, match="damaged or truncated"):
        read_captions(folder, tmp_path / "a.json.gz", on_error="skip", report=BadRows())


def test_a_json_file_of_any_size_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(captions, "MAX_JSON_BYTES", 10)
    assert "has more than 10 bytes; write it as .jsonl" in failure(folder, FORMATS["coco.json"], "coco.json")


def test_when_nothing_is_good_the_first_bad_line_is_told(folder):
    text = lines([{"image": "x.png", "caption": "x"}])
    assert "no caption of an image" in failure(folder, text, on_error="skip")
    assert "captions.jsonl:1: missing image: there is no x.png" in failure(folder, text, on_error="skip")


def test_images_without_a_caption_are_counted_and_are_no_bad_lines(folder):
    (folder / "notes.txt").write_text("no image")
    report = BadRows()
    found = read(folder, lines([{"image": "a.png", "caption": "x"}]), report=report)
    assert [one.name for one in found] == ["a.png"]
    assert report.summary() == [f"left out: 2 images of {folder} without a caption in captions.jsonl"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200), st.sampled_from(["a.jsonl", "a.json", "a.tsv", "a.csv", "a.txt", "a.json.gz", "a.tsv.zst"])
)
def test_any_bytes_are_captions_or_our_error(folder, raw, name):
    file = folder.parent / name
    for start in (b"", b"image,caption\n", b"image|caption\n"):
        file.write_bytes(start + raw)
        try:
            found = read_captions(folder, file, on_error="skip", report=BadRows())
        except DataError as error:
            found = str(error)
        assert isinstance(found, list) or "\n" not in found


def captioned(count: int) -> list[CaptionedImage]:
    return [CaptionedImage(Path("x") / f"{i}.jpg", ("a", "b"), f"{i}.jpg") for i in range(count)]


def test_a_picture_is_held_out_by_its_name_with_all_its_captions():
    everything = captioned(1000)
    training, validation = split_validation(everything, 50)
    assert 25 < len(validation) < 80
    assert sorted(training + validation, key=everything.index) == everything
    assert all(is_validation(one.name, 0.05) for one in validation)
    assert split_validation(everything[::-1], 50) == (training[::-1], validation[::-1])


@pytest.mark.parametrize("count", [2, 3, 5, 8, 20])
def test_of_few_pictures_some_are_held_out_too(count):
    training, validation = split_validation(captioned(count), 2000)
    assert training
    assert validation


def test_one_picture_is_too_few():
    for few in (captioned(1), []):
        with pytest.raises(DataError, match="too few"):
            split_validation(few, 10)
