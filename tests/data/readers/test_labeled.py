"""Labeled texts: every format gives the same rows, columns are found or asked for, every bad row is named."""

import csv
import gzip
import io
import json
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.labeled import Columns, LabeledText, choose_columns, read_labeled
from regard.data.readers.lines import MAX_LINE_BYTES
from regard.errors import DataError

ROWS = [("I liked it.", "good"), ("Not my café 🙂", "bad"), ('She said "no", twice', "bad")]
WANTED = [LabeledText(text, None, label) for text, label in ROWS]


def write(path: Path, raw: bytes | str) -> Path:
    raw = raw.encode() if isinstance(raw, str) else raw
    packers = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    path.write_bytes(packers.get(path.suffix.lower(), bytes)(raw))
    return path


def as_csv(rows, header=("text", "label")) -> str:
    file = io.StringIO()
    csv.writer(file).writerows([header, *rows] if header else rows)
    return file.getvalue()


def parquet(path: Path, **columns) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def read(*paths: Path, on_error="stop", report=None, labels_needed=True, **columns) -> list[LabeledText]:
    return list(
        read_labeled(
            paths,
            columns=Columns(**columns),
            on_error=on_error,
            report=report or BadRows(),
            labels_needed=labels_needed,
        )
    )


def failure(*paths: Path, **arguments) -> str:
    with pytest.raises(DataError) as caught:
        read(*paths, **arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_format_gives_the_same_rows(tmp_path, packing):
    lines = "".join(json.dumps({"id": 1, "text": text, "label": label}) + "\n\n" for text, label in ROWS)
    assert read(write(tmp_path / f"a.csv{packing}", as_csv(ROWS))) == WANTED
    tsv = "label\ttext\n" + "".join(f"{label}\t{text}\n" for text, label in ROWS)
    assert read(write(tmp_path / f"a.tsv{packing}", tsv)) == WANTED
    assert read(write(tmp_path / f"A.JSONL{packing}", lines)) == WANTED


def test_parquet_and_its_kinds_of_labels(tmp_path):
    texts, labels = map(list, zip(*ROWS, strict=True))
    assert read(parquet(tmp_path / "a.parquet", text=texts, label=labels)) == WANTED
    kinds = {
        "int": (pa.array([1, 0, -1]), ["1", "0", "-1"]),
        "float": (pa.array([3.8, 5, 0.25], pa.float32()), ["3.8", "5", "0.25"]),
        "truth": (pa.array([True, False, True]), ["true", "false", "true"]),
        "words": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    }
    for name, (column, wanted) in kinds.items():
        path = parquet(tmp_path / f"{name}.parquet", text=texts, label=column)
        assert [row.label for row in read(path)] == wanted
    nested = parquet(tmp_path / "b.parquet", text=texts, label=[["a"], ["b"], []])
    assert "column 'label' holds list" in failure(nested)
    (tmp_path / "c.parquet").write_bytes(b"no")
    assert "cannot be read as Parquet" in failure(tmp_path / "c.parquet")


def test_bad_rows_of_parquet(tmp_path):
    raw = pa.array([b"fine", b"\xff", None], pa.binary())
    path = tmp_path / "a.parquet"
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:], raw.buffers()[0])
    pq.write_table(pa.table({"text": text, "label": pa.array([1, 2, 3])}), path)
    report = BadRows()
    assert read(path, on_error="skip", report=report) == [LabeledText("fine", None, "1")]
    assert report.by_reason == {"invalid UTF-8": 1, "empty text": 1}
    assert [bad.line for bad in report.first] == [2, 3]


def test_quoted_fields_hold_line_ends_commas_and_quotes(tmp_path):
    raw = '\ufefftext,label\r\n"one\r\ntwo, ""three""",a\r\n\r\nplain,b'
    assert read(write(tmp_path / "a.csv", raw)) == [
        LabeledText('one\ntwo, "three"', None, "a"),
        LabeledText("plain", None, "b"),
    ]


def test_quotes_of_tsv_are_characters(tmp_path):
    rows = read(write(tmp_path / "a.tsv", 'text\tlabel\n"so\ta\n"so"\tb\n'))
    assert [row.text for row in rows] == ['"so', '"so"']


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).filter(str.strip)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=1, max_size=5))
def test_what_is_written_as_csv_is_read_back(tmp_path_factory, rows):
    path = write(tmp_path_factory.mktemp("csv") / "a.csv", as_csv(rows))
    assert [(row.text, row.label) for row in read(path)] == [(text.strip(), label) for text, label in rows]


