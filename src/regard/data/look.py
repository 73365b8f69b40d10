"""A look at data before it is trained on: lengths, scripts, classes and their balance, duplicates, and what to mind."""

import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from regard.data.splits import is_validation

RARE_SHARE = 0.05  # of the rows: a class with less is rare
RARE_ROWS = 10  # rows of a class that are few whatever their share
LETTERS = 200_000  # letters whose scripts are counted
MAX_CLASSES = 20  # classes that are listed
HELD_OUT = 0.1  # share of the rows that a recipe holds out


def lengths(texts: Sequence[str]) -> dict[str, int]:
    """The words of the texts: the shortest, the median, the 95th percentile and the longest."""
    words = sorted(len(text.split()) for text in texts)
    return {
        "shortest": words[0],
        "median": int(statistics.median(words)),
        "95 %": words[int(0.95 * (len(words) - 1))],
        "longest": words[-1],
    }


def scripts(texts: Iterable[str]) -> dict[str, str]:
    """The scripts of the letters, the commonest first, with their shares: Latin, Cyrillic, Han."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(map(_script, text))
        if counts.total() - counts[""] > LETTERS:
            break
    del counts[""]
    return {name: f"{count / counts.total():.1%}" for name, count in counts.most_common(5)}


@cache
def _script(character: str) -> str:
    """The script of a letter; empty for other characters."""
    if not character.isalpha():
        return ""
    first = unicodedata.name(character, "OTHER").split()[0].capitalize()
    return "Han" if first == "Cjk" else first


def classes(labels: Sequence[str]) -> dict[str, str]:
    """Rows of each class, the commonest first, with their share."""
    counts = Counter(labels)
    found = {name: f"{count:,} ({count / len(labels):.1%})" for name, count in counts.most_common(MAX_CLASSES)}
    if len(counts) > MAX_CLASSES:
        found["others"] = f"{len(counts) - MAX_CLASSES:,} classes"
    return found


def warn_of_classes(training: Sequence[str], validation: Sequence[str]) -> list[str]:
    """Rare classes, with the setting that helps, and classes that validation lacks."""
    counts, held_out = Counter(training), set(validation)
    rare = {name: n for name, n in counts.items() if n < RARE_ROWS or n < RARE_SHARE * len(training)}
    found = []
    if rare and len(rare) < len(counts):
        named = ", ".join(f"{name} ({n:,} of {len(training):,})" for name, n in sorted(rare.items())[:5])
        found.append(f"rare: {named}; task.class_weights=true makes each class count as much")
    if missing := sorted(counts.keys() - held_out):
        found.append(
            f"validation has no {', '.join(missing[:5])}: its score does not show what is learned of that; "
            "a larger data.validation, or data.dev=FILE"
        )
    return found


def count_duplicates(keys: Iterable[str]) -> int:
    """Examples that another one before them equals, regardless of case and spacing."""
    seen: set[int] = set()
    count = 0
    for key in keys:
        folded = hash(" ".join(key.casefold().split()))
        count += folded in seen
        seen.add(folded)
    return count


def warn_of_straddling(training: Iterable[str], validation: Iterable[str]) -> list[str]:
    """Examples to evaluate on that are trained on too: their scores are those of memory."""
    held_out = Counter(" ".join(text.casefold().split()) for text in validation)
    both = held_out.keys() & {" ".join(text.casefold().split()) for text in training if text}
    if not both:
        return []
    count = sum(held_out[text] for text in both)
    return [
        f"{count:,} of {held_out.total():,} examples to evaluate on are trained on too: scores will be too good; take "
        "them out of one of the two"
    ]


def summary(what: str, texts: Sequence[str]) -> str:
    """One line on the lengths and duplicates of texts."""
    words, repeated = lengths(texts), count_duplicates(texts)
    found = f"words of {what}: median {words['median']}, 95 % up to {words['95 %']}, longest {words['longest']}"
    return found + (f"; {repeated:,} occur twice" if repeated else "")


def labeled_facts(texts: Sequence[str], labels: Sequence[str | None]) -> dict[str, Any]:
    """What labeled texts are like; with warnings for the split that a recipe makes."""
    facts: dict[str, Any] = {"rows": len(texts), "words of a text": lengths(texts), "scripts": scripts(texts)}
    facts["duplicates"] = count_duplicates(texts)
    conflicts = _conflicts(texts, labels)
    if conflicts:
        facts["conflicts"] = f"{conflicts:,} texts have several labels"
    known = [label for label in labels if label is not None]
    if known and len(known) == len(texts):
        held_out = [is_validation(text, HELD_OUT) for text in texts]
        facts["classes"] = classes(known)
        facts["warnings"] = warn_of_classes(
            [label for label, out in zip(known, held_out, strict=True) if not out],
            [label for label, out in zip(known, held_out, strict=True) if out],
        )
    return facts


def _conflicts(texts: Sequence[str], labels: Sequence[str | None]) -> int:
    """Texts that occur with different labels."""
    found: dict[str, set[str | None]] = {}
    for text, label in zip(texts, labels, strict=True):
        found.setdefault(text, set()).add(label)
    return sum(len(several) > 1 for several in found.values())


def pair_facts(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What sentence pairs are like."""
    sources, targets = [one for one, _ in pairs], [other for _, other in pairs]
    same = sum(one == other for one, other in pairs)
    uneven = sum(
        max(len(one), len(other)) > 50 and max(len(one), len(other)) > 4 * min(len(one), len(other))
        for one, other in pairs
    )
    facts: dict[str, Any] = {
        "pairs": len(pairs),
        "words of a source": lengths(sources),
        "words of a target": lengths(targets),
        "scripts of the sources": scripts(sources),
        "scripts of the targets": scripts(targets),
        "duplicates": count_duplicates(f"{one}\t{other}" for one, other in pairs),
        "sources that repeat": f"{count_duplicates(sources):,} (all of one source are on one side of the split)",
    }
    warnings = []
    if same > 0.01 * len(pairs):
        warnings.append(f"{same:,} pairs have the same text on both sides")
    if uneven > 0.01 * len(pairs):
        warnings.append(f"{uneven:,} pairs have a side four times as long as the other: do the lines still match?")
    return facts | {"warnings": warnings}
