"""The likeliest word without all logits: of a table of many thousand words only a few are compared exactly.

The table in int8, a quarter of the bytes and of the arithmetic, tells each logit up to a margin that is certain; words
that by their margins cannot be the likeliest are passed over. What is left, mostly a handful, is compared in float32 as
it is (kernels/screening.c). The answer is the exact one. What gets lost are the logits themselves, and with
them the probability of the word: this is for writing, not for scoring.
"""

from collections.abc import Collection

import torch
from torch import Tensor

from regard import kernels

LARGE = 2**20  # numbers of a table from which it pays


class ArgmaxShortlist:
    """A table (V, D), and a bias (V,) where there is one, as they are now; made anew when they have changed."""

    def __init__(self, table: Tensor, bias: Tensor | None = None) -> None:
        self._table, self._bias = table.detach(), bias
        self._near = kernels.rounded(table)
        self._biases: dict[frozenset[int], Tensor | None] = {}

    @classmethod
    def of(cls, table: Tensor, bias: Tensor | None = None) -> "ArgmaxShortlist | None":
        """None where it cannot be had, or does not pay."""
        if table.numel() < LARGE or not kernels.fits(table) or not kernels.int8_here():
            return None
        argmax_shortlist = cls(table, bias)
        # Of damaged weights there is none: all logits say what is wrong.
        whole = argmax_shortlist._near.errors.isfinite().all() and (bias is None or bias.isfinite().all())
        return argmax_shortlist if whole else None

    @property
    def vocab_size(self) -> int:
        return len(self._table)

    def likeliest(self, hidden: Tensor, banned: frozenset[int] = frozenset()) -> Tensor:
        """For words (B, D) the ids (B,) with the largest logits, but for the banned ones; -1: a logit is no number."""
        if banned not in self._biases:
            self._biases[banned] = self._bias_without(banned)
        return kernels.likeliest(hidden, self._table, self._near, self._biases[banned])

    def _bias_without(self, banned: frozenset[int]) -> Tensor | None:
        if not banned:
            return self._bias
        bias = self._table.new_zeros(len(self._table)) if self._bias is None else self._bias.clone()
        bias[torch.tensor(sorted(banned))] = -torch.inf
        return bias


def likeliest_written_out(hidden: Tensor, table: Tensor, bias: Tensor | None, banned: Collection[int]) -> Tensor:
    """The same by all logits."""
    logits = torch.nn.functional.linear(hidden, table, bias)
    logits[:, sorted(banned)] = -torch.inf
    return logits.argmax(-1)
