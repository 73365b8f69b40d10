"""Batches of masked text: the rows of an epoch, bucketed by length, each with its own mask.

Everything is a function of (seed, epoch, index): a run can stop anywhere and be resumed. Held-out rows always have the
same masks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import (
    ADDED_TOKENS,
    IGNORE_INDEX,
    DataPosition,
    bucket_by_length,
    iterate_epochs,
    shuffle_indices,
    take_positions,
)
from regard.data.chunking import TextChunk
from regard.data.masking import MaskedRow, MaskingConfig, MaskingVocab, mask_row
from regard.data.stores.cache import cached, content_key
from regard.data.stores.documents import WHAT, TokenizedDocuments
from regard.errors import ConfigError, DataError
from regard.tasks.masked_lm.sentence_pairs import pair_rows, parts, row_lengths, text_rows

# Streams of random numbers: 0 and 1 order batches, 2 positions windows.
ORDER, ROWS, MASKS, VALIDATION_ROWS, VALIDATION_MASKS = 3, 4, 5, 6, 7
MIN_CONTEXT = 8  # positions of a row: the special ids, and some tokens


@dataclass(frozen=True)
class MaskedBatch:
    """Rows of masked text as tensors. B rows, T positions, M tokens to predict."""

    ids: Tensor  # (B, T) what the model reads
    segment_ids: Tensor  # (B, T) 0 the first segment, and padding; 1 the second
    positions: Tensor  # (M,) of the tokens to predict: row · T + position
    targets: Tensor  # (M,) their ids
    next: Tensor | None  # (B,) 0 the second segment follows the first, 1 it does not, as in Hugging Face's models
    tokens: int  # M
    pairs: int | None = None  # B of the whole batch, where these are some of its rows; M is that of the whole, too

    def take_rows(self, rows: slice) -> "MaskedBatch":
        """The batch of these rows alone; its loss is their part of the loss of all."""
        positions, taken = take_positions(self.positions, rows, self.ids.shape[1])
        return MaskedBatch(
            ids=self.ids[rows],
            segment_ids=self.segment_ids[rows],
            positions=positions,
            targets=self.targets[taken],
            next=None if self.next is None else self.next[rows],
            tokens=self.tokens,
            pairs=len(self.ids),
        )

    def to(self, device: torch.device | str) -> "MaskedBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


class SentenceTokenizer(Protocol):
    """What is needed of a tokenizer."""

    vocab_size: int

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def to_json(self) -> str: ...


class Corpus(Protocol):
    """Documents to train on and held-out ones, and what they depend on."""

    @property
    def files(self) -> Sequence[Path]: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def training(self) -> Iterator[TextChunk]: ...

    def validation(self) -> Iterator[TextChunk]: ...


def tokenized(
    corpus: Corpus, part: Literal["training", "validation"], tokenizer: SentenceTokenizer
) -> TokenizedDocuments:
    """The sentences of a part of the corpus, from the cache or into it."""
    settings = {"what": WHAT, "part": part, **corpus.settings}
    key = content_key(corpus.files, tokenizer.to_json().encode(), settings)
    pieces = corpus.training if part == "training" else corpus.validation

    def build(folder: Path) -> TokenizedDocuments:
        return TokenizedDocuments.build(pieces(), tokenizer.encode_ids_batch, folder, vocab_size=tokenizer.vocab_size)

    return cached(key, build, TokenizedDocuments.open)


@dataclass(frozen=True)
class MaskedText:
    """Documents to train on and held-out ones, read in rows of at most `context` positions.

    `next_sentence`: a row has two segments, for next-sentence prediction; else one. `validation_tokens`: how many
    held-out positions are used, from the first; None: all.
    """

    training: TokenizedDocuments
    validation: TokenizedDocuments
    context: int
    table: MaskingVocab
    masking: MaskingConfig
    next_sentence: bool = True
    validation_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.context < MIN_CONTEXT:
            raise ConfigError(
                f"a context of {self.context}; wanted at least {MIN_CONTEXT}, for the special ids and some tokens"
            )
        _check(self.training, "to train on", "give more text", self.next_sentence)
        _check(self.validation, "held out", "give more text or a larger data.validation", self.next_sentence)

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """Endless batches of at most `max_tokens` positions; each with the position of the next batch.

        A large corpus is planned in parts: an epoch is one part, and all parts take turns.
        """
        some = parts(self.training)

        def plan(epoch: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
            turn = shuffle_indices(len(some), seed, epoch // len(some), ORDER)[epoch % len(some)]
            rows = self._rows(self.training, some[turn], (seed, epoch, ROWS))
            return [(epoch, rows[indices], indices) for indices in self._batches(rows, max_tokens, seed, epoch)]

        for position, (epoch, rows, indices) in iterate_epochs(plan, start):
            yield position, self._collate(self.training, rows, [(seed, epoch, MASKS, i) for i in indices.tolist()])

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[MaskedBatch]:
        """The held-out rows, or the first `most`, once, always with the same masks."""
        rows = self.validation_rows[:most]
        for indices in self._batches(rows, max_tokens, 0, 0):
            yield self._collate(self.validation, rows[indices], [(0, 0, VALIDATION_MASKS, i) for i in indices.tolist()])

    @cached_property
    def validation_rows(self) -> np.ndarray:
        """The held-out rows that are used."""
        found, seen = [], 0
        for number, part in enumerate(parts(self.validation)):
            rows = self._rows(self.validation, part, (0, number, VALIDATION_ROWS))
            ends = seen + np.cumsum(row_lengths(rows, self.next_sentence))
            if self.validation_tokens is not None:
                rows = rows[: 1 + np.searchsorted(ends, self.validation_tokens)]
            found.append(rows)
            seen = int(ends[-1]) if len(ends) else seen
            if self.validation_tokens is not None and seen >= self.validation_tokens:
                break
        return np.concatenate(found)

    def _rows(self, documents: TokenizedDocuments, some: range, numbers: tuple[int, ...]) -> np.ndarray:
        make = pair_rows if self.next_sentence else text_rows
        return make(documents, some, self.context, numbers)

    def _batches(self, rows: np.ndarray, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        # `bucket_by_length` adds a token to each of two sides; a row has one side, and its special tokens are counted.
        lengths = row_lengths(rows, self.next_sentence) - 2 * ADDED_TOKENS
        return bucket_by_length(lengths, np.zeros_like(lengths), max_tokens=max_tokens, seed=seed, epoch=epoch)

    def _collate(self, documents: TokenizedDocuments, rows: np.ndarray, numbers: list[tuple[int, ...]]) -> MaskedBatch:
        """The rows as tensors, each with the mask that its numbers give."""
        lengths = row_lengths(rows, self.next_sentence)
        shape = len(rows), int(lengths.max())
        ids, targets, segment_ids = (
            np.full(shape, self.table.pad_id),
            np.full(shape, IGNORE_INDEX),
            np.zeros(shape, np.int64),
        )
        for index, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
            found = self._masked(documents, row, numbers[index])
            ids[index, :length], targets[index, :length] = found.ids, found.targets
            segment_ids[index, row[1] - row[0] + 2 : length] = 1  # after the first segment and its special ids
        positions = np.flatnonzero(targets != IGNORE_INDEX)
        return MaskedBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.from_numpy(segment_ids),
            positions=torch.from_numpy(positions),
            targets=torch.from_numpy(targets.ravel()[positions]),
            next=torch.from_numpy(rows[:, 4].copy()) if self.next_sentence else None,
            tokens=len(positions),
        )

    def _masked(self, documents: TokenizedDocuments, row: list[int], numbers: tuple[int, ...]) -> MaskedRow:
        start, stop, second_start, second_stop, _ = row
        bos, eos = np.array([self.table.bos_id]), np.array([self.table.eos_id])
        second = [documents.ids[second_start:second_stop], eos] if self.next_sentence else []
        ids = np.concatenate([bos, documents.ids[start:stop], eos, *second]).astype(np.int64)
        return mask_row(ids, self.table.word_ids(ids), self.masking, self.table, numbers)


def _check(documents: TokenizedDocuments, which: str, remedy: str, next_sentence: bool) -> None:
    """DataError: documents that give no rows."""
    if not len(documents):
        raise DataError(f"the text {which} is empty; {remedy}")
    without = "task.next_sentence=false trains on masked words alone"
    if next_sentence and len(documents) < 2:
        raise DataError(
            f"the text {which} is one document, but half of the sentence pairs need two; put blank lines between "
            f"documents, {remedy}, or {without}"
        )
    if next_sentence and np.diff(documents.documents).max() < 2:
        raise DataError(
            f"no document of the text {which} has two sentences, so there are no pairs; write a sentence a line "
            f"and a blank line between documents, {remedy}, or {without}"
        )
