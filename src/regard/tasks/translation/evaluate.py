"""Score translators on a test set: the user's, or what a run held out. One chunk of pairs is in memory at a time."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.data.batches import collate_padded
from regard.errors import ConfigError, DataError, InputError
from regard.files import atomic_write
from regard.generation import Beam, Greedy, Strategy
from regard.generation.strategies import length_penalty_of
from regard.metrics.alignment import AERCounts, Link, count_errors, format_pharaoh, words_with_tokens
from regard.metrics.translation import CorpusScorer
from regard.tasks.captioning.evaluate import score_pictures
from regard.tasks.captioning.pipeline import Captioner
from regard.tasks.classification.evaluate import score_labels, score_tags
from regard.tasks.classification.pipeline import Classifier
from regard.tasks.language_modeling.evaluate import score_text
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.loading import load
from regard.tasks.masked_lm.evaluate import score_masked
from regard.tasks.masked_lm.pipeline import FillMask
from regard.tasks.tagging.pipeline import Tagger
from regard.tasks.translation.pipeline import BATCH, Translator
from regard.tasks.translation.test_sets import Item, data_of, placed, test_set, words_by_spaces
from regard.tasks.vision_language.evaluate import score_answers, score_matching
from regard.tasks.vision_language.pipeline import ImageTextMatcher, Pointer, VisualQuestionAnswering

# What scores a model that does not translate.
SCORERS: dict[type, Callable[..., dict[str, Any]]] = {
    TextGenerator: score_text,
    FillMask: score_masked,
    Classifier: score_labels,
    Tagger: score_tags,
    ImageTextMatcher: score_matching,
    VisualQuestionAnswering: score_answers,
    Pointer: score_answers,
}
TOLD = (Translator, TextGenerator, FillMask, Classifier, Tagger)  # those whose files are tables or text
CHUNK = 1024  # pairs in memory at a time
LOGITS = 50_000_000  # numbers in memory at a time
BUCKETS = (5, 10, 15, 20, 30, 50)  # source words; what is longer stands in a last one


def score_folders(
    folders: Sequence[Path],
    paths: Sequence[Path],
    strategies: Sequence[Strategy | None],
    *,
    beam: int | None = None,
    most: int | None = None,
    gold: Path | None = None,
    alignments: Path | None = None,
    precision: str = "float32",
    assignments: Sequence[str] = (),
) -> dict[str, Any]:
    """Scores on the pairs, the text or the pictures and captions of these files, or on what each folder's run held out.

    With several folders or strategies (runs or samples with other seeds) the numbers are means, and `deviation` has
    their standard deviations. `beam` is how wide to search in place of a strategy, else as each model does by itself.
    `alignments` is a file that gets the links of each pair. The assignments say how the files are read, where there is
    a choice: data.label=stars.
    """
    found = []
    if assignments and not paths:
        raise ConfigError(f"{assignments[0]} says how files are read, and none is named; name the data to score")
    if len(folders) > 1 and not paths and len({data_of(folder) for folder in folders}) > 1:
        raise DataError(f"{', '.join(map(str, folders))} held out different data; name the test data for all of them")
    for folder in folders:
        translator = load(folder, precision=precision)
        if assignments and type(translator) not in TOLD:
            raise ConfigError(f"{assignments[0]}: the data of {folder} are read in one way only; leave it out")
        if isinstance(translator, Captioner):
            if gold or alignments:
                raise ConfigError(f"{folder} captions pictures: no --gold or --alignments for it")
            tried = _tried(translator.strategy, strategies, beam)
            found += [score_pictures(translator, folder, paths, strategy, most=most) for strategy in tried]
            continue
        if not isinstance(translator, Translator):
            if gold or alignments or beam or any(strategies):
                raise ConfigError(f"{folder} does not translate: no --beam, --seeds, --gold or --alignments for it")
            if type(translator) not in SCORERS:
                raise ConfigError(f"{folder} is a {translator.kind}, which has no scores; wanted one with a head")
            how = {"assignments": assignments} if assignments else {}
            found.append(SCORERS[type(translator)](translator, folder, paths, most=most, **how))
            continue
        for strategy in _tried(translator.strategy, strategies, beam):
            strict = bool(gold or alignments)
            tests = test_set(folder, paths, strict=strict, gold=gold, most=most, assignments=assignments)
            scores = score(translator, tests.items, strategy, alignments)
            found.append(scores | ({"bad_lines": tests.bad.summary()} if tests.bad.count else {}))
    return mean_of(found) | _best(found)


def _tried(own: Strategy, strategies: Sequence[Strategy | None], beam: int | None) -> Sequence[Strategy | None]:
    if beam is None:
        return strategies
    return [Greedy(scored=False) if beam == 1 else Beam(beam, length_penalty_of(own))]


def _best(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of several runs, what has no mean: the confusions and worst errors of the one that scores best."""
    if len(several) == 1:
        return {}
    numbers = [name for name, value in several[0].items() if isinstance(value, float)]
    best = max(several, key=lambda one: one[numbers[0]]) if numbers else several[0]
    return {name: value for name, value in best.items() if name.endswith(("confusion", "worst"))}


