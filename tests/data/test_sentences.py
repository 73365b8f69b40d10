"""Documents and their sentences: blank lines, long lines, and what is kept out."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import chunking as cutting
from regard.data.chunking import split_at_blank_lines
from regard.data.sentences import LONG_LINE, SentenceCorpus, split_sentences
from regard.data.splits import is_validation
from regard.data.text_corpus import TextDataConfig


def documents(pieces) -> list[str]:
    found, parts = [], []
    for piece in pieces:
        parts.append(piece.text)
        if piece.is_last:
            found.append("".join(parts))
            parts = []
    assert not parts, "every document is closed"
    return found


def test_blank_lines_divide_documents():
    text = "\n\none\ntwo\n\nthree\n \t\n\n\nfour\n\n"
    assert documents(split_at_blank_lines([text])) == ["one\ntwo", "three", "four"]
    assert documents(split_at_blank_lines(["one\ntwo\n"])) == ["one\ntwo\n"]
    assert documents(split_at_blank_lines(["", "\n \n", "\n"])) == []


@given(text=st.text("ab \n", max_size=40), cuts=st.lists(st.integers(0, 40), max_size=4))
@settings(max_examples=200, deadline=None)
def test_it_does_not_matter_where_the_chunks_end(text, cuts):
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:stop] for start, stop in pairwise(places)]
    lines = [[]]
    for line in text.split("\n"):
        if line.strip():
            lines[-1].append(line.strip())
        elif lines[-1]:
            lines.append([])
    found = [split_sentences(document) for document in documents(split_at_blank_lines(chunks))]
    assert found == [document for document in lines if document]


def test_long_documents_come_in_pieces(monkeypatch):
    for name, size in (("CHUNK_CHARACTERS", 20), ("MAX_WITHOUT_NEWLINE", 40), ("MAX_WITHOUT_SPACE", 160)):
        monkeypatch.setattr(cutting, name, size)
    long = "\n".join(f"line {number}" for number in range(30))
    pieces = list(split_at_blank_lines([f"one\n\n{long[:100]}", f"{long[100:]}\n\nthree"]))
    assert documents(pieces) == ["one", long, "three"]
    assert len(pieces) == 6
    data = "x" * 200 + "\n\n" + "y"
    assert [text.strip() for text in documents(split_at_blank_lines(data))] == ["x" * 200, "y"]


LONG = "He left early, and nobody saw him go, for the lamps were out and the street lay dark between the houses. "


def test_a_line_is_a_sentence_and_a_long_line_several():
    assert split_sentences("Dr. Who left. She stayed.\n\n  next \n") == ["Dr. Who left. She stayed.", "next"]
    assert len(LONG * 2) > LONG_LINE
    assert split_sentences(LONG * 2) == [LONG.strip()] * 2


@pytest.mark.parametrize(
    ("behind", "parts"),
    [
        ("She stayed.", ["She stayed."]),
        ("“Why?” She stayed.", ["“Why?”", "She stayed."]),
        ("(Why?) ¿Quién? Él.", ["(Why?)", "¿Quién?", "Él."]),
        ("Of 3.5 it is no end. but this... is none.", ["Of 3.5 it is no end. but this... is none."]),
        ("Étienne came! And went?! Yes…  No", ["Étienne came!", "And went?!", "Yes…", "No"]),
        ("A 他走了。她留下了！", ["A 他走了。", "她留下了！"]),
    ],
)
def test_where_a_sentence_ends(behind, parts):
    assert split_sentences(LONG * 2 + behind) == [LONG.strip()] * 2 + parts
    assert split_sentences(behind) == [behind]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_row_and_every_paragraph_is_a_document(tmp_path):
    text = write(tmp_path / "a.txt", "one\ntwo\n\nthree\n")
    lines = write(tmp_path / "b.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in ("four\n\nfive", "six")))
    corpus = SentenceCorpus([text, lines], TextDataConfig())
    assert corpus.documents == 4
    assert documents(corpus.chunks()) == ["one\ntwo", "three\n", "four\n\nfive", "six"]


def test_few_documents_lose_their_ends_and_it_is_said(tmp_path):
    few = SentenceCorpus([write(tmp_path / "few.txt", "one two three\nfour\n\nfive six seven\n")], TextDataConfig())
    assert any("2 documents are too few to split by documents: the last 10% of each" in note for note in few.notes)
    assert len(documents(few.validation())) == 2
    single = SentenceCorpus([write(tmp_path / "one.txt", "one two three\nfour five\n")], TextDataConfig())
    assert single.notes == ["one document is too few to split by documents: the last 10% of each is for validation"]
    whole = "\n\n".join(f"document {number}\nends" for number in range(300))
    many = SentenceCorpus([write(tmp_path / "many.txt", whole)], TextDataConfig())
    assert many.notes == []
    held, trained = documents(many.validation()), documents(many.training())
    assert len(held) + len(trained) == 300
    assert 10 <= len(held) <= 60
    assert not set(held) & set(trained)
    assert all(is_validation(text, 0.1) for text in held)
    assert many.settings["blank_lines"]


def test_one_document_is_split_at_its_end(tmp_path):
    corpus = SentenceCorpus([write(tmp_path / "one.txt", "word\n" * 100)], TextDataConfig())
    assert corpus.documents == 1
    assert "".join(documents(corpus.training())) + "".join(documents(corpus.validation())) == "word\n" * 100
