"""Random choices that are a pure function of a key, the same on every machine."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

_LOW = 1 << 32  # below this, the remaining digits would favor the first options


def seed_name(split: str) -> str:
    """The name of a split in the keys that seed its data: "heldout" for validation, so that the data never change."""
    return {"validation": "heldout"}.get(split, split)


class Draw:
    """A long random integer, from which each choice takes a digit. Cheaper than a `random.Random` a sentence."""

    __slots__ = ("_digits", "_key", "_refills")

    def __init__(self, key: str) -> None:
        self._key = key
        self._refills = 0
        self._digits = _digits(key)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, uniformly."""
        self._digits, at = divmod(self._digits, len(options))
        if self._digits < _LOW:
            self._refill()
        return options[at]

    def one_in(self, many: int) -> bool:
        """True with probability 1 / many."""
        self._digits, at = divmod(self._digits, many)
        if self._digits < _LOW:
            self._refill()
        return at == 0

    def _refill(self) -> None:
        self._refills += 1
        self._digits = _digits(f"{self._key} {self._refills}")


def _digits(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=32).digest(), "little")
