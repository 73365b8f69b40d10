"""Tables: a stray quote costs rows, never time without bound; compressed bombs are read in bounded memory."""

import zstandard

from regard.data.readers import lines, tables


def test_a_quote_that_is_never_closed_is_read_in_linear_time(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,label\ngood,1\n" + 'a","b\n' * 50_000)
    records = list(tables._csv_records(path))
    bad = [record for record in records if isinstance(record[1], tables.RowProblem)]
    assert records[1] == (2, ["good", "1"])
    assert tables.MAX_RUNAWAYS < len(bad) < 2 * tables.MAX_RUNAWAYS
    assert "a row of more than 1,000 lines" in bad[0][1].detail


def test_rows_after_a_stray_quote_are_still_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('text,label\n"open,1\n' + "good,1\n" * 3_000)
    records = list(tables._csv_records(path))
    assert sum(isinstance(record[1], tables.RowProblem) for record in records) == 1
    assert sum(record[1] == ["good", "1"] for record in records) == 3_000


def test_a_bomb_is_read_a_little_at_a_time(tmp_path):
    path = tmp_path / "bomb.zst"
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(b"a\n" * 10_000_000))
    with lines.open_compressed(path) as file:
        assert sum(1 for _ in zip(file, range(100_000), strict=False)) == 100_000
        assert len(file.raw._ready) <= 2**26
