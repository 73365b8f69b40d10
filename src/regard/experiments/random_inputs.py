"""Random words to measure a model on."""

from typing import Any

import torch
from torch import Tensor


def random_words(vocab_size: int, special_ids: Any, count: int) -> Tensor:
    """`count` ids, drawn evenly, with no padding, begin, end or mask among them."""
    allowed = torch.ones(vocab_size)
    found = (getattr(special_ids, name, None) for name in ("pad_id", "bos_id", "eos_id", "mask_id"))
    allowed[[symbol for symbol in found if symbol is not None and symbol >= 0]] = 0.0  # below 0 it is no id
    return torch.multinomial(allowed, count, replacement=True)
