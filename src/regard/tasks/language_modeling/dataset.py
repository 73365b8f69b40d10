"""Windows of a long text as batches: at random places to train on, one after another to be measured on.

The places of a training batch are a function of (seed, step) and nothing else: a run can stop anywhere and go on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import IGNORED, Position, num_samples
from regard.data.stores.token_stream import TokenStream
from regard.errors import DataError

STREAM = 2  # of random numbers: 0 and 1 order sentence pairs


@dataclass(frozen=True)
class TextBatch:
    """Windows of text as tensors. B rows, T positions."""

    ids: Tensor  # (B, T) what the model reads
    targets: Tensor  # (B, T) the token behind each of them; -100: not asked for
    segment_ids: Tensor | None  # (B, T) 0 padding, k the k-th document of the window; None: one text
    tokens: int  # targets that are asked for

    def to(self, device: torch.device | str) -> "TextBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True)
class LanguageText:
    """Text to train on and text kept out, read in windows of `context` tokens.

    `apart`: the documents of a window are numbered, so that attention can stay inside each; the first token of a
    document, which nothing before it tells of, is no target. `evaluated`: held-out tokens that are looked at, the first
    ones; None: all. `begun`: each document begins with a symbol, which is no target either.
    """

    training: TokenStream
    validation: TokenStream
    context: int
    apart: bool = False
    evaluated: int | None = None
    begun: bool = False

    def __post_init__(self) -> None:
        if (tokens := len(self.training)) <= self.context:
            raise DataError(
                f"the text to train on has {tokens:,} tokens, wanted more than the {self.context:,} of a window; "
                f"give more text, or model.context={max(1, tokens // 4)}"
            )
        if (tokens := len(self.validation)) < 2:
            raise DataError(
                f"the text kept out of training has {tokens} tokens, wanted 2 at least; "
                "give more text, or a larger data.validation"
            )

    def training_batches(self, *, max_tokens: int, seed: int, start: Position) -> Iterator[tuple[Position, TextBatch]]:
        """Random windows without end, `max_tokens` positions a batch; each with the position of the next one."""
        rows = max(1, max_tokens // self.context)
        step = start.index
        while True:
            places = num_samples(rows, seed, step, STREAM) % np.uint64(len(self.training) - self.context)
            step += 1
            yield Position(start.epoch, step), self._batch(self.training, places.astype(np.int64), len(self.training))

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[TextBatch]:
        """The text kept out that is looked at, once and in order: each token but the first is a target in one window.

        Of `most` only the first so many windows. The last may be shorter: it is padded.
        """
        rows = max(1, max_tokens // self.context)
        stop = len(self.validation) if self.evaluated is None else min(self.evaluated, len(self.validation))
        places = np.arange(0, stop - 1, self.context)[:most]
        for first in range(0, len(places), rows):
            yield self._batch(self.validation, places[first : first + rows], stop)

    def _batch(self, text: TokenStream, starts: np.ndarray, stop: int) -> TextBatch:
        """Windows that begin there; what comes from `stop` on is no part of the text."""
        places = starts[:, None] + np.arange(self.context + 1)  # (B, T + 1)
        window = np.zeros(places.shape, np.int64)
        for row, start in enumerate(starts.tolist()):
            found = text.tokens(start, min(start + self.context + 1, stop))
            window[row, : len(found)] = found
        asked = real = places[:, 1:] < stop  # (B, T) a token that has a next one
        segment_ids = None
        if self.apart or self.begun:
            documents = text.document_of(places)
            begins = documents[:, 1:] != documents[:, :-1]  # (B, T) the next token is the first of another document
            asked = real & ~begins
        if self.apart:
            segment_ids = torch.from_numpy((1 + np.cumsum(begins, axis=1) - begins) * real)
        return TextBatch(
            ids=torch.from_numpy(window[:, :-1] * real),
            targets=torch.from_numpy(np.where(asked, window[:, 1:], IGNORED)),
            segment_ids=segment_ids,
            tokens=int(asked.sum()),
        )
