"""The Python documentation on this machine: the text that is there when the user gives none.

The language reference that `help()` reads (pydoc_data.topics), and the docstrings of the standard library, read from
its files without running any of them. One document a topic, one a module.
"""

import ast
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from regard.data.chunking import Piece, pieces_of
from regard.data.readers.pairs import BadLines
from regard.data.text_corpus import TextCorpus, TextDataConfig

LEFT_OUT = {"test", "tests", "site-packages", "dist-packages", "idle_test", "__pycache__", "pydoc_data", "lib2to3"}


class PythonDocs(TextCorpus):
    """The documentation as a corpus like the user's own."""

    def __init__(self, config: TextDataConfig) -> None:
        super().__init__(files(), config)

    def _read(self, report: BadLines) -> Iterator[Piece]:
        return documents()


def documents() -> Iterator[Piece]:
    """The documents, in an order that only the Python version decides."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield from pieces_of(topics[name].strip() + "\n")
    for path in _modules():
        if text := _docstrings(path):
            yield from pieces_of(text)


def files() -> list[Path]:
    """What the documents are made of."""
    spec = find_spec("pydoc_data.topics")
    assert spec is not None
    assert spec.origin is not None
    return [Path(spec.origin), *_modules()]


def _modules() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in library.rglob("*.py") if not LEFT_OUT & set(path.relative_to(library).parts))


def _docstrings(path: Path) -> str:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # templates that only look like modules
        return ""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
    return "".join(f"{text}\n\n" for text in found if text)
