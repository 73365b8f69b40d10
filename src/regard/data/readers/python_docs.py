"""The Python documentation on this machine: the default text when the user gives none.

The language reference that `help()` shows (pydoc_data.topics), and the docstrings of the standard library, parsed from
its source files without importing them. One document a topic, one a module.
"""

import ast
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from regard.data.chunking import TextChunk, chunk_text
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.text_corpus import TextCorpus, TextDataConfig

SKIPPED_FOLDERS = {
    "test",
    "tests",
    "site-packages",
    "dist-packages",
    "idle_test",
    "__pycache__",
    "pydoc_data",
    "lib2to3",
}


class PythonDocs(TextCorpus):
    """The documentation as a text corpus."""

    def __init__(self, config: TextDataConfig) -> None:
        super().__init__(files(), config)

    def _read(self, paths: Sequence[Path], report: BadRows) -> Iterator[TextChunk]:
        return read_documents(paths, report=report) if paths == self.dev else documents()


def documents() -> Iterator[TextChunk]:
    """The documents, in a fixed order for each Python version."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        yield from chunk_text(topics[name].strip() + "\n")
    for path in _modules():
        if text := _docstrings(path):
            yield from chunk_text(text)


def files() -> list[Path]:
    """The source files of the documents."""
    spec = find_spec("pydoc_data.topics")
    assert spec is not None
    assert spec.origin is not None
    return [Path(spec.origin), *_modules()]


def _modules() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    return sorted(path for path in library.rglob("*.py") if not SKIPPED_FOLDERS & set(path.relative_to(library).parts))


def _docstrings(path: Path) -> str:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # templates that are not valid modules
        return ""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
    return "".join(f"{text}\n\n" for text in found if text)
