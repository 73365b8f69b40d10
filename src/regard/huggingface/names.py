"""Two-way tables of weight names: ours and those of a family.

Where a family has separate matrices for what is fused here (queries, keys and values; gate and up), ours is theirs
concatenated by rows.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

BLOCKS = "blocks."
Rows = Mapping[str, list[int]]  # a fused part of a block -> the numbers of rows of its parts


class Names(NamedTuple):
    """The weight names of a family."""

    whole: Mapping[str, str]  # outside the blocks
    block: str  # the prefix of a block, with {} for its number
    parts: Mapping[str, tuple[str, ...]]  # inside a block, without .weight or .bias

    def of(self, ours: str) -> list[str]:
        """Their names for one weight of ours."""
        if not ours.startswith(BLOCKS):
            return [self.whole[ours]]
        number, rest = ours.removeprefix(BLOCKS).split(".", 1)
        part, kind = rest.rsplit(".", 1)
        return [f"{self.block.format(number)}{name}.{kind}" for name in self.parts[part]]

    def to_theirs(self, tensors: Mapping[str, Tensor], rows: Rows) -> dict[str, Tensor]:
        """Our weights under their names; on the meta device, the shapes a file must have."""
        found: dict[str, Tensor] = {}
        for ours, tensor in tensors.items():
            names = self.of(ours)
            parts = [tensor] if len(names) == 1 else tensor.split(rows[_part(ours)])
            found.update(zip(names, parts, strict=True))
        return found

    def to_ours(self, tensors: dict[str, Tensor], wanted: Iterable[str]) -> dict[str, Tensor]:
        """The wanted weights under our names; theirs are taken out of `tensors` one by one, to save memory."""
        found = {}
        for ours in wanted:
            parts = [tensors.pop(name) for name in self.of(ours)]
            found[ours] = parts[0] if len(parts) == 1 else torch.cat(parts)
        return found


def _part(ours: str) -> str:
    """blocks.3.attention.project.weight -> attention.project"""
    return ours.removeprefix(BLOCKS).split(".", 1)[1].rsplit(".", 1)[0]
