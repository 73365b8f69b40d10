"""Random choices that are a pure function of a few numbers, the same on every machine."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

_LOW = 1 << 32  # below this the digits left would favor the first options


def seed_name(split: str) -> str:
    """What a split is called in the keys that seed its data: "heldout" for validation, its first name, so that the
    generated data stay what they were."""
    return {"validation": "heldout"}.get(split, split)


class Draw:
    """A long random integer, from which each choice takes a digit. Cheaper than a `random.Random` a sentence."""

    __slots__ = ("_digits", "_key", "_refills")

    def __init__(self, key: str) -> None:
        self._key = key
        self._refills = 0
        self._digits = _digits(key)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely."""
        self._digits, at = divmod(self._digits, len(options))
        if self._digits < _LOW:
            self._refill()
        return options[at]

    def one_in(self, many: int) -> bool:
        """True once in so many times."""
        self._digits, at = divmod(self._digits, many)
        if self._digits < _LOW:
            self._refill()
        return at == 0

    def _refill(self) -> None:
        self._refills += 1
        self._digits = _digits(f"{self._key} {self._refills}")


def _digits(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=32).digest(), "little")
