"""Reading pairs: every format gives the same pairs, every bad line is named, every bad file is one line."""

import gzip
import json
import unicodedata
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.readers.bad_rows import BadRows
from regard.data.readers.lines import MAX_LINE_BYTES
from regard.data.readers.pairs import read_pairs
from regard.data.splits import is_validation, validation_fraction
from regard.errors import DataError

PAIRS = [("Hello.", "Hola."), ("The café is open.", "El café está abierto."), ("Yes", "Sí 🙂")]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS).encode()


def write(path: Path, raw: bytes) -> Path:
    packers = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
    path.write_bytes(packers.get(path.suffix.lower(), bytes)(raw))
    return path


def read(*paths: Path, on_error="stop", report=None, longest=250) -> list[tuple[str, str]]:
    return list(read_pairs(paths, on_error=on_error, report=report or BadRows(), longest=longest))


def failure(*paths: Path, on_error="stop") -> str:
    with pytest.raises(DataError) as caught:
        read(*paths, on_error=on_error)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_every_format_gives_the_same_pairs(tmp_path, packing):
    lines = (json.dumps({"source": s, "target": t, "id": 3}) for s, t in PAIRS)
    assert read(write(tmp_path / f"a.tsv{packing}", TSV)) == PAIRS
    assert read(write(tmp_path / f"a.jsonl{packing}", "\n".join(lines).encode())) == PAIRS
    source = write(tmp_path / f"a.en{packing}", "\n".join(s for s, _ in PAIRS).encode())
    target = write(tmp_path / "a.es", "\n".join(t for _, t in PAIRS).encode())
    assert read(source, target) == PAIRS


def test_more_columns_bom_crlf_capitals_and_a_missing_last_line_end(tmp_path):
    raw = b"\xef\xbb\xbfHello.\tHola.\tCC-BY a\tb\r\n Yes \tS\xc3\xad"
    for name in ("A.TSV", "A.TSV.GZ"):
        assert read(write(tmp_path / name, raw)) == [("Hello.", "Hola."), ("Yes", "Sí")]


def test_several_frames_and_members_are_one_file(tmp_path):
    pack = zstandard.ZstdCompressor().compress
    (tmp_path / "a.tsv.zst").write_bytes(pack(TSV[:20]) + pack(TSV[20:]))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(TSV[:20]) + gzip.compress(TSV[20:]))
    assert read(tmp_path / "a.tsv.zst") == read(tmp_path / "a.tsv.gz") == PAIRS


BAD = {
    "wrong columns": b"no tab here",
    "invalid UTF-8": b"caf\xe9\tcaf\xe9",
    "empty side": b"Hello.\t  ",
    "too long": b"a b c d e f\tg",
    "control character": b"a\x00b\tc",
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_line_stops_or_is_skipped(tmp_path, reason):
    path = write(tmp_path / "a.tsv", b"a\tb\n" + BAD[reason] + b"\nc\td\n")
    message = _stopped(path)
    assert message.startswith(f"{path}:2: {reason}: ")
    assert message.endswith("or set data.on_error=skip to skip such lines")
    report = BadRows()
    assert read(path, on_error="skip", report=report, longest=5) == [("a", "b"), ("c", "d")]
    assert report.count == 1
    assert report.by_reason == {reason: 1}
    assert (report.first[0].file, report.first[0].line, report.first[0].reason) == (path, 2, reason)


def _stopped(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(path, longest=5)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "bad JSON"),
        ("[" * 100_000, "bad JSON"),
        ('["a", "b"]', "wrong fields"),
        ('{"source": "a"}', "wrong fields"),
        ('{"source": "a", "target": 3}', "wrong fields"),
        ('{"source": "a\\nb", "target": "c"}', "control character"),
        ('{"source": "a\\ud800", "target": "c"}', "control character"),
        ("", "bad JSON"),
    ],
)
def test_bad_json_lines(tmp_path, line, reason):
    path = write(tmp_path / "a.jsonl", f'{line}\n{{"source": "a", "target": "b"}}\n'.encode())
    report = BadRows()
    assert read(path, on_error="skip", report=report) == [("a", "b")]
    assert report.by_reason == {reason: 1}


