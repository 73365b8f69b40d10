"""Random words to measure a model on."""

from typing import Any

import torch
from torch import Tensor


def random_words(vocabulary: int, symbols: Any, count: int) -> Tensor:
    """`count` ids, drawn evenly, with no padding, begin, end or mask among them."""
    allowed = torch.ones(vocabulary)
    found = (getattr(symbols, name, None) for name in ("padding", "begin", "end", "mask"))
    allowed[[symbol for symbol in found if symbol is not None and symbol >= 0]] = 0.0  # below 0 it is no id
    return torch.multinomial(allowed, count, replacement=True)
