"""Evaluate a translator on the user's pairs or on the validation data of its run, one chunk of pairs at a time."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.data.batches import collate_padded
from regard.errors import DataError, InputError
from regard.files import atomic_write
from regard.generation import Strategy
from regard.metrics.alignment import AERCounts, Link, count_errors, format_pharaoh, words_with_tokens
from regard.metrics.rouge import RougeScorer
from regard.metrics.translation import CorpusScorer
from regard.runtime import runtime_of
from regard.tasks.base import EvaluationRequest
from regard.tasks.translation.pipeline import BATCH_SIZE, Translator
from regard.tasks.translation.test_sets import Item, open_test_set, to_spaced_words, words_by_spaces

CHUNK = 1024  # pairs in memory at a time
MAX_LOGITS = 50_000_000  # in memory at a time
BUCKETS = (5, 10, 15, 20, 30, 50)  # source words; longer sources are in a last bucket


def evaluate(translator: Translator, request: EvaluationRequest) -> dict[str, Any]:
    """BLEU, chrF, exact match, loss, accuracies and alignment error rate; `limit` counts pairs."""
    tests = open_test_set(request)
    metrics = score(translator, tests.items, request.strategy, request.alignments)
    return metrics | ({"bad_lines": tests.bad.summary()} if tests.bad.count else {})


def score(
    translator: Translator, items: Iterable[Item], strategy: Strategy | None = None, alignments: Path | None = None
) -> dict[str, Any]:
    """Metrics of generated translations, and teacher-forced: given the true tokens before each token."""
    has_attention = bool(translator.model.alignment_taps)
    if alignments is not None and not has_attention:
        raise InputError(f"--alignments {alignments}: this model has no attention, so it has no alignments to write")
    totals = _Totals(translator.task.scorers())
    with ExitStack() as files:
        links_file = None if alignments is None else files.enter_context(atomic_write(alignments))
        for chunk in _chunks(iter(items)):
            totals.add_generated(translator, chunk, strategy)
            totals.add_teacher_forced(translator, chunk)
            if links_file or (has_attention and chunk[0].sure is not None):
                for item in chunk:
                    links = _links(translator, item)
                    if links_file:
                        links_file.write(f"{format_pharaoh(links)}\n".encode())
                    if item.sure is not None:
                        totals.errors = totals.errors.plus(count_errors(links, item.sure, item.possible))
        if not totals.generated.pairs:
            raise DataError("no pairs to score")
    return totals.metrics()


class _Totals:
    """Sums over all pairs."""

    def __init__(self, further: Sequence[RougeScorer]) -> None:
        self.generated, self.further = CorpusScorer(), further
        self.buckets = {limit: CorpusScorer() for limit in (*BUCKETS, math.inf)}
        self.cross_entropy, self.tokens = 0.0, 0
        self.correct_forced = self.correct_generated = 0
        self.num_generated, self.unended, self.seconds = 0, 0, 0.0
        self.errors = AERCounts(0, 0, 0, 0)

    def add_generated(self, translator: Translator, items: Sequence[Item], strategy: Strategy | None) -> None:
        start = time.perf_counter()
        answers = translator.run_all([item.source for item in items], strategy, first=self.generated.pairs)
        self.seconds += time.perf_counter() - start
        texts = [answer.text for answer in answers]
        for item, answer in zip(items, answers, strict=True):
            self.generated.add(answer.text, item.target)
            for scorer in self.further:
                scorer.add(answer.text, item.target)
            self.unended += not answer.translations[0].ended
            length = len(item.source.split())
            self.buckets[next(limit for limit in self.buckets if length <= limit)].add(answer.text, item.target)
        self.correct_generated += _correct_tokens(translator, texts, items)
        self.num_generated += sum(map(len, translator.tokenizer.target.encode_batch(texts)))

    def add_teacher_forced(self, translator: Translator, items: Sequence[Item]) -> None:
        for one in _teacher_forced(translator, items):
            self.cross_entropy += one.cross_entropy
            self.correct_forced += one.correct
            self.tokens += one.tokens

    def metrics(self) -> dict[str, Any]:
        generated, tokens, loss = self.generated, self.tokens, self.cross_entropy / self.tokens
        unended = f"{self.unended:,} translations reached the length limit without an end"
        return {
            "pairs": generated.pairs,
            "loss": loss,
            "perplexity": math.exp(min(loss, 700.0)),
            "teacher_forced_accuracy": self.correct_forced / tokens,
            "free_running_accuracy": self.correct_generated / tokens,
            "accuracy_gap": (self.correct_forced - self.correct_generated) / tokens,
            "bleu": generated.bleu.value,
            "chrf": generated.chrf.value,
            "exact_match": generated.exact_match,
            **{name: value for scorer in self.further for name, value in scorer.scores().items()},
            **({"truncated": unended} if self.unended else {}),
            "tokens_per_second": self.num_generated / self.seconds,
            **({"alignment_error_rate": self.errors.aer} if self.errors.sure else {}),
            "bleu_signature": generated.bleu.signature,
            "chrf_signature": generated.chrf.signature,
            "by_length": _by_length(self.buckets),
        }


def _chunks(items: Iterator[Item]) -> Iterator[list[Item]]:
    while several := list(islice(items, CHUNK)):
        yield several


def _by_length(buckets: dict[float, CorpusScorer]) -> list[dict[str, Any]]:
    least, rows = 1, []
    for limit, found in buckets.items():
        words = f"{least}-{limit:g}" if limit < math.inf else f"{least}+"
        least = int(limit) + 1 if limit < math.inf else least
        if found.pairs:
            scores = {"bleu": found.bleu.value, "chrf": found.chrf.value, "exact_match": found.exact_match}
            rows.append({"source_words": words, "pairs": found.pairs, **scores})
    return rows


def _correct_tokens(translator: Translator, texts: Sequence[str], items: Sequence[Item]) -> int:
    """How many tokens of the references, the end included, are at the same position in the generated text."""
    tokenizer = translator.tokenizer.target
    pairs = zip(tokenizer.encode_batch(texts), tokenizer.encode_batch([item.target for item in items]), strict=True)
    return sum(
        sum(a == b for a, b in zip([*one, tokenizer.eos_id], [*other, tokenizer.eos_id], strict=False))
        for one, other in pairs
    )


@dataclass(frozen=True)
class Forced:
    """The model's predictions for one reference, given the true tokens before each."""

    cross_entropy: float  # summed
    correct: int  # tokens that are the most probable
    tokens: int


