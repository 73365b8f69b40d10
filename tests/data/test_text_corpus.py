"""The split: nothing on both sides, nothing lost, and of one document exactly the last part is kept out."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import override
from regard.data import text_corpus
from regard.data.chunking import TextChunk
from regard.data.sentences import SentenceCorpus
from regard.data.text_corpus import TextCorpus, TextDataConfig, select_documents, select_ends
from regard.errors import ConfigError, DataError


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def joined(pieces) -> list[str]:
    found = [""]
    for piece in pieces:
        found[-1] += piece.text
        found += [""] * piece.is_last
    assert found.pop() == ""
    return found


def test_one_document_is_cut_where_others_cut_it(tmp_path):
    text = "é\n".join(str(number) for number in range(500)) + "!"
    (tmp_path / "novel.txt").write_text(text)
    corpus = TextCorpus([tmp_path / "novel.txt"], TextDataConfig())
    cut = int(0.9 * len(text))
    assert list(corpus.training()) == [TextChunk(text[:cut], is_last=True, is_truncated=True)]
    assert list(corpus.validation()) == [TextChunk(text[cut:], is_last=True, is_truncated=False)]
    assert list(corpus.sample()) == [text[:cut]]
    assert [piece.text for piece in corpus.chunks()] == [text]
    assert (corpus.documents, corpus.characters) == (1, len(text))
    assert corpus.files == [tmp_path / "novel.txt"]
    assert corpus.notes == []


def test_a_document_of_many_pieces(tmp_path):
    text = "It was the best of times.\n" * 150_000  # four pieces or so
    (tmp_path / "novel.txt").write_text(text)
    corpus = TextCorpus([tmp_path / "novel.txt"], TextDataConfig(validation=0.4))
    cut = int(len(text) * 0.6)
    training = list(corpus.training())
    assert len(training) > 1
    assert joined(training) == [text[:cut]]
    assert joined(corpus.validation()) == [text[cut:]]


def test_of_few_documents_each_gives_its_end(tmp_path):
    corpus = TextCorpus([write(tmp_path / "a.jsonl", ["abcdefghij", "k", "lmnopqrstuvwxyzABCDE"])], TextDataConfig())
    assert joined(corpus.training()) == ["abcdefghi", "lmnopqrstuvwxyzABC"]
    assert joined(corpus.validation()) == ["j", "k", "DE"]


@given(
    st.lists(st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4), min_size=1, max_size=4), st.data()
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_pieces_both_parts_together_are_all(documents, data):
    pieces = [TextChunk(text, is_last=i == len(texts) - 1) for texts in documents for i, text in enumerate(texts)]
    whole = ["".join(texts) for texts in documents]
    places = [data.draw(st.integers(0, len(text))) for text in whole]
    first, second = (joined(select_ends(iter(pieces), places, validation)) for validation in (False, True))
    assert first == [text[:place] for text, place in zip(whole, places, strict=True) if place]
    assert second == [text[place:] for text, place in zip(whole, places, strict=True) if place < len(text)]


def test_of_many_documents_whole_ones_are_kept_out(tmp_path):
    texts = [f"Document {number}.\nThe end." for number in range(2000)]
    corpus = TextCorpus([write(tmp_path / "a.jsonl", texts + texts[:50])], TextDataConfig())
    training, validation = joined(corpus.training()), joined(corpus.validation())
    assert sorted(training + validation) == sorted(texts + texts[:50])
    assert not set(training) & set(validation)
    assert 0.08 < len(validation) / len(texts) < 0.12
    assert not any(piece.is_truncated for piece in corpus.training())


def test_a_hundred_documents_are_many_and_fewer_are_few(tmp_path):
    texts = [f"Document number {number}." for number in range(100)]
    many = TextCorpus([write(tmp_path / "a.jsonl", texts)], TextDataConfig())
    assert set(joined(many.training())) < set(texts)
    few = TextCorpus([write(tmp_path / "b.jsonl", texts[:99])], TextDataConfig())
    assert len(joined(few.training())) == len(joined(few.validation())) == 99


def test_a_document_of_many_pieces_stays_whole():
    pieces = [piece for n in range(200) for piece in (TextChunk(f"begin {n}", is_last=False), TextChunk(f"end {n}"))]
    for validation in (False, True):
        found = joined(select_documents(iter(pieces), 0.5, validation))
        assert len(found) > 50
        assert all(text.count("begin") == text.count("end") == 1 for text in found)


def test_a_sample_comes_from_all_over_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(text_corpus, "TOKENIZER_SAMPLE", 3000)
    texts = [f"{number:010}" for number in range(2000)]
    corpus = TextCorpus([write(tmp_path / "a.jsonl", texts)], TextDataConfig())
    taken = [int(text) for text in corpus.sample()]
    assert 250 < len(taken) < 300  # 3,000 of 20,000 characters, of the nine tenths to train on
    assert min(taken) < 20
    assert max(taken) > 1980
    assert not set(taken) & {int(text) for text in joined(corpus.validation())}


def test_what_is_left_out_is_in_the_notes(tmp_path):
    path = write(tmp_path / "a.jsonl", ["one", "two"])
    path.write_text(path.read_text() + "7\n")
    with pytest.raises(DataError, match=r"a\.jsonl:3: wrong JSON"):
        TextCorpus([path], TextDataConfig())
    corpus = TextCorpus([path], TextDataConfig(on_error="skip"))
    assert corpus.notes[0].startswith("bad lines left out: 1 (wrong JSON 1)")
    assert corpus.documents == 2
    assert corpus.settings == {"field": "text", "on_error": "skip", "validation": 0.1}


def test_settings():
    config = override(TextDataConfig(), ["validation=0.05", "tokenizer=my/tokenizer.json", "separate_documents=true"])
    assert (config.validation, config.tokenizer, config.separate_documents) == (0.05, "my/tokenizer.json", True)
    for bad in ("validation=0", "validation=1", "on_error=ignore"):
        with pytest.raises(ConfigError):
            override(TextDataConfig(), [bad])


@pytest.mark.parametrize("kind", [TextCorpus, SentenceCorpus])
def test_a_file_of_the_users_own_is_the_validation_part(tmp_path, kind):
    (tmp_path / "train.txt").write_text("all of this is for training\n")
    (tmp_path / "valid.txt").write_text("and this is not\n")
    corpus = kind([tmp_path / "train.txt"], TextDataConfig(dev=(tmp_path / "valid.txt",)))
    assert "".join(chunk.text for chunk in corpus.training()).strip() == "all of this is for training"
    assert "".join(chunk.text for chunk in corpus.validation()).strip() == "and this is not"
    assert tmp_path / "valid.txt" in corpus.files
    assert corpus.notes == []
    assert corpus.settings != kind([tmp_path / "train.txt"], TextDataConfig()).settings
