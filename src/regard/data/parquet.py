"""The text column of a Parquet file, row group by row group; pyarrow reads it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.data.lines import PACKINGS, check_file
from regard.errors import DataError

ROWS = 256  # read at a time


def read_column(path: Path, column: str) -> Iterator[str | bytes | None]:
    """The values of a column of text: None where there is none, bytes where it is not UTF-8.

    DataError: no pyarrow, no such file (both at once); not Parquet, cut off, no such column, a column of another kind.
    """
    check_file(path)
    if path.suffix.lower() in PACKINGS:
        raise DataError(f"{path}: Parquet is packed inside already; unpack the file and give it as .parquet")
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f"{path}: reading Parquet needs pyarrow; pip install 'regard[parquet]'") from error
    return _values(path, column, pyarrow)


def _values(path: Path, column: str, arrow: Any) -> Iterator[str | bytes | None]:
    try:
        with arrow.parquet.ParquetFile(path) as file:
            _check_column(path, column, file.schema_arrow, arrow.types)
            for batch in file.iter_batches(ROWS, columns=[column]):
                # As bytes first: one text that is no UTF-8 must not cost the others.
                for value in batch.column(0).cast(arrow.large_binary()).to_pylist():
                    yield _text(value)
    except (arrow.ArrowException, OSError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: cannot be read as Parquet ({reason}); get it again") from error


def _check_column(path: Path, column: str, schema: Any, kinds: Any) -> None:
    names = list(schema.names)
    if column not in names:
        raise DataError(f"{path}: has no column {column!r}, only {', '.join(names)}; give one as data.field=…")
    kind = schema.field(column).type
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    if not (kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)):
        raise DataError(f"{path}: column {column!r} holds {kind}, wanted text; give another as data.field=…")


def _text(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value
