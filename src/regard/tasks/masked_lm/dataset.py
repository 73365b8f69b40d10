"""Batches of masked text: which rows an epoch has, like lengths together, each with its own mask.

All of it is a function of (seed, epoch, index): a run can stop anywhere and go on. What is kept out is always asked
in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import IGNORED, MARK, Position, bucketed, endless, shuffled
from regard.data.chunking import Piece
from regard.data.masking import Masked, MaskingConfig, PieceTable, mask_row
from regard.data.stores.cache import cached, content_key
from regard.data.stores.documents import WHAT, TokenizedDocuments
from regard.errors import ConfigError, DataError
from regard.tasks.masked_lm.sentence_pairs import pair_rows, parts, row_lengths, text_rows

# Streams of random numbers: 0 and 1 order batches, 2 places windows.
ORDER, ROWS, MASKS, HELDOUT_ROWS, HELDOUT_MASKS = 3, 4, 5, 6, 7
SHORTEST = 8  # positions of a row: the symbols, and something between them


@dataclass(frozen=True)
class MaskedBatch:
    """Rows of masked text as tensors. B rows, T positions, M pieces that are asked for."""

    ids: Tensor  # (B, T) what the model reads
    segment_ids: Tensor  # (B, T) 0 the first segment, and padding; 1 the second
    places: Tensor  # (M,) where the pieces that are asked for stand: row · T + position
    targets: Tensor  # (M,) what they are
    next: Tensor | None  # (B,) 0 the second segment truly follows, 1 it is from elsewhere: as Hugging Face numbers them
    tokens: int  # M

    def to(self, device: torch.device | str) -> "MaskedBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


class Pieces(Protocol):
    """What is asked of a tokenizer here."""

    vocab_size: int

    def encode_ids_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def to_json(self) -> str: ...


class Corpus(Protocol):
    """Documents to train on and documents kept out, and what they depend on."""

    @property
    def files(self) -> Sequence[Path]: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def training(self) -> Iterator[Piece]: ...

    def validation(self) -> Iterator[Piece]: ...


def tokenized(corpus: Corpus, part: Literal["training", "validation"], tokenizer: Pieces) -> TokenizedDocuments:
    """The sentences of a part of the corpus, from the cache or into it."""
    settings = {"what": WHAT, "part": part, **corpus.settings}
    key = content_key(corpus.files, tokenizer.to_json().encode(), settings)
    pieces = corpus.training if part == "training" else corpus.validation

    def build(folder: Path) -> TokenizedDocuments:
        return TokenizedDocuments.build(pieces(), tokenizer.encode_ids_batch, folder, size=tokenizer.vocab_size)

    return cached(key, build, TokenizedDocuments.open)


@dataclass(frozen=True)
class MaskedText:
    """Documents to train on and documents kept out, read in rows of at most `context` positions.

    `next_sentence`: a row is two segments, and the question is whether the second follows; else it is one.
    `evaluated`: held-out positions that are looked at, the first ones; None: all.
    """

    training: TokenizedDocuments
    validation: TokenizedDocuments
    context: int
    table: PieceTable
    masking: MaskingConfig
    next_sentence: bool = True
    evaluated: int | None = None

    def __post_init__(self) -> None:
        if self.context < SHORTEST:
            raise ConfigError(
                f"a context of {self.context}; wanted at least {SHORTEST}, for the symbols and some words"
            )
        _check(self.training, "to train on", "give more text", self.next_sentence)
        _check(
            self.validation, "kept out of training", "give more text or a larger data.validation", self.next_sentence
        )

    def training_batches(
        self, *, max_tokens: int, seed: int, start: Position
    ) -> Iterator[tuple[Position, MaskedBatch]]:
        """Batches without end, at most `max_tokens` positions each; each with the position behind it.

        An epoch is a part of a corpus that is too large to be planned at once; all parts have their turn in each round.
        """
        some = parts(self.training)

        def plan(epoch: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
            turn = shuffled(len(some), seed, epoch // len(some), ORDER)[epoch % len(some)]
            rows = self._rows(self.training, some[turn], (seed, epoch, ROWS))
            return [(epoch, rows[indices], indices) for indices in self._batches(rows, max_tokens, seed, epoch)]

        for position, (epoch, rows, indices) in endless(plan, start):
            yield position, self._collate(self.training, rows, [(seed, epoch, MASKS, i) for i in indices.tolist()])

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[MaskedBatch]:
        """The held-out rows that are looked at, once, always with the same masks; of `most` only the first so many."""
        rows = self.validation_rows[:most]
        for indices in self._batches(rows, max_tokens, 0, 0):
            yield self._collate(self.validation, rows[indices], [(0, 0, HELDOUT_MASKS, i) for i in indices.tolist()])

    @cached_property
    def validation_rows(self) -> np.ndarray:
        """All that are looked at."""
        found, seen = [], 0
        for number, part in enumerate(parts(self.validation)):
            rows = self._rows(self.validation, part, (0, number, HELDOUT_ROWS))
            ends = seen + np.cumsum(row_lengths(rows, self.next_sentence))
            if self.evaluated is not None:
                rows = rows[: 1 + np.searchsorted(ends, self.evaluated)]
            found.append(rows)
            seen = int(ends[-1]) if len(ends) else seen
            if self.evaluated is not None and seen >= self.evaluated:
                break
        return np.concatenate(found)

    def _rows(self, documents: TokenizedDocuments, some: range, numbers: tuple[int, ...]) -> np.ndarray:
        make = pair_rows if self.next_sentence else text_rows
        return make(documents, some, self.context, numbers)

    def _batches(self, rows: np.ndarray, max_tokens: int, seed: int, epoch: int) -> list[np.ndarray]:
        # Rows have one side here; what is counted for the other, and for the marks of both, is taken off.
        lengths = row_lengths(rows, self.next_sentence) - 2 * MARK
        return bucketed(lengths, np.zeros_like(lengths), max_tokens=max_tokens, seed=seed, epoch=epoch)

    def _collate(self, documents: TokenizedDocuments, rows: np.ndarray, numbers: list[tuple[int, ...]]) -> MaskedBatch:
        """The rows as tensors, each masked by its numbers."""
        lengths = row_lengths(rows, self.next_sentence)
        shape = len(rows), int(lengths.max())
        ids, targets, segment_ids = (
            np.full(shape, self.table.pad_id),
            np.full(shape, IGNORED),
            np.zeros(shape, np.int64),
        )
        for place, (row, length) in enumerate(zip(rows.tolist(), lengths.tolist(), strict=True)):
            found = self._masked(documents, row, numbers[place])
            ids[place, :length], targets[place, :length] = found.ids, found.targets
            segment_ids[place, row[1] - row[0] + 2 : length] = 1  # behind the first segment, its begin and its end
        places = np.flatnonzero(targets != IGNORED)
        return MaskedBatch(
            ids=torch.from_numpy(ids),
            segment_ids=torch.from_numpy(segment_ids),
            places=torch.from_numpy(places),
            targets=torch.from_numpy(targets.ravel()[places]),
            next=torch.from_numpy(rows[:, 4].copy()) if self.next_sentence else None,
            tokens=len(places),
        )

    def _masked(self, documents: TokenizedDocuments, row: list[int], numbers: tuple[int, ...]) -> Masked:
        start, stop, begin, end, _ = row
        opened, closed = np.array([self.table.bos_id]), np.array([self.table.eos_id])
        second = [documents.ids[begin:end], closed] if self.next_sentence else []
        ids = np.concatenate([opened, documents.ids[start:stop], closed, *second]).astype(np.int64)
        return mask_row(ids, self.table.words(ids), self.masking, self.table, numbers)


def _check(documents: TokenizedDocuments, which: str, remedy: str, next_sentence: bool) -> None:
    """DataError: documents that no rows can be made of."""
    if not len(documents):
        raise DataError(f"the text {which} has no words at all; {remedy}")
    without = "task.next_sentence=false asks for masked words alone"
    if next_sentence and len(documents) < 2:
        raise DataError(
            f"the text {which} is one document, but every other pair of segments is of two; put blank lines between "
            f"documents, {remedy}, or {without}"
        )
    if next_sentence and np.diff(documents.documents).max() < 2:
        raise DataError(
            f"no document of the text {which} has two sentences, so that none follows another; write a sentence a line "
            f"and a blank line between documents, {remedy}, or {without}"
        )
