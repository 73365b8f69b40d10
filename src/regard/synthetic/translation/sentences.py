"""English sentences with their Spanish translations and gold word alignments, an endless supply.

A small grammar writes both languages from one plan, so the translation and the links are right by
construction. The same English sentence always has the same Spanish one, because what English leaves open is
fixed here: `you` is one person (tú), `i`, `you`, `we` and `they` are masculine, the past is the preterite,
and his, her and their are all `su`. Subject pronouns are dropped. The personal `a` stands before people and
animals alike (`ve al perro`), but not after tener, querer, comprar, vender and dibujar.

The validation split tests compositional generalization: one in eight combinations of a verb with its object and of an
adjective with its noun never occurs in training, and each validation sentence has at least one of them. `eat
bread` is among them, so `we are eating bread` is always new.

    python -m regard.synthetic.translation.sentences --count 40 --split validation
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.errors import ConfigError
from regard.synthetic.translation.aligned_phrases import AlignedPhrase, Link, decode_links
from regard.synthetic.translation.clauses import write
from regard.synthetic.translation.function_words import (
    ADVERBS,
    CONJUNCTIONS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    TIMES,
)
from regard.synthetic.translation.sampling import Split, plan
from regard.synthetic.translation.verbs import VERBS
from regard.synthetic.translation.vocabulary import ADJECTIVES, NOUNS

SPLITS: tuple[Split, ...] = ("train", "validation")

LEMMAS: dict[str, tuple[str, ...]] = {
    "noun": tuple(lemma for group in NOUNS.values() for lemma in group),
    "verb": tuple(dict.fromkeys(row[0].split()[0] for row in VERBS)),
    "adjective": tuple(row[0] for row in ADJECTIVES),
    "determiner": tuple(row[1] if row[0] == "-" else row[0] for row in DETERMINERS if row[0]),
    "pronoun": tuple(row[0] for row in PRONOUNS),
    "preposition": tuple(row[0] for row in PREPOSITIONS),
    "adverb": tuple(row[0] for row in ADVERBS) + tuple(dict.fromkeys(row[1] for row in TIMES)),
    "question word": tuple(row[0] for row in QUESTION_WORDS),
    "conjunction": tuple(row[0] for row in CONJUNCTIONS),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence in both languages. Links are (source index, target index) into the words.

    `sure` links are those that every annotator draws; `possible` holds them and those that may be left out, as the
    alignment error rate needs (Och and Ney 2003). Question marks are words of their own.
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]


def sentence(index: int, *, seed: int = 0, split: Split = "train") -> Pair:
    """Sentence `index` of a split: a pure function of its arguments."""
    if split not in SPLITS:
        raise ConfigError(f"split {split!r} is unknown; choose one of {', '.join(SPLITS)}")
    return pair(write(plan(index, seed, split)))


def sentences(count: int, *, start: int = 0, seed: int = 0, split: Split = "train") -> Iterator[Pair]:
    """Sentences `start` to `start + count - 1` of a split."""
    return (sentence(index, seed=seed, split=split) for index in range(start, start + count))


def pair(written: AlignedPhrase) -> Pair:
    """A written sentence as a pair, with natural spacing."""
    source, target, sure, possible, _ = written
    certain = decode_links(sure)
    return Pair(
        _spaced(source),
        _spaced(target),
        tuple(source),
        tuple(target),
        certain,
        certain | decode_links(possible) if possible else certain,
    )


def _spaced(words: Sequence[str]) -> str:
    if words[-1] != "?":
        return " ".join(words)
    return " ".join(words[:-1]).replace("¿ ", "¿") + "?"


def main() -> None:
    """Prints a sample: English, Spanish, and the alignment with sure links as i-j and possible ones as i~j."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=SPLITS, default="train")
    for found in sentences(**vars(parser.parse_args())):
        marks = (f"{i}{'-' if (i, j) in found.sure else '~'}{j}" for i, j in sorted(found.possible))
        sys.stdout.write(f"{found.source}\t{found.target}\t{' '.join(marks)}\n")


if __name__ == "__main__":
    main()
