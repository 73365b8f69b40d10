"""The table of a model as word vectors: what it learned of each word before it read any other."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from regard.data.readers.word_vectors import WordVectors
from regard.errors import InputError


def table_of(weight: Tensor, names: Sequence[str | None]) -> WordVectors:
    """The rows of a table (V, D) that have a name, a word each; what a tokenizer's `whole_words` names are words."""
    assert len(names) <= len(weight)
    rows: dict[str, int] = {}
    for number, name in enumerate(names):
        if name is not None:
            rows.setdefault(name, number)
    if not rows:
        raise InputError(f"none of the {len(names):,} tokens of this model spells a word by itself")
    matrix = weight.detach()[list(rows.values())].float().cpu().numpy()
    return WordVectors(list(rows), np.ascontiguousarray(matrix))
