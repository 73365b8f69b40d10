"""Exact argmax of logits without computing all of them.

The output embeddings in int8, a quarter of the bytes and of the arithmetic, give each logit up to a proven margin. Ids
whose margin excludes them are skipped; the shortlist that is left, mostly a handful, is compared exactly in float32
(csrc/argmax_shortlist.c). The answer is exact. The logits themselves are not computed, and so neither is the
probability of the id: this is for generating, not for scoring.
"""

from collections.abc import Collection
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.ops.dispatch import c_library, check
from regard.ops.quantized import as_float_bias, int8_is_supported, max_activation, padded_columns, quantize_rows

MIN_SIZE = 2**20  # numbers of an embedding matrix from which it pays


class ArgmaxShortlist:
    """Output embeddings (V, D), and a bias (V,) if there is one, as they are now; make a new one when they change."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight, self._bias = weight.detach().contiguous(), as_float_bias(bias, len(weight))
        if self._weight.dtype is not torch.float32:
            raise ValueError(f"the output embeddings are {weight.dtype}, wanted float32")
        self._rows = quantize_rows(weight)
        self._biases: dict[frozenset[int], Tensor | None] = {}

    @classmethod
    def build(cls, weight: Tensor, bias: Tensor | None = None) -> "ArgmaxShortlist | None":
        """None where it is not supported, does not pay, or the weights are not finite: compute all logits."""
        if weight.numel() < MIN_SIZE or not _dispatch(weight, bias):
            return None
        shortlist = cls(weight, bias)
        finite = shortlist._rows.errors.isfinite().all() and (bias is None or bias.isfinite().all())
        return shortlist if finite else None

    @property
    def vocab_size(self) -> int:
        return len(self._weight)

    def argmax(self, hidden: Tensor, banned: frozenset[int] = frozenset()) -> Tensor:
        """For hidden states (B, D) the ids (B,) of the largest logits, without banned ones; -1: not finite, or none."""
        if banned not in self._biases:
            self._biases[banned] = self._bias_without(banned)
        return self._argmax(hidden, self._biases[banned])

    def _argmax(self, hidden: Tensor, bias: Tensor | None) -> Tensor:
        if hidden.dim() != 2 or hidden.dtype is not torch.float32:
            got = f"{hidden.dtype} {tuple(hidden.shape)}"
            raise ValueError(f"hidden is {got}, wanted float32 (B, {self._weight.shape[1]})")
        padded, hidden = padded_columns(hidden, self._rows), hidden.contiguous()
        found = torch.empty(len(hidden), dtype=torch.long, device=hidden.device)
        rows, columns = self._rows.rows.shape
        library: Any = c_library(hidden, has_backward=True)
        if library is None:
            return argmax_in_torch(hidden, self._weight, bias)
        check(
            library.argmax_shortlist(
                hidden.data_ptr(),
                padded.data_ptr(),
                self._weight.data_ptr(),
                None if bias is None else bias.data_ptr(),
                *self._rows.pointers,
                len(hidden),
                rows,
                hidden.shape[1],
                columns,
                max_activation(columns),
                found.data_ptr(),
                torch.get_num_threads(),
            )
        )
        return found

    def _bias_without(self, banned: frozenset[int]) -> Tensor | None:
        if not banned:
            return self._bias
        bias = self._weight.new_zeros(self.vocab_size) if self._bias is None else self._bias.clone()
        bias[torch.tensor(sorted(banned), device=bias.device)] = -torch.inf
        return bias


def argmax_in_torch(hidden: Tensor, weight: Tensor, bias: Tensor | None, banned: Collection[int] = ()) -> Tensor:
    """The same from all logits; -1 where they are not finite, or all are banned."""
    logits = F.linear(hidden, weight, bias)
    damaged = ~(logits < torch.inf).all(-1)
    logits[..., sorted(banned)] = -torch.inf
    best = logits.max(-1)
    return best.indices.masked_fill(damaged | best.values.isneginf(), -1)


def _dispatch(weight: Tensor, bias: Tensor | None) -> bool:
    biases = [] if bias is None else [bias]
    return weight.dim() == 2 and c_library(weight, *biases) is not None and int8_is_supported()
