"""Test sets: the user's pairs, or what a run held out, read once and never whole in memory."""

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
from regard.tasks.run_settings import Reading, RunSettings, held_out_of, settings_of, told
from regard.tasks.translation.data import PairFiles, TranslationDataConfig
from regard.tokenizers.words import split_words, whitespace_word_ids


@dataclass(frozen=True)
class Item:
    """A pair to be scored; `sure` and `possible` are its gold links, in words between spaces, where they are known."""

    source: str
    target: str
    sure: frozenset[Link] | None = None
    possible: frozenset[Link] = frozenset()


class PairReading(Reading):
    """How pairs to be scored are read."""

    max_length: int = Field(
        TranslationDataConfig().max_length, ge=1, description="words a side; a line with more is bad"
    )


class _NoneLeftOut(BadRows):
    """A line left out would shift all that follow against the lines of a file with alignments."""

    def add(self, bad: BadRow) -> None:
        raise DataError(f"{bad}; mend it: beside alignments no line is left out") from None


@dataclass(frozen=True)
class TestSet:
    """Pairs to be read once, and what was wrong with their files."""

    items: Iterator[Item]
    bad: BadRows = field(default_factory=BadRows)


def data_of(folder: Path) -> str:
    """What a run was trained on and how it was split, as one text."""
    run = _held_out_of(folder)
    return repr((run.data, run.settings["data"]))


def test_set(
    folder: Path,
    paths: Sequence[Path],
    *,
    strict: bool,
    gold: Path | None,
    most: int | None,
    assignments: Sequence[str],
) -> TestSet:
    if paths:
        reading = _reading(folder, strict, assignments)
        bad = _NoneLeftOut() if strict else BadRows()
        on_error: OnError = "skip" if strict else reading.on_error
        pairs = read_pairs(paths, on_error=on_error, report=bad, longest=reading.max_length)
        items = _with_gold(pairs, gold) if gold else (Item(*pair) for pair in pairs)
        return TestSet(islice(items, most), bad)
    if gold:
        raise DataError(f"--gold {gold} belongs to test data; name the data as well")
    run = _held_out_of(folder)
    config = TranslationDataConfig.model_validate(run.settings["data"])
    if run.data:
        return TestSet(islice((Item(*pair) for pair in PairFiles(run.data, config).validation()), most))
    return TestSet(islice(_of_the_world(config), most))


def _reading(folder: Path, strict: bool, assignments: Sequence[str]) -> PairReading:
    run = settings_of(folder)
    config = TranslationDataConfig() if run is None else TranslationDataConfig.model_validate(run.settings["data"])
    reading = told(PairReading(on_error="stop" if strict else "skip", max_length=config.max_length), assignments)
    if strict and reading.on_error == "skip":
        raise ConfigError(
            "data.on_error=skip: beside --gold or --alignments no line is left out; leave it out, and mend bad lines"
        )
    return reading


def _held_out_of(folder: Path) -> RunSettings:
    return held_out_of(folder, f"the test data: regard evaluate {folder} DATA")


def _of_the_world(config: TranslationDataConfig) -> Iterator[Item]:
    for pair in passages(config.validation, most=config.max_sentences, split="validation"):
        source, target = words_by_spaces(pair.source), words_by_spaces(pair.target)
        yield Item(pair.source, pair.target, placed(pair.sure, source, target), placed(pair.possible, source, target))


def words_by_spaces(text: str) -> list[int | None]:
    """For each word the number of the word between spaces that it stands in; None for a mark that stands at a word.

    A full stop at "house." is no word of its own there: its links would pass for the house's.
    """
    places, words = whitespace_word_ids(text), split_words(text)
    lettered = {place for place, word in zip(places, words, strict=True) if _has_letters(word)}
    return [
        None if place in lettered and not _has_letters(word) else place
        for place, word in zip(places, words, strict=True)
    ]


def _has_letters(word: str) -> bool:
    return any(letter.isalnum() for letter in word)


def placed(links: Iterable[Link], source: Sequence[int | None], target: Sequence[int | None]) -> frozenset[Link]:
    """Links between words as links between words between spaces; what has no place there is left out."""
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
