"""`regard run` on a translator writes the answers of a chunk before it computes the next."""

from types import SimpleNamespace

import pytest

from regard.errors import InputError
from regard.tasks import chunks
from regard.tasks.base import RunRequest
from regard.tasks.translation.pipeline import TranslatedText, Translation
from regard.tasks.translation.run import run


class Shouter:
    """A translator into capitals that remembers what it was given."""

    strategy = None

    def __init__(self):
        self.given, self.task = [], self

    def encode(self, texts):
        if "too long" in texts:
            raise InputError("a text is too long")

    def run_all(self, texts, strategy, *, alignment, first):
        self.given.append((first, list(texts)))
        return [Translation(text, [TranslatedText(text.upper(), 0.0, 0.0, ended=True)]) for text in texts]


def request(*lines):
    options = SimpleNamespace(output=None, alignment=False, strategy=lambda own, scored: own)
    return RunRequest(lines, options, "lines")


def test_answers_come_a_chunk_at_a_time(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 2)
    shouter = Shouter()
    answers = run(shouter, request("a", "b", "", "c", "d", "e"))
    assert next(answers).text == "A"
    assert shouter.given == [(0, ["a", "b"])]
    assert [answer.text for answer in answers] == ["B", "", "C", "D", "E"]
    assert shouter.given[1:] == [(2, ["c", "d"]), (4, ["e"])]


def test_a_text_that_is_refused_is_refused_before_the_first_answer(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 1)
    shouter = Shouter()
    with pytest.raises(InputError, match="too long"):
        next(run(shouter, request("a", "too long")))
    assert not shouter.given
