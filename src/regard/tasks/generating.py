"""What tasks that generate text share: the types they ask for."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

# (model, source, the most tokens of each row) -> for each row its hypotheses, best first
Generate = Callable[[Any, Tensor, list[int]], list[list[Any]]]


class TargetTokenizer(Protocol):
    """What these tasks need of a tokenizer; `target` is that of the other language, which may be the same."""

    pad_id: int
    bos_id: int
    eos_id: int

    @property
    def target(self) -> "TargetTokenizer": ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode(self, ids: Sequence[int]) -> str: ...
