"""Word alignments: from tokens to words, from weights to links, and their error rate."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Link = tuple[int, int]  # (source word, target word)


def by_words(weights: np.ndarray, source_words: Sequence[int], target_words: Sequence[int]) -> np.ndarray:
    """Token weights (T, S) as word weights: summed over a source word's tokens, averaged over a target word's.

    `source_words[s]` is the word that token s belongs to, -1 for none; likewise for the target.
    """
    source = _membership(source_words)  # (source words, S)
    target = _membership(target_words)  # (target words, T)
    return (target / target.sum(1, keepdims=True)) @ weights @ source.T


def owned(words: Sequence[int]) -> list[int]:
    """The words that have a token of their own: one token may hold several ("'s"), and then belongs to the first."""
    return sorted({word for word in words if word >= 0})


def _membership(words: Sequence[int]) -> np.ndarray:
    return np.array([[float(one == word) for one in words] for word in owned(words)]).reshape(-1, len(words))


def links(weights: np.ndarray) -> set[Link]:
    """Each target word (row) linked to the source word it looks at most."""
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))} if weights.size else set()


class ErrorCounts(NamedTuple):
    """What the alignment error rate is made of; counts of several sentences add up."""

    found: int
    sure: int
    found_sure: int
    found_possible: int

    def plus(self, other: "ErrorCounts") -> "ErrorCounts":
        return ErrorCounts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def rate(self) -> float:
        """1 - (|A∩S| + |A∩P|) / (|A| + |S|) (Och & Ney 2003)."""
        return 1 - (self.found_sure + self.found_possible) / max(1, self.found + self.sure)


def count_errors(found: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link]) -> ErrorCounts:
    """Found links against the gold ones; every sure link is also possible."""
    found, sure = set(found), set(sure)
    return ErrorCounts(len(found), len(sure), len(found & sure), len(found & (set(possible) | sure)))


def pharaoh(found: Iterable[Link]) -> str:
    """Links in Pharaoh's format, "0-0 1-2": source word, target word, counted between spaces."""
    return " ".join(f"{source}-{target}" for source, target in sorted(found))


def parse_pharaoh(line: str) -> tuple[frozenset[Link], frozenset[Link]]:
    """Sure links ("0-0") and possible ones ("1?2" or "1p2") of a line; ValueError says what is wrong."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-?p])(\d+)", word)
        if match is None:
            raise ValueError(f"{word!r} is no link")
        (sure if match[2] == "-" else possible).add((int(match[1]), int(match[3])))
    return frozenset(sure), frozenset(possible)
