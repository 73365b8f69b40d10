"""Prompts of different length side by side: where each begins, and what a writer carries from step to step.

A row's prompt stands at its right end, so that the next token of every row has the same column. What stands before it
is blank: segment 0, which no word looks at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import InputError
from regard.layers import masks
from regard.layers.kv_cache import KVCache


@dataclass
class PromptState:
    """What writing on from prompts carries: the last token of each, the cache of the others, and the blanks."""

    first: Tensor  # (B,) the tokens to step first
    caches: list[KVCache]  # of each block
    blanks: Tensor | None  # (B,) blank columns before each row's prompt; None: no row has any

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; rows may be (sentences, beams)."""
        rows = rows.flatten()
        self.first = self.first[rows]
        self.blanks = None if self.blanks is None else self.blanks[rows]
        for cache in self.caches:
            cache.reorder(rows)

    @property
    def length(self) -> int:
        """Columns seen so far."""
        return self.caches[0].length

    def place(self) -> Tensor | None:
        """The place (B, 1) of the next token in its own text; None: its column, in every row."""
        return None if self.blanks is None else (self.length - self.blanks)[:, None]

    def mask(self) -> Tensor | None:
        """What the next token may look at, itself counted: (B, 1, 1, S)."""
        if self.blanks is None:
            return None
        columns = torch.arange(self.length + 1, device=self.blanks.device)
        return (columns >= self.blanks[:, None])[:, None, None]


def prefill_inputs(
    prompts: Sequence[Sequence[int]], layers: int, device: torch.device
) -> tuple[PromptState, Tensor, Tensor | None, Tensor | None]:
    """A state with empty caches, and what to read into them: the ids (B, T) but for each last one, places, mask."""
    ids, blanks = side_by_side(prompts, device)
    before = ids[:, :-1]
    position_ids, mask = of_segment_ids(segment_ids_of(blanks, before.shape[1]))
    return PromptState(ids[:, -1], [KVCache() for _ in range(layers)], blanks), before, position_ids, mask


def side_by_side(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Prompts as ids (B, T), each at the right end of its row, and how many blanks (B,) stand before it."""
    for number, prompt in enumerate(prompts):
        if not len(prompt):
            raise InputError(f"prompt {number + 1} has no tokens; wanted one at least, such as the begin symbol")
    lengths = [len(prompt) for prompt in prompts]
    ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    for row, prompt in zip(ids, prompts, strict=True):
        row[len(row) - len(prompt) :] = torch.as_tensor(prompt)
    blanks = max(lengths) - torch.tensor(lengths)
    return ids.to(device), blanks.to(device) if blanks.any() else None


def segment_ids_of(blanks: Tensor | None, length: int) -> Tensor | None:
    """(B, T): 0 where a row is blank, 1 where its prompt stands."""
    if blanks is None:
        return None
    return (torch.arange(length, device=blanks.device) >= blanks[:, None]).long()


def of_segment_ids(segment_ids: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The places (B, T) and the mask (B, 1, T, T) of segments; without them, those of a plain row."""
    if segment_ids is None:
        return None, None
    return masks.position_ids(segment_ids), masks.same_segment(segment_ids, segment_ids)
