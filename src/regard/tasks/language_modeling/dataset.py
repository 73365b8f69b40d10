"""Batches of a language model: windows of a long text, at random positions for training, consecutive for evaluation.

The positions of a training batch are a function of (seed, step) alone: a run can stop anywhere and be resumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import IGNORE_INDEX, DataPosition, random_uint64
from regard.data.stores.token_stream import TokenStream
from regard.errors import DataError

STREAM = 2  # of random numbers: 0 and 1 order sentence pairs


@dataclass(frozen=True)
class TextBatch:
    """Windows of text as tensors. B rows, T positions."""

    ids: Tensor  # (B, T) what the model reads
    targets: Tensor  # (B, T) the token after each of them; -100: no target
    document_ids: Tensor | None  # (B, T) 0 padding, k the k-th document of the window; None: one text
    tokens: int  # number of targets

    def to(self, device: torch.device | str) -> "TextBatch":
        """The same batch with all its tensors on the device."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=True) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


@dataclass(frozen=True)
class LanguageText:
    """Text to train on and held-out text, read in windows of `context` tokens.

    `separate_documents`: batches have document ids, so that attention stays inside each document; the first token of a
    document is no target, since nothing comes before it. `validation_tokens`: how many held-out tokens are used, from
    the first; None: all. `has_bos`: each document begins with a special id, which is no target either.
    """

    training: TokenStream
    validation: TokenStream
    context: int
    separate_documents: bool = False
    validation_tokens: int | None = None
    has_bos: bool = False

    def __post_init__(self) -> None:
        if (tokens := len(self.training)) <= self.context:
            raise DataError(
                f"the text to train on has {tokens:,} tokens, wanted more than the {self.context:,} of a window; "
                f"give more text, or model.context={max(1, tokens // 4)}"
            )
        if (tokens := len(self.validation)) < 2:
            raise DataError(
                f"the held-out text has {tokens} tokens, wanted 2 at least; give more text, or a larger data.validation"
            )

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, TextBatch]]:
        """Endless batches of random windows, `max_tokens` positions each; each with the position of the next batch."""
        rows = max(1, max_tokens // self.context)
        step = start.index
        while True:
            starts = random_uint64(rows, seed, step, STREAM) % np.uint64(len(self.training) - self.context)
            step += 1
            yield (
                DataPosition(start.epoch, step),
                self._batch(self.training, starts.astype(np.int64), len(self.training)),
            )

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[TextBatch]:
        """The held-out text, once and in order: each token but the first is a target in one window.

        `most`: the first windows only. The last window may be shorter: it is padded.
        """
        rows = max(1, max_tokens // self.context)
        stop = min(self.validation_tokens or len(self.validation), len(self.validation))
        starts = np.arange(0, stop - 1, self.context)[:most]
        for first in range(0, len(starts), rows):
            yield self._batch(self.validation, starts[first : first + rows], stop)

    def _batch(self, text: TokenStream, starts: np.ndarray, stop: int) -> TextBatch:
        """Windows that begin at these positions of the text, which ends at `stop`."""
        positions = starts[:, None] + np.arange(self.context + 1)  # (B, T + 1)
        window = np.zeros(positions.shape, np.int64)
        for row, start in enumerate(starts.tolist()):
            found = text.tokens(start, min(start + self.context + 1, stop))
            window[row, : len(found)] = found
        is_target = real = positions[:, 1:] < stop  # (B, T) a token that has a next one
        document_ids = None
        if self.separate_documents or self.has_bos:
            documents = text.document_of(positions)
            begins = documents[:, 1:] != documents[:, :-1]  # (B, T) the next token is the first of another document
            is_target = real & ~begins
        if self.separate_documents:
            document_ids = torch.from_numpy((1 + np.cumsum(begins, axis=1) - begins) * real)
        return TextBatch(
            ids=torch.from_numpy(window[:, :-1] * real),
            targets=torch.from_numpy(np.where(is_target, window[:, 1:], IGNORE_INDEX)),
            document_ids=document_ids,
            tokens=int(is_target.sum()),
        )
