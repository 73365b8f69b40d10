"""Many rows through a reader, like lengths together; what is said of each comes back in the order of the rows."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from regard.tasks.encoding import batches_by_length, side_by_side
from regard.tokenizers.wordpiece import Encoding


def said_of(model: nn.Module, rows: Sequence[Encoding], say: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    """`say(ids, segment_ids)` of each row: (…) for what is said of a whole row, (T, …) of its real places otherwise."""
    padding: int = model.config.special_ids.pad_id  # type: ignore[union-attr, assignment]
    found: dict[int, Tensor] = {}
    with torch.inference_mode():
        for batch in batches_by_length([len(row.ids) for row in rows]):
            ids = side_by_side([rows[number].ids for number in batch], padding)
            segment_ids = side_by_side([rows[number].segment_ids for number in batch], 0)
            said = say(ids, segment_ids)
            whole = said.dim() == 2  # (B, C), else (B, T, …)
            for place, number in enumerate(batch):
                found[number] = said[place] if whole else said[place, : len(rows[number].ids)]
    return [found[number] for number in range(len(rows))]
