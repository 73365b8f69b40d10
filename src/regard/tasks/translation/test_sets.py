"""Test sets of pairs: the user's files, or the validation data of a run; read as a stream."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pydantic import Field

from regard.data.readers.bad_rows import BadRow, BadRows, OnError
from regard.data.readers.lines import read_lines
from regard.data.readers.pairs import read_pairs
from regard.errors import ConfigError, DataError
from regard.metrics.alignment import Link, parse_pharaoh
from regard.synthetic.translation.passages import passages
from regard.tasks.base import EvaluationRequest
from regard.tasks.run_settings import ReadingConfig, override_reading, read_run_settings, validation_of
from regard.tasks.translation.data import SYNTHETIC_VALIDATION, PairFiles, TranslationDataConfig
from regard.tokenizers.words import split_words, whitespace_word_ids


@dataclass(frozen=True)
class Item:
    """A pair to be scored; `sure` and `possible` are its gold links between space-separated words, where known."""

    source: str
    target: str
    sure: frozenset[Link] | None = None
    possible: frozenset[Link] = frozenset()


class PairReadingConfig(ReadingConfig):
    """How pairs to be scored are read."""

    max_length: int = Field(
        TranslationDataConfig().max_length, ge=1, description="words a side; a line with more is bad"
    )


class _StrictLines(BadRows):
    """Raises at a bad line: skipping it would shift all later pairs against the lines of an alignment file."""

    def add(self, bad: BadRow) -> None:
        raise DataError(f"{bad}; correct it: with alignments no line can be skipped") from None


@dataclass(frozen=True)
class TestSet:
    """Pairs to be scored, read once, and the bad lines of their files."""

    items: Iterator[Item]
    bad: BadRows = field(default_factory=BadRows)


def open_test_set(request: EvaluationRequest) -> TestSet:
    strict = bool(request.gold or request.alignments)
    if request.paths:
        reading = _reading(request, strict)
        bad = _StrictLines() if strict else BadRows()
        on_error: OnError = "skip" if strict else reading.on_error
        pairs = read_pairs(request.paths, on_error=on_error, report=bad, longest=reading.max_length)
        items = _with_gold(pairs, request.gold) if request.gold else (Item(*pair) for pair in pairs)
        return TestSet(islice(items, request.limit), bad)
    if request.gold:
        raise DataError(f"--gold {request.gold} belongs to test data; name the data as well")
    run = validation_of(request.folder, f"the test data: regard evaluate {request.folder} DATA")
    config = TranslationDataConfig.model_validate(run.settings["data"])
    items = (Item(*pair) for pair in PairFiles(run.data, config).validation()) if run.data else _synthetic(config)
    return TestSet(islice(items, request.limit))


def _reading(request: EvaluationRequest, strict: bool) -> PairReadingConfig:
    run = read_run_settings(request.folder)
    config = TranslationDataConfig() if run is None else TranslationDataConfig.model_validate(run.settings["data"])
    default = PairReadingConfig(on_error="stop" if strict else "skip", max_length=config.max_length)
    reading = override_reading(default, request.assignments)
    if strict and reading.on_error == "skip":
        raise ConfigError(
            "data.on_error=skip: with --gold or --alignments no line is skipped; leave it out, and correct bad lines"
        )
    return reading


def _synthetic(config: TranslationDataConfig) -> Iterator[Item]:
    count = config.validation or SYNTHETIC_VALIDATION
    for pair in passages(count, most=config.max_sentences, split="validation"):
        source, target = words_by_spaces(pair.source), words_by_spaces(pair.target)
        sure, possible = (to_spaced_words(links, source, target) for links in (pair.sure, pair.possible))
        yield Item(pair.source, pair.target, sure, possible)


def words_by_spaces(text: str) -> list[int | None]:
    """For each word the number of the space-separated word it is a part of; None for punctuation attached to a word.

    The full stop of "house." is not a space-separated word: its links would count as links of "house".
    """
    numbers, words = whitespace_word_ids(text), split_words(text)
    lettered = {number for number, word in zip(numbers, words, strict=True) if _has_letters(word)}
    return [
        None if number in lettered and not _has_letters(word) else number
        for number, word in zip(numbers, words, strict=True)
    ]


def _has_letters(word: str) -> bool:
    return any(letter.isalnum() for letter in word)


def to_spaced_words(
    links: Iterable[Link], source: Sequence[int | None], target: Sequence[int | None]
) -> frozenset[Link]:
    """Links between words as links between space-separated words; links of attached punctuation are dropped."""
    found = ((source[one], target[other]) for one, other in links)
    return frozenset((one, other) for one, other in found if one is not None and other is not None)


def _with_gold(pairs: Iterator[tuple[str, str]], gold: Path) -> Iterator[Item]:
    lines = read_lines(gold)
    for number, pair in enumerate(pairs, 1):
        line = next(lines, None)
        if line is None:
            raise DataError(f"{gold} ends before line {number}; wanted one line of links for each pair")
        try:
            sure, possible = parse_pharaoh(line.decode())
            sizes = [len(side.split()) for side in pair]
            for link in sure | possible:
                if link[0] >= sizes[0] or link[1] >= sizes[1]:
                    raise ValueError(
                        f"link {link[0]}-{link[1]}, but there are {sizes[0]} and {sizes[1]} words, from 0 on"
                    )
            yield Item(*pair, sure, possible)
        except ValueError as error:
            raise DataError(f"{gold}:{number}: {error}; wanted links such as 0-0 1-2 and 2?3") from error
    if next(lines, None) is not None:
        raise DataError(f"{gold} has more lines than there are pairs; wanted one line of links for each pair")
