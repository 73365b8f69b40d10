"""Score translators on a test set: the user's, or what a run held out. One chunk of pairs is in memory at a time."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import torch

from regard.data.batches import collate_padded
from regard.data.lines import read_lines
from regard.data.pairs import BadLines, DataConfig, heldout_share, is_heldout, read_pairs
from regard.errors import DataError
from regard.files import read_json
from regard.generation import Strategy
from regard.metrics.alignment import ErrorCounts, Link, count_errors, owned, parse_pharaoh, pharaoh
from regard.metrics.translation import Tally
from regard.running import load
from regard.running.translator import BATCH, Translator
from regard.text.tokenizer import by_spaces
from regard.worlds.sentences import sentences

SETTINGS = "run.json"  # what a run writes down of itself
CHUNK = 1024  # pairs in memory at a time
LOGITS = 50_000_000  # numbers in memory at a time
BUCKETS = (5, 10, 15, 20, 30, 50)  # source words; what is longer stands in a last one


@dataclass(frozen=True)
class Item:
    """A pair to be scored; `sure` and `possible` are its gold links, in words between spaces, where they are known."""

    source: str
    target: str
    sure: frozenset[Link] | None = None
    possible: frozenset[Link] = frozenset()


@dataclass(frozen=True)
class TestSet:
    """Pairs to be read once, and what was wrong with their files."""

    items: Iterator[Item]
    bad: BadLines = field(default_factory=BadLines)


def score_folders(
    folders: Sequence[Path],
    paths: Sequence[Path],
    strategies: Sequence[Strategy | None],
    *,
    most: int | None = None,
    gold: Path | None = None,
    alignments: Path | None = None,
) -> dict[str, Any]:
    """Scores on the pairs of these files, or on what each folder's run held out.

    With several folders or strategies (runs or samples with other seeds) the numbers are means, and `deviation` has
    their standard deviations. `alignments` is a file that gets the links of each pair.
    """
    found = []
    if len(folders) > 1 and not paths and len({_data_of(folder) for folder in folders}) > 1:
        raise DataError(f"{', '.join(map(str, folders))} held out different data; name the test data for all of them")
    for folder in folders:
        translator = load(folder)
        for strategy in strategies:
            tests = _test_set(folder, paths, strict=bool(gold or alignments), gold=gold, most=most)
            scores = score(translator, tests.items, strategy, alignments)
            found.append(scores | ({"bad_lines": tests.bad.summary()} if tests.bad.count else {}))
    return found[0] if len(found) == 1 else _mean(found)


def _mean(several: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = [name for name, value in several[0].items() if isinstance(value, float)]
    means = {name: statistics.fmean(one[name] for one in several) for name in numbers}
    deviation = {name: statistics.stdev(one[name] for one in several) for name in numbers}
    by_length = [_mean_row(rows) for rows in zip(*(one["by_length"] for one in several), strict=True)]
    return {"runs": len(several), **several[0], **means, "by_length": by_length, "deviation": deviation}


def _mean_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        name: statistics.fmean(row[name] for row in rows) if isinstance(value, float) else value
        for name, value in rows[0].items()
    }


def _data_of(folder: Path) -> str:
    """What a run was trained on and how it was split, as one text."""
    settings = _settings(folder)
    return repr((settings["data"], settings["settings"]["data"]))


def _test_set(folder: Path, paths: Sequence[Path], *, strict: bool, gold: Path | None, most: int | None) -> TestSet:
    if paths:
        bad = BadLines()
        # A line left out would shift all that follow against the lines of a file with alignments.
        pairs = read_pairs(paths, on_error="stop" if strict else "skip", report=bad, longest=DataConfig().longest)
        items = _with_gold(pairs, gold) if gold else (Item(*pair) for pair in pairs)
        return TestSet(islice(items, most), bad)
    if gold:
        raise DataError(f"--gold {gold} belongs to test data; name the data as well")
    settings = _settings(folder)
    config = DataConfig.model_validate(settings["settings"]["data"])
    if settings["data"]:
        return TestSet(islice((Item(*pair) for pair in _heldout(settings["data"], config)), most))
    return TestSet(islice(_of_the_world(config.heldout), most))


def _settings(folder: Path) -> dict[str, Any]:
    settings = read_json(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
    if "data" not in settings:
        raise DataError(
            f"{folder} does not say what it was trained on; name the test data: regard evaluate {folder} DATA"
        )
    return settings


def _heldout(paths: Sequence[str], config: DataConfig) -> Iterator[tuple[str, str]]:
    def read() -> Iterator[tuple[str, str]]:
        return read_pairs(
            [Path(path) for path in paths], on_error=config.on_error, report=BadLines(), longest=config.longest
        )

    share = heldout_share(sum(1 for _ in read()), config.heldout)
    return (pair for pair in read() if is_heldout(pair[0], share))


def _of_the_world(count: int) -> Iterator[Item]:
    for pair in sentences(count, split="heldout"):
        places = by_spaces(pair.source), by_spaces(pair.target)
        yield Item(pair.source, pair.target, _placed(pair.sure, *places), _placed(pair.possible, *places))


def _placed(links: Iterable[Link], source: Sequence[int], target: Sequence[int]) -> frozenset[Link]:
    return frozenset((source[one], target[other]) for one, other in links)


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


def score(
    translator: Translator, items: Iterable[Item], strategy: Strategy | None = None, alignments: Path | None = None
) -> dict[str, Any]:
    """Scores with the true words before each word (teacher-forced) beside those on the model's own words."""
    free = Tally()
    buckets = {most: Tally() for most in (*BUCKETS, math.inf)}
    surprise, right, right_alone, tokens = 0.0, 0, 0, 0
    errors = ErrorCounts(0, 0, 0, 0)
    with _new_file(alignments) as aligning:
        for several in _chunks(iter(items)):
            answers = translator.run_all([item.source for item in several], strategy, first=free.pairs)
            for item, answer in zip(several, answers, strict=True):
                free.add(answer.text, item.target)
                length = len(item.source.split())
                buckets[next(most for most in buckets if length <= most)].add(answer.text, item.target)
            right_alone += _right(translator, [answer.text for answer in answers], several)
            for found in _teacher_forced(translator, several):
                surprise, right, tokens = surprise + found.surprise, right + found.right, tokens + found.tokens
            if aligning or several[0].sure is not None:
                for item in several:
                    links = _links(translator, item)
                    if aligning:
                        aligning.write(pharaoh(links) + "\n")
                    if item.sure is not None:
                        errors = errors.plus(count_errors(links, item.sure, item.possible))
    if not free.pairs:
        raise DataError("no pairs to score")
    return {
        "pairs": free.pairs,
        "loss": surprise / tokens,
        "perplexity": math.exp(min(surprise / tokens, 700.0)),
        "teacher_forced_accuracy": right / tokens,
        "free_running_accuracy": right_alone / tokens,
        "gap": (right - right_alone) / tokens,
        "bleu": free.bleu.value,
        "chrf": free.chrf.value,
        "exact_match": free.exact_match,
        **({"alignment_error_rate": errors.rate} if errors.sure else {}),
        "bleu_signature": free.bleu.signature,
        "chrf_signature": free.chrf.signature,
        "by_length": _by_length(buckets),
    }