def mean_of(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each number of several scores on one test set, and `deviation`, their standard deviations."""
    if len(several) == 1:
        return several[0]
    shared = [name for name in several[0] if all(name in one for one in several)]  # a tag may be found by one alone
    numbers = [name for name in shared if isinstance(several[0][name], float)]
    means = {name: statistics.fmean(one[name] for one in several) for name in numbers}
    deviation = {name: statistics.stdev(one[name] for one in several) for name in numbers}
    alike = {name: value for name, value in several[0].items() if all(one.get(name) == value for one in several)}
    told = alike | means
    mean = {"runs": len(several), **{name: told[name] for name in several[0] if name in told}, "deviation": deviation}
    for name in ("by_length", "by_head"):
        if name in several[0]:
            mean[name] = [mean_of(rows) for rows in zip(*(one[name] for one in several), strict=True)]
    return mean


def score(
    translator: Translator, items: Iterable[Item], strategy: Strategy | None = None, alignments: Path | None = None
) -> dict[str, Any]:
    """Scores with the true words before each word (teacher-forced) beside those on the model's own words."""
    free = CorpusScorer()
    buckets = {most: CorpusScorer() for most in (*BUCKETS, math.inf)}
    surprise, right, right_alone, tokens, written, cut, seconds = 0.0, 0, 0, 0, 0, 0, 0.0
    errors = AERCounts(0, 0, 0, 0)
    looks = bool(translator.model.alignment_taps)
    if alignments is not None and not looks:
        raise InputError(f"--alignments {alignments}: this model has no attention, so it has no alignments to write")
    with ExitStack() as files:
        aligning = None if alignments is None else files.enter_context(atomic_write(alignments))
        for several in _chunks(iter(items)):
            begun = time.perf_counter()
            answers = translator.run_all([item.source for item in several], strategy, first=free.pairs)
            seconds += time.perf_counter() - begun
            for item, answer in zip(several, answers, strict=True):
                free.add(answer.text, item.target)
                cut += not answer.translations[0].ended
                length = len(item.source.split())
                buckets[next(most for most in buckets if length <= most)].add(answer.text, item.target)
            right_alone += _right(translator, [answer.text for answer in answers], several)
            written += sum(map(len, translator.tokenizer.target.encode_batch([answer.text for answer in answers])))
            for found in _teacher_forced(translator, several):
                surprise, right, tokens = surprise + found.surprise, right + found.right, tokens + found.tokens
            if aligning or (looks and several[0].sure is not None):
                for item in several:
                    links = _links(translator, item)
                    if aligning:
                        aligning.write(f"{format_pharaoh(links)}\n".encode())
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
        **({"cut": f"{cut:,} translations did not come to an end within the longest allowed"} if cut else {}),
        "tokens_per_second": written / seconds,
        **({"alignment_error_rate": errors.aer} if errors.sure else {}),
        "bleu_signature": free.bleu.signature,
        "chrf_signature": free.chrf.signature,
        "by_length": _by_length(buckets),
    }


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while several := list(islice(items, CHUNK)):
        yield several


def _by_length(buckets: dict[float, CorpusScorer]) -> list[dict[str, Any]]:
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
    pairs = zip(names.encode_batch(texts), names.encode_batch([item.target for item in items]), strict=True)
    return sum(
        sum(a == b for a, b in zip([*one, names.eos_id], [*other, names.eos_id], strict=False)) for one, other in pairs
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
    sources = names.encode_batch([item.source for item in items])
    targets = names.target.encode_batch([item.target for item in items])
    order = sorted(range(len(items)), key=lambda number: len(targets[number]))
    vocab_size = translator.model.config.output_vocab_size
    while order:
        rows = max(1, min(BATCH, LOGITS // (vocab_size * (len(targets[order[-1]]) + 1))))  # the longest are taken first
        order, numbers = order[:-rows], order[-rows:]
        ids = [(sources[number], targets[number]) for number in numbers]
        batch = collate_padded(ids, range(len(ids)), names.bos_id, names.eos_id, names.pad_id)
        logits = translator.model(batch.source, batch.target_in)
        truth = batch.target_out
        surprise = logits.logsumexp(-1) - logits.gather(2, truth[..., None])[..., 0]
        logits[..., names.pad_id] = -math.inf
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
    source, target = [*names.encode(item.source), names.eos_id], names.target.encode(item.target)
    if not target:
        return frozenset()
    return placed(translator.align(source, target).links, _spaces(names, source), _spaces(names.target, target))


def _spaces(names: Any, ids: list[int]) -> list[int | None]:
    """For each word of an Alignment the number of the word between spaces that it stands in."""
    spaces = words_by_spaces(names.decode(ids))
    return [spaces[number] for number in words_with_tokens(names.word_ids(ids))]
