"""Read columns of a Parquet file, streamed, with pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.data.readers.lines import COMPRESSIONS, check_file
from regard.errors import DataError

BATCH_ROWS = 256  # read at a time

Value = str | bytes | None  # bytes if it is not UTF-8, None if missing


def read_column(path: Path, column: str) -> Iterator[Value]:
    """Stream the values of a text column: None if missing, bytes if not UTF-8.

    DataError: no pyarrow or no such file (at once); not Parquet, truncated, no such column, a column of another type.
    """
    return _text_values(path, column, _arrow(path))


def column_names(path: Path) -> list[str]:
    """The names of the columns. DataError as above."""
    arrow = _arrow(path)
    with _open(path, arrow) as file:
        return list(file.schema_arrow.names)


def read_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[Value, ...]]:
    """Stream the rows of some columns; numbers and booleans as text: 1, 3.8, true.

    DataError as above; a column of lists or records is of another type.
    """
    return _rows(path, columns, _arrow(path))


def _arrow(path: Path) -> Any:
    check_file(path)
    if path.suffix.lower() in COMPRESSIONS:
        raise DataError(f"{path}: Parquet is already compressed; decompress the file and give it as .parquet")
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise DataError(f"{path}: reading Parquet needs pyarrow; pip install 'regard[parquet]'") from error
    return pyarrow


@contextmanager
def _open(path: Path, arrow: Any) -> Iterator[Any]:
    try:
        with arrow.parquet.ParquetFile(path) as file:
            yield file
    except (arrow.ArrowException, OSError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: cannot be read as Parquet ({reason}); get it again") from error


def _text_values(path: Path, column: str, arrow: Any) -> Iterator[Value]:
    with _open(path, arrow) as file:
        _check_column(path, column, file.schema_arrow, arrow.types)
        for batch in file.iter_batches(BATCH_ROWS, columns=[column]):
            yield from _values(batch.column(0), arrow)


def _rows(path: Path, columns: Sequence[str], arrow: Any) -> Iterator[tuple[Value, ...]]:
    with _open(path, arrow) as file:
        for column in columns:
            kind = file.schema_arrow.field(column).type
            if arrow.types.is_nested(kind):
                raise DataError(f"{path}: column {column!r} holds {kind}, wanted one value a row; choose another")
        for batch in file.iter_batches(BATCH_ROWS, columns=list(columns)):
            yield from zip(*(_values(batch.column(column), arrow) for column in columns), strict=True)


def _check_column(path: Path, column: str, schema: Any, kinds: Any) -> None:
    names = list(schema.names)
    if column not in names:
        raise DataError(f"{path}: has no column {column!r}, only {', '.join(names)}; give one as data.field=…")
    kind = schema.field(column).type
    if not _is_text(kind, kinds):
        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        raise DataError(f"{path}: column {column!r} holds {kind}, wanted text; give another as data.field=…")


def _is_text(kind: Any, kinds: Any) -> bool:
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _values(column: Any, arrow: Any) -> list[Value]:
    if not _is_text(column.type, arrow.types):
        column = column.cast(arrow.large_string())
    # As bytes first: one value that is not UTF-8 must not lose the others.
    return [_text(value) for value in column.cast(arrow.large_binary()).to_pylist()]


def _text(value: bytes | None) -> Value:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value