def test_bad_line_of_two_files_names_the_one_it_stands_in(tmp_path):
    source, target = write(tmp_path / "a.en", b"a\nb\n"), write(tmp_path / "a.es", b"c\n\n")
    assert failure(source, target).startswith(f"{target}:2: empty side: the target")


def test_report_counts_all_and_keeps_five(tmp_path):
    path = write(tmp_path / "a.tsv", b"a\tb\n" + b"x\n" * 7 + b"a\t\n")
    report = BadRows()
    read(path, on_error="skip", report=report)
    assert report.count == 8
    assert [bad.line for bad in report.first] == [2, 3, 4, 5, 6]
    assert report.summary()[0] == "bad lines left out: 8 (wrong columns 7, empty side 1); the first:"
    assert report.summary()[1].strip().startswith(f"{path}:2: wrong columns")
    assert len(report.summary()) == 6
    assert BadRows().summary() == []


def test_too_long_counts_words_and_for_scripts_without_spaces_characters(tmp_path):
    assert read(write(tmp_path / "a.tsv", b"a b c\td"), longest=3) == [("a b c", "d")]
    report = BadRows()
    path = write(tmp_path / "b.tsv", ("a b c d\te\nf\tg\n" + "字" * 61 + "\th\n" + "字" * 60 + "\th\n").encode())
    assert read(path, on_error="skip", report=report, longest=3) == [("f", "g"), ("字" * 60, "h")]
    assert report.by_reason == {"too long": 2}


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path):
    path = write(tmp_path / "a.tsv", b"x" * (3 * MAX_LINE_BYTES) + b"\na\tb\n" + b"y" * (MAX_LINE_BYTES + 1))
    report = BadRows()
    assert read(path, on_error="skip", report=report) == [("a", "b")]
    assert [bad.line for bad in report.first] == [1, 3]
    assert report.by_reason == {"too long": 2}


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_of_just_the_limit_is_not_cut(tmp_path, end):
    path = write(tmp_path / "a.tsv", b"a\tb\t" + b"c" * (MAX_LINE_BYTES - 4) + end)
    assert read(path) == [("a", "b")]


def test_pairs_come_while_the_file_is_read(tmp_path):
    path = write(tmp_path / "a.tsv", b"a\tb\nbad\n")
    stream = read_pairs([path], on_error="stop", report=BadRows(), longest=9)
    assert next(stream) == ("a", "b")
    with pytest.raises(DataError):
        next(stream)


def test_files_that_cannot_be(tmp_path):
    good = write(tmp_path / "good.tsv", TSV)
    assert failure(tmp_path / "no.tsv") == f"{tmp_path / 'no.tsv'}: no such file"
    (tmp_path / "folder.tsv").mkdir()
    assert "is a folder" in failure(tmp_path / "folder.tsv")
    assert "the file is empty" in failure(write(tmp_path / "empty.tsv", b""))
    assert "the file is empty" in failure(write(tmp_path / "empty.tsv.gz", b""))
    assert "got the ending '.csv', wanted one .tsv or .jsonl" in failure(write(tmp_path / "a.csv", TSV))
    assert "got the ending '', wanted" in failure(write(tmp_path / "a.gz", TSV))
    assert "got 2 files (good.tsv, good.tsv), wanted" in failure(good, good)
    assert "got 3 files" in failure(good, good, good)
    assert "got 0 files" in failure()
    none = failure(write(tmp_path / "none.tsv", b"a\nb\n"), on_error="skip")
    assert f"no sentence pair; the first of 2 bad lines: {tmp_path / 'none.tsv'}:1: wrong columns" in none