@torch.inference_mode()
def _teacher_forced(translator: Translator, items: Sequence[Item]) -> Iterator[Forced]:
    names = translator.tokenizer
    sources = names.encode_batch([item.source for item in items])
    targets = names.target.encode_batch([item.target for item in items])
    order = sorted(range(len(items)), key=lambda number: len(targets[number]))
    vocab_size = translator.model.config.output_vocab_size
    while order:
        rows = max(
            1, min(BATCH_SIZE, MAX_LOGITS // (vocab_size * (len(targets[order[-1]]) + 1)))
        )  # the longest are taken first
        order, numbers = order[:-rows], order[-rows:]
        ids = [(sources[number], targets[number]) for number in numbers]
        batch = collate_padded(ids, range(len(ids)), names.bos_id, names.eos_id, names.pad_id)
        batch = runtime_of(translator.model).move(batch)
        logits = translator.model(batch.source, batch.target_in).float()
        truth = batch.target_out
        cross_entropy = logits.logsumexp(-1) - logits.gather(2, truth[..., None])[..., 0]
        logits[..., names.pad_id] = -math.inf
        predicted = logits.argmax(-1)
        for row, number in enumerate(numbers):
            length = len(targets[number]) + 1  # with the end
            correct = int((predicted[row, :length] == truth[row, :length]).sum())
            yield Forced(cross_entropy[row, :length].sum().item(), correct, length)


def _links(translator: Translator, item: Item) -> frozenset[Link]:
    """The attention of the reference over its source, as links between words separated by spaces."""
    names = translator.tokenizer
    source, target = [*names.encode(item.source), names.eos_id], names.target.encode(item.target)
    if not target:
        return frozenset()
    return to_spaced_words(
        translator.align(source, target).links, _spaces(names, source), _spaces(names.target, target)
    )


def _spaces(names: Any, ids: list[int]) -> list[int | None]:
    """For each word of an Alignment the number of the space-separated word that it is a part of."""
    spaces = words_by_spaces(names.decode(ids))
    return [spaces[number] for number in words_with_tokens(names.word_ids(ids))]