@contextmanager
def _new_file(path: Path | None) -> Iterator[TextIO | None]:
    """A file to write that takes its name when all went well; without a path nothing."""
    if path is None:
        yield None
        return
    unfinished = path.with_name(f".new-{path.name}")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while several := list(islice(items, CHUNK)):
        yield several


def _by_length(buckets: dict[float, Tally]) -> list[dict[str, Any]]:
    least, rows = 1, []
    for most, found in buckets.items():
        words = f"{least}-{most:g}" if most < math.inf else f"{least}+"
        least = int(most) + 1 if most < math.inf else least
        if found.pairs:
            scores = {"bleu": found.bleu.value, "chrf": found.chrf.value, "exact_match": found.exact_match}
            rows.append({"source_words": words, "pairs": found.pairs, **scores})
    return rows


def _right(translator: Translator, texts: Sequence[str], items: Sequence[Item]) -> int:
    """How many tokens of the true targets, the end counted, stand at their place in what the model wrote."""
    names = translator.tokenizer.target
    pairs = zip(names.encode_all(texts), names.encode_all([item.target for item in items]), strict=True)
    return sum(
        sum(a == b for a, b in zip([*one, names.end], [*other, names.end], strict=False)) for one, other in pairs
    )


@dataclass(frozen=True)
class Forced:
    """How the model judges a true target, given the true tokens before each."""

    surprise: float  # summed cross-entropy of the true tokens
    right: int  # of its choices
    tokens: int


@torch.inference_mode()
def _teacher_forced(translator: Translator, items: Sequence[Item]) -> Iterator[Forced]:
    names = translator.tokenizer
    sources = names.encode_all([item.source for item in items])
    targets = names.target.encode_all([item.target for item in items])
    order = sorted(range(len(items)), key=lambda number: len(targets[number]))
    vocabulary = translator.model.config.target_vocabulary or translator.model.config.vocabulary
    while order:
        rows = max(1, min(BATCH, LOGITS // (vocabulary * (len(targets[order[-1]]) + 1))))  # the longest are taken first
        order, numbers = order[:-rows], order[-rows:]
        ids = [(sources[number], targets[number]) for number in numbers]
        batch = collate_padded(ids, range(len(ids)), names.begin, names.end, names.padding)
        logits = translator.model(batch.source, batch.target_in)
        truth = batch.target_out
        surprise = logits.logsumexp(-1) - logits.gather(2, truth[..., None])[..., 0]
        logits[..., names.padding] = -math.inf
        chosen = logits.argmax(-1)
        for row, number in enumerate(numbers):
            length = len(targets[number]) + 1  # with the end
            written = chosen[row, :length]
            yield Forced(
                surprise[row, :length].sum().item(),
                int((written == truth[row, :length]).sum()),
                length,
            )


def _links(translator: Translator, item: Item) -> frozenset[Link]:
    """Where the model looks when it writes the true translation, as links between words between spaces."""
    names = translator.tokenizer
    source, target = [*names.encode(item.source), names.end], names.target.encode(item.target)
    return _placed(translator.align(source, target).links, _spaces(names, source), _spaces(names.target, target))


def _spaces(names: Any, ids: list[int]) -> list[int]:
    """For each word of an Alignment the number of the word between spaces that it stands in."""
    spaces = by_spaces(names.decode(ids))
    return [spaces[number] for number in owned(names.words(ids))]