def test_numbers_and_truths_of_json_stay_as_they_are_written(tmp_path):
    labels = ["1", "1.0", "-3e2", "true", "false", '"1"']
    lines = "".join(f'{{"text": "a", "label": {label}}}\n' for label in labels)
    assert [row.label for row in read(write(tmp_path / "a.jsonl", lines))] == ["1", "1.0", "-3e2", "true", "false", "1"]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("Sentence,Label", ("Sentence", None, "Label")),
        ("id,review,sentiment", ("review", None, "sentiment")),
        ("sentence1,sentence2,label1,gold_label", ("sentence1", "sentence2", "gold_label")),
        ("id,qid1,qid2,question1,question2,is_duplicate", ("question1", "question2", "is_duplicate")),
        ("hypothesis,premise,label", ("premise", "hypothesis", "label")),
        ("idx,sentence,question,label", ("question", "sentence", "label")),
        ("question,answer,score", ("question", "answer", "score")),
        ("Quality,#1 ID,#2 ID,#1 String,#2 String", ("#1 String", "#2 String", "Quality")),
        (" text , stars ", ("text", None, "stars")),
    ],
)
def test_columns_are_found_by_their_names(tmp_path, header, wanted):
    path = write(tmp_path / "a.csv", header + "\n" + ",".join(f"v{i}" for i in range(header.count(",") + 1)) + "\n")
    chosen = choose_columns(path, Columns())
    places = (chosen.text, chosen.second, chosen.label)
    assert tuple(None if place is None else chosen.names[place] for place in places) == wanted
    values = tuple(None if place is None else f"v{place}" for place in places)
    assert read(path) == [LabeledText(*values)]


def test_what_was_chosen_can_be_told(tmp_path):
    pair = write(tmp_path / "a.csv", "sentence1,sentence2,label\na,b,c\n")
    note = (
        "pairs of texts: text from column 'sentence1', second text from column 'sentence2', label from column 'label'"
    )
    assert choose_columns(pair, Columns()).note() == note
    alone = choose_columns(pair, Columns(second="-"))
    assert alone.note() == "single texts: text from column 'sentence1', label from column 'label'"
    assert read(pair, second="-") == [LabeledText("a", None, "c")]


def test_columns_can_be_given(tmp_path):
    path = write(tmp_path / "a.csv", "title,text,Mood,label\nt,x,m,l\n")
    assert read(path, text="title", label="mood") == [LabeledText("t", None, "m")]
    assert read(path, text="title", second="text", label="label") == [LabeledText("t", "x", "l")]
    assert read(path, second="title", label="label") == [LabeledText("x", "t", "l")]  # what is given is not found again
    pair = write(tmp_path / "b.csv", "text,answer,label\nx,a,l\n")
    assert read(pair) == [LabeledText("x", "a", "l")]
    assert read(pair, text="text") == [LabeledText("x", None, "l")]  # no second is guessed beside a text that is given
    assert read(path, text="text", label="3") == [LabeledText("x", None, "m")]  # by its place, as the header is there


def test_several_or_no_columns_are_asked_for(tmp_path):
    several = write(tmp_path / "a.csv", "title,text,label\nt,x,l\n")
    assert "a.csv: the text may be title or text; data.text=… data.second=… data.label=… name them" in failure(several)
    labels = write(tmp_path / "b.csv", "text,label,score\nt,x,l\n")
    assert "the label may be label or score; data.text=…" in failure(labels)
    assert read(labels, labels_needed=False) == [LabeledText("t", None, None)]
    seconds = write(tmp_path / "c.csv", "text,answer,hypothesis,label\nt,x,l,l\n")
    assert "the second text may be answer or hypothesis" in failure(seconds)
    none = write(tmp_path / "d.csv", "what,how\na,b\n")
    assert "no column for the text among what, how; data.text=… data.second=… data.label=…" in failure(none)
    assert "no column for the label among text, how" in failure(write(tmp_path / "e.csv", "text,how\na,b\n"))
    assert "has no column 'x'; its columns are what, how" in failure(none, text="x")
    assert "has no column '3'; its columns are 1, 2" in failure(none, text="1", label="3")
    twice = write(tmp_path / "f.csv", "text,Text,label\na,b,c\n")
    assert "has several columns 'TEXT'" in failure(twice, text="TEXT")
    assert [row.text for row in read(twice, text="Text")] == ["b"]
    assert "chosen twice" in failure(none, text="what", label="what")


