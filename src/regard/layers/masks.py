"""Every mask is made here. True = may look.

A mask is boolean and broadcasts to (B, H, T, S): T queries look at S keys. What belongs together in a row is
told by segments (B, T): 0 is padding, k the row's k-th sentence. A padded batch has one sentence a row, a packed
one several, and the same function serves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Varlen:
    """Texts behind each other in one row, (1, T), without padding: each sees all of itself, and nothing else."""

    lengths: Sequence[int]

    @property
    def cu_seqlens(self) -> Tensor:
        """(N + 1,) where each begins; the last is where all end."""
        return torch.tensor([0, *self.lengths]).cumsum(0)

    @property
    def max_seqlen(self) -> int:
        return max(self.lengths, default=0)

    @property
    def document_ids(self) -> Tensor:
        """(1, T): k for the words of the k-th."""
        return torch.arange(1, len(self.lengths) + 1).repeat_interleave(torch.tensor(self.lengths))[None]

    @property
    def mask(self) -> Tensor:
        """What they see as a mask, (1, 1, T, T)."""
        return same_document(self.document_ids, self.document_ids)


def padding(ids: Tensor, symbol: int) -> Tensor:
    """Queries may look at every key that is not padding: (B, 1, 1, S) from ids (B, S)."""
    return (ids != symbol)[:, None, None, :]


def padding_if_any(ids: Tensor, symbol: int) -> Tensor | None:
    """The same; None where no row is padded: attention without a mask is faster."""
    return padding(ids, symbol) if (ids == symbol).any() else None


def causal(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Query t may look at keys 0..t: (T, S). With more keys than queries, the queries are the last ones."""
    keys = queries if keys is None else keys
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def same_document(queries: Tensor, keys: Tensor) -> Tensor:
    """Block-diagonal: a query may look at the keys of its own sentence, (B, 1, T, S) from segments."""
    return ((queries[:, :, None] == keys[:, None, :]) & (keys != 0)[:, None, :])[:, None]


def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """What both allow; None allows everything."""
    if first is None:
        return second
    return first if second is None else first & second


def position_ids(document_ids: Tensor) -> Tensor:
    """Each token's place in its own sentence, 0 first: (B, T) from segments whose sentences stand together."""
    index = torch.arange(document_ids.shape[1], device=document_ids.device).expand_as(document_ids)
    begins = torch.ones_like(document_ids, dtype=torch.bool)
    begins[:, 1:] = document_ids[:, 1:] != document_ids[:, :-1]
    return index - torch.where(begins, index, 0).cummax(dim=1).values
