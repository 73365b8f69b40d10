"""Every attention mask is made here. True = may attend.

A mask is boolean and broadcasts to (B, H, T, S): T queries attend to S keys. In a packed row, document ids (B, T) name
the document of each token: 0 is padding, k the row's k-th document.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Varlen:
    """An unpadded batch: sequences concatenated in one row, (1, T); each attends to itself and to nothing else."""

    lengths: Sequence[int]

    @property
    def cu_seqlens(self) -> Tensor:
        """(N + 1,) cumulative lengths: sequence n has positions cu_seqlens[n] to cu_seqlens[n + 1]."""
        return torch.tensor([0, *self.lengths]).cumsum(0)

    @property
    def max_seqlen(self) -> int:
        return max(self.lengths, default=0)

    @property
    def document_ids(self) -> Tensor:
        """(1, T): k for the tokens of the k-th sequence."""
        return torch.arange(1, len(self.lengths) + 1).repeat_interleave(torch.tensor(self.lengths))[None]

    @property
    def mask(self) -> Tensor:
        """The same as a mask, (1, 1, T, T)."""
        return same_document(self.document_ids, self.document_ids)


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Queries may attend to every key that is not padding: (B, 1, 1, S) from ids (B, S)."""
    return (ids != pad_id)[:, None, None, :]


def padding_mask_or_none(ids: Tensor, pad_id: int) -> Tensor | None:
    """The same; None where no row is padded: attention without a mask is faster."""
    return none_if_full(padding_mask(ids, pad_id))


def none_if_full(mask: Tensor) -> Tensor | None:
    """The mask, or None where it allows everything. An accelerator is not asked: the host would wait for its answer."""
    return None if mask.is_cpu and bool(mask.all()) else mask


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Query t may attend to keys 0..t: (T, S). With more keys than queries, the queries are the last ones."""
    keys = queries if keys is None else keys
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def same_document(queries: Tensor, keys: Tensor) -> Tensor:
    """Block-diagonal: a query may attend to the keys of its own document, (B, 1, T, S) from document ids."""
    return ((queries[:, :, None] == keys[:, None, :]) & (keys != 0)[:, None, :])[:, None]


def combine(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """What both allow; None allows everything."""
    if first is None:
        return second
    return first if second is None else first & second


def position_ids(document_ids: Tensor) -> Tensor:
    """Each token's position in its own document, from 0: (B, T) from document ids, each document contiguous."""
    index = torch.arange(document_ids.shape[1], device=document_ids.device).expand_as(document_ids)
    is_first = torch.ones_like(document_ids, dtype=torch.bool)
    is_first[:, 1:] = document_ids[:, 1:] != document_ids[:, :-1]
    return index - torch.where(is_first, index, 0).cummax(dim=1).values