def test_files_without_header(tmp_path):
    raw = "I liked it very much indeed.,1\nNot so good,0\n"
    path = write(tmp_path / "a.csv", raw)
    said = failure(path)
    assert "the first row looks like data (I liked it very much indeed., 1), wanted a header" in said
    assert "data.text=1 data.label=2" in said
    wanted = [LabeledText("I liked it very much indeed.", None, "1"), LabeledText("Not so good", None, "0")]
    assert read(path, text="1", label="2") == wanted
    tsv = write(tmp_path / "a.tsv", "0\ta\tb\n1\tc\td\n")
    assert read(tsv, text="2", second="3", label="1") == [LabeledText("a", "b", "0"), LabeledText("c", "d", "1")]
    assert read(tsv, text="3", labels_needed=False) == [LabeledText("b", None, None), LabeledText("d", None, None)]
    assert "data.label=2 is missing" in failure(path, text="1")
    assert "data.text=1 is missing" in failure(path, label="2")


def test_a_header_is_not_read_as_a_row(tmp_path):
    path = write(tmp_path / "a.csv", as_csv(ROWS))
    assert "has a header (text, label), got columns by number; give them by name" in failure(path, text="1", label="2")
    named = write(tmp_path / "a.jsonl", '{"text": "a", "label": "b"}\n')
    assert "its columns have names, got numbers" in failure(named, text="1", label="2")


def test_other_signs_between_the_columns(tmp_path):
    assert "the columns are separated by ';'" in failure(write(tmp_path / "a.csv", "text;label\na;b\n"))


def test_test_sets_need_no_labels(tmp_path):
    path = write(tmp_path / "a.tsv", "index\tsentence\n0\tHello\n")
    assert "no column for the label" in failure(path)
    assert read(path, labels_needed=False) == [LabeledText("Hello", None, None)]
    some = write(tmp_path / "b.csv", "text,label\na,\nb,1\n")
    assert read(some, labels_needed=False) == [LabeledText("a", None, None), LabeledText("b", None, "1")]


def test_several_files_are_of_one_kind(tmp_path):
    one = write(tmp_path / "a.csv", as_csv(ROWS))
    other = write(tmp_path / "b.tsv", "label\tsentence\nx\ty\n")
    assert read(one, other) == [*WANTED, LabeledText("y", None, "x")]
    pair = write(tmp_path / "c.csv", "text,second,label\na,b,c\n")
    assert f"{pair} has a second column and {one} has none" in failure(one, pair)
    bare = write(tmp_path / "d.csv", "text\na\n")
    assert f"{one} has a label column and {bare} has none" in failure(one, bare, labels_needed=False)


BAD = {
    "a.csv": [
        ("a,b,c", "wrong columns: got 3, wanted 2"),
        ("a", "wrong columns: got 1, wanted 2"),
        (",x", "empty text: the text is empty"),
        (",", "empty text: the text is empty"),
        ("a, ", "empty label"),
        (b"\xff,x", "invalid UTF-8"),
        ('"open,x', "bad CSV: unexpected end of data"),
        ('"a"b,x', "bad CSV"),
        (b"a\0,x", "bad character: U+0000 in the text"),
        ("a,b\x07", "bad character: U+0007 in the label"),
        ("x" * (MAX_LINE_BYTES + 5) + ",a", "too long"),
        ("x" * 140_000 + ",a", "bad CSV: field larger than field limit"),
    ],
    "a.tsv": [
        ("a", "wrong columns: got 1, wanted 2"),
        ("a\tb\t", "wrong columns: got 3, wanted 2"),
        ("\tb", "empty text"),
        ("\t", "empty text"),
        ("a\t", "empty label"),
        (b"\xe9\tb", "invalid UTF-8"),
        ("x" * (MAX_LINE_BYTES + 5) + "\ta", "too long"),
    ],
    "a.jsonl": [
        ("{", "bad JSON"),
        ("[1]", "wrong JSON: wanted an object"),
        ('{"text": "a"}', "no field: no 'label' among its fields (text)"),
        ('{"text": ["a"], "label": 1}', "wrong field: 'text' is an array"),
        ('{"text": "a", "label": {}}', "wrong field: 'label' is an object"),
        ('{"text": null, "label": 1}', "empty text"),
        ('{"text": "a", "label": null}', "empty label"),
        ('{"text": "a\\ud800", "label": 1}', "bad character: U+D800"),
        (b'{"text": "\xff", "label": 1}', "invalid UTF-8"),
    ],
}
FRAMES = {
    "a.csv": ("text,label\ngood,1\n", '\n"fine\nday",0\n'),
    "a.tsv": ("text\tlabel\ngood\t1\n", "\nfine day\t0\n"),
    "a.jsonl": ('{"text": "good", "label": "1"}\n', '\n{"text": "fine day", "label": "0"}\n'),
}


