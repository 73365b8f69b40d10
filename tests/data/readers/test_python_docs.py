"""The documentation of this machine as a corpus: the same every time, and nothing on both sides."""

import ast
import sysconfig
from pathlib import Path

import pytest

from regard.data.readers import python_docs
from regard.data.readers.python_docs import PythonDocs, documents, files
from regard.data.text_corpus import TextDataConfig

LIBRARY = Path(sysconfig.get_path("stdlib"))


@pytest.fixture
def few(monkeypatch):
    """Three modules of the library instead of all."""
    paths = [LIBRARY / name for name in ("bisect.py", "heapq.py", "shlex.py")]
    monkeypatch.setattr(python_docs, "_modules", lambda: paths)
    return paths


def joined(pieces):
    found = [""]
    for piece in pieces:
        found[-1] += piece.text
        found += [""] * piece.is_last
    assert found.pop() == ""
    return found


def test_documents_are_the_topics_and_the_docstrings_and_the_same_each_time(few):
    texts = joined(documents())
    assert texts == joined(documents())
    assert all(text.strip() for text in texts)
    assert texts[-3].startswith(ast.get_docstring(ast.parse(few[0].read_text())))
    assert any('"if" statement' in text for text in texts[:-3])
    assert files()[1:] == few


def test_both_parts_are_there_and_share_nothing(few):
    corpus = PythonDocs(TextDataConfig(validation=0.2))  # with a fifth kept out these are enough for whole documents
    training, validation = joined(corpus.training()), joined(corpus.validation())
    assert training
    assert validation
    assert not set(training) & set(validation)
    assert sorted(training + validation) == sorted(joined(documents()))
    assert corpus.documents == len(training) + len(validation)
    assert corpus.notes == []
    assert 0.1 < len(validation) / corpus.documents < 0.3


def test_what_is_no_module_is_no_document(few, tmp_path):
    (tmp_path / "a.py").write_text("{{ template }}")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe")
    (tmp_path / "c.py").write_text("x = 1\n")
    (tmp_path / "d.py").write_text('"""One."""\ndef f():\n    "Two."\n')
    before = len(joined(documents()))
    few += sorted(tmp_path.glob("*.py"))
    texts = joined(documents())
    assert texts[before:] == ["One.\n\nTwo.\n\n"]


def test_tests_and_what_others_installed_are_left_out():
    names = [path.relative_to(LIBRARY).parts for path in python_docs._modules()]
    assert ("json", "decoder.py") in names
    assert not any({"site-packages", "test"} & set(parts) for parts in names)


def test_gpt_trains_on_it_without_any_file(here, few, tiny_text, tmp_path):
    words = ["train", "gpt", "-o", tmp_path / "docs", *tiny_text, "data.tokenizer=bytes", "training.steps=2"]
    done = here(*words, "training.evaluate_every=100", "--json")
    assert done.returncode == 0, done.stderr
    assert "held out; a vocabulary of 257" in done.stderr
    assert "the Python documentation on this machine" in (tmp_path / "docs/card.md").read_text()
    assert here("evaluate", tmp_path / "docs", "--limit", 500).returncode == 0
