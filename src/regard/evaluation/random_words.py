"""Random words to measure a model on."""

from typing import Any

import torch
from torch import Tensor


def random_words(vocabulary: int, symbols: Any, count: int) -> Tensor:
    """`count` ids, drawn evenly, with no padding, begin or end among them."""
    allowed = torch.ones(vocabulary)
    allowed[[symbol for symbol in (symbols.padding, symbols.begin, symbols.end) if symbol is not None]] = 0.0
    return torch.multinomial(allowed, count, replacement=True)