def test_missing_file_is_found_before_the_first_pair(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_pairs([tmp_path / "a.en", tmp_path / "a.es"], on_error="stop", report=BadRows(), longest=9)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_unequal_files_name_both_counts(tmp_path, on_error):
    two, five = write(tmp_path / "a.en", b"a\nb\n"), write(tmp_path / "a.es", b"a\nb\nc\nd\ne\n")
    assert f"{two} has 2 lines and {five} 5" in failure(two, five, on_error=on_error)
    assert f"{five} has 5 lines and {two} 2" in failure(five, two, on_error=on_error)


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_packed_file_that_is_cut_off(tmp_path, packing, on_error):
    lines = b"".join(b"sentence %d\tfrase %d\n" % (i, i * i) for i in range(50_000))
    path = write(tmp_path / f"a.tsv{packing}", lines)
    path.write_bytes(path.read_bytes()[:-500])
    message = failure(path, on_error=on_error)
    assert message.startswith(f"{path}: damaged or truncated after ")
    assert int(message.split(" after ")[1].split()[0].replace(",", "")) > 1000


@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_packed_only_by_name(tmp_path, packing):
    path = tmp_path / f"a.tsv{packing}"
    path.write_bytes(TSV)
    assert "damaged or truncated after 0 lines" in failure(path)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(0, 1, allow_subnormal=False))
def test_validation_does_not_see_spacing_or_composition(text, share):
    variants = [f"  {text}\n", text.replace(" ", " \t "), unicodedata.normalize("NFD", text)]
    assert {is_validation(variant, share) for variant in variants} == {is_validation(text, share)}


def test_validation_does_not_see_case():
    sentences = [f"Das ist Straße number {i}." for i in range(200)]
    assert [is_validation(s, 0.5) for s in sentences] == [is_validation(s.upper(), 0.5) for s in sentences]


def test_validation_does_not_see_the_order_of_accents():
    one, other = "α\u0345\u0301", "α\u0301\u0345"  # the same letter, which in lower case is two
    for i in range(50):
        assert is_validation(f"{one} {i}", 0.5) == is_validation(f"{other} {i}", 0.5)


def test_validation_takes_about_its_share_and_more_takes_more():
    sentences = [f"sentence {i}" for i in range(20_000)]
    taken = {share: {s for s in sentences if is_validation(s, share)} for share in (0.0, 0.01, 0.1, 1.0)}
    assert len(taken[0.0]) == 0
    assert len(taken[1.0]) == 20_000
    assert 150 < len(taken[0.01]) < 250
    assert 1850 < len(taken[0.1]) < 2150
    assert taken[0.01] < taken[0.1]


def test_validation_is_the_same_for_ever():
    assert [i for i in range(50) if is_validation(f"sentence {i}", 0.1)] == [6, 29, 45]


def test_validation_share():
    assert validation_fraction(100_000, 2000) == 0.02
    assert validation_fraction(1000, 2000) == 0.1
    assert validation_fraction(0, 2000) == 0


def columns_of(tmp_path, text, on_error="skip"):
    file = tmp_path / "pairs.tsv"
    file.write_text(text, encoding="utf-8")
    report = BadRows()
    return list(read_pairs([file], on_error=on_error, report=report, longest=250)), report


def test_a_tab_inside_a_sentence_is_a_bad_line(tmp_path):
    text = "a dog\tein Hund\n" * 5 + "a \tcat\teine Katze\n" + "a cow\teine Kuh\n"
    pairs, report = columns_of(tmp_path, text)
    assert len(pairs) == 6
    assert ("a", "cat") not in pairs
    wanted = "pairs.tsv:6: wrong columns: got 3, the file has 2: a tab inside a sentence?"
    assert str(report.first[0]).endswith(wanted)
    with pytest.raises(DataError, match="wrong columns: got 3, the file has 2"):
        columns_of(tmp_path, text, "stop")


def test_a_third_column_is_named(tmp_path):
    pairs, report = columns_of(tmp_path, "Go.\tVe.\tCC-BY 2.0 (France)\n" * 3 + "Hi.\tHola.\n")
    assert pairs == [("Go.", "Ve.")] * 3
    assert report.notes == ["3 columns: source, target; the third is not read ('CC-BY 2.0 (France)')"]
    assert report.count == 1


@pytest.mark.parametrize("header", ["source\ttarget", "English\tSpanish", "en\tde", '"src"\t"tgt"'])
def test_a_header_line_is_no_pair(tmp_path, header):
    pairs, report = columns_of(tmp_path, f"{header}\nGo.\tVe.\n")
    assert pairs == [("Go.", "Ve.")]
    assert "is a header" in report.summary()[0]


def test_sentences_are_no_header(tmp_path):
    pairs, _ = columns_of(tmp_path, "No\tNo\nSource of life\tFuente de vida\n")
    assert len(pairs) == 2
