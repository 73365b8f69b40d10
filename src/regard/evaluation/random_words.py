"""Random words to measure a model on."""

from typing import Any

import torch
from torch import Tensor


def random_words(vocabulary: int, symbols: Any, count: int) -> Tensor:
    """`count` ids, drawn evenly, with no padding, begin or end among them."""
    allowed = torch.ones(vocabulary)
    allowed[[symbols.padding, symbols.begin, symbols.end]] = 0.0
    return torch.multinomial(allowed, count, replacement=True)
