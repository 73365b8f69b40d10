"""Word alignments: from token weights to word weights, from weights to links, and the alignment error rate (AER)."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Link = tuple[int, int]  # (source word, target word)


def tokens_to_words(weights: np.ndarray, source_word_ids: Sequence[int], target_word_ids: Sequence[int]) -> np.ndarray:
    """Token weights (T, S) as word weights: summed over source tokens, averaged over target tokens.

    `source_word_ids[s]` is the word that token s belongs to, -1 for none; likewise for the target.
    """
    source = _membership(source_word_ids)  # (source words, S)
    target = _membership(target_word_ids)  # (target words, T)
    return (target / target.sum(1, keepdims=True)) @ weights @ source.T


def words_with_tokens(word_ids: Sequence[int]) -> list[int]:
    """The words that have a token. A token that spans several words ("'s") belongs to the first."""
    return sorted({word for word in word_ids if word >= 0})


def _membership(words: Sequence[int]) -> np.ndarray:
    return np.array([[float(one == word) for one in words] for word in words_with_tokens(words)]).reshape(
        -1, len(words)
    )


def argmax_links(weights: np.ndarray) -> set[Link]:
    """Link each target word (row) to the source word with the largest weight."""
    return {(int(source), target) for target, source in enumerate(weights.argmax(1))} if weights.size else set()


class AERCounts(NamedTuple):
    """The counts of the alignment error rate; they add up over sentences."""

    found: int
    sure: int
    found_sure: int
    found_possible: int

    def plus(self, other: "AERCounts") -> "AERCounts":
        return AERCounts(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def aer(self) -> float:
        """1 - (|A∩S| + |A∩P|) / (|A| + |S|) (Och & Ney 2003)."""
        return 1 - (self.found_sure + self.found_possible) / max(1, self.found + self.sure)


def count_errors(found: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link]) -> AERCounts:
    """Compare links with the gold ones; every sure link is also possible."""
    found, sure = set(found), set(sure)
    return AERCounts(len(found), len(sure), len(found & sure), len(found & (set(possible) | sure)))


def format_pharaoh(found: Iterable[Link]) -> str:
    """Links in Pharaoh's format, "0-0 1-2": source and target word, by whitespace."""
    return " ".join(f"{source}-{target}" for source, target in sorted(found))


def parse_pharaoh(line: str) -> tuple[frozenset[Link], frozenset[Link]]:
    """Parse the sure links ("0-0") and possible links ("1?2" or "1p2") of a line. ValueError: not a link."""
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-?p])(\d+)", word)
        if match is None:
            raise ValueError(f"{word!r} is not a link")
        (sure if match[2] == "-" else possible).add((int(match[1]), int(match[3])))
    return frozenset(sure), frozenset(possible)