@pytest.mark.parametrize(("name", "line", "said"), [(name, *bad) for name, some in BAD.items() for bad in some])
def test_bad_rows_stop_or_are_counted(tmp_path, name, line, said):
    before, after = (part.encode() for part in FRAMES[name])
    raw = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / name, before + raw + after)
    number = before.count(b"\n") + 1
    if "unexpected end" not in said:  # what is said of an open quote depends on what follows
        assert f"{path}:{number}: {said}" in failure(path)
    assert "data.on_error=skip" in failure(path)
    report = BadRows()
    rows = read(path, on_error="skip", report=report)
    assert [" ".join(row.text.split()) for row in rows] == ["good", "fine day"]
    assert report.count == 1
    assert report.first[0].line == number


def test_an_open_quote_costs_its_own_line_alone(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n"never closed,1\nb,2\nc,3\n')
    assert "a.csv:2: bad CSV: unexpected end of data" in failure(path)
    report = BadRows()
    assert [row.text for row in read(path, on_error="skip", report=report)] == ["b", "c"]
    assert [(bad.line, bad.reason) for bad in report.first] == [(2, "bad CSV")]


def test_lines_are_counted_through_quoted_line_ends(tmp_path):
    path = write(tmp_path / "a.csv", 'text,label\n"a\nb\nc",1\n\nd\n')
    assert f"{path}:6: wrong columns" in failure(path)


def test_useless_files(tmp_path):
    assert "no such file" in failure(tmp_path / "no.csv")
    assert "is a folder" in failure(tmp_path)
    assert "got the ending '.txt', wanted a .csv, .tsv or .jsonl" in failure(write(tmp_path / "a.txt", "a"))
    for name in ("a.csv", "a.tsv", "a.jsonl"):
        assert "the file is empty" in failure(write(tmp_path / name, "\n\n"))
    assert "no labeled text; it has no rows" in failure(write(tmp_path / "a.csv", "text,label\n"))
    bad = write(tmp_path / "b.csv", "text,label\n,a\nb\n")
    assert "no labeled text; all 2 rows are bad" in failure(bad, on_error="skip")
    assert "a.jsonl:1: bad JSON" in failure(write(tmp_path / "a.jsonl", "{"))
    wide = write(tmp_path / "c.csv", "text,label\na,b\n".encode("utf-16"))
    assert "the first row is not UTF-8" in failure(wide)
    cut = tmp_path / "d.tsv.gz"
    cut.write_bytes(gzip.compress(("text\tlabel\n" + "a\tb\n" * 99_999).encode())[:-20])
    assert "damaged or truncated" in failure(cut)


def test_rows_stream(tmp_path):
    """The first rows are there although the file is truncated far behind them."""
    path = tmp_path / "a.csv.gz"
    rows = "".join(f"text {i},{i % 2}\n" for i in range(200_000))
    path.write_bytes(gzip.compress(("text,label\n" + rows).encode())[:-1000])
    found = read_labeled([path], columns=Columns(), on_error="stop", report=BadRows())
    assert [row.text for row in islice(found, 2)] == ["text 0", "text 1"]


def test_what_can_be_seen_at_once_is_said_at_once(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_labeled([tmp_path / "no.csv"], columns=Columns(), on_error="stop", report=BadRows())
