"""Metrics of captions: CIDEr, CIDEr-D, BLEU-4 and exact match, each against several references an image.

All compare words in lower case, without punctuation. The COCO server uses the Penn Treebank tokenizer instead ("man's"
is one word here, two there), so compare scores only with scores computed in the same way.
"""

import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU

from regard.metrics.translation import CorpusBleu, Score

ORDER = 4  # of the longest n-gram
SIGMA = 6  # of CIDEr-D's Gaussian over the difference in length, in words
SCALE = 10  # of CIDEr, so that human captions score about 1
BLEU_SETTINGS: dict[str, Any] = {"lowercase": True, "tokenize": "none", "force": True}

Grams = Counter[tuple[str, ...]]
Vector = dict[tuple[str, ...], float]


class Cider(NamedTuple):
    """The mean over all images, and the score of each."""

    value: float
    each: list[float]


def caption_words(caption: str) -> list[str]:
    """The words of a caption in lower case; hyphens and apostrophes stay inside words, other marks separate them."""
    text = unicodedata.normalize("NFC", caption).lower().replace("’", "'")
    spaced = "".join(" " if unicodedata.category(sign)[0] in "PS" and sign not in "-'" else sign for sign in text)
    return [word for raw in spaced.split() if (word := raw.strip("-'"))]


def cider(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Cider:
    """CIDEr (Vedantam 2015, eq. 2 and 3): cosines of 1- to 4-gram counts, weighted by idf.

    Document frequencies come from these references. A single image scores 0: each n-gram occurs in all images.
    """
    return _mean(predictions, references, _cosine)


def cider_d(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Cider:
    """CIDEr-D (section 7.1): clipped counts, and a penalty for a different length.

    This is what most papers call CIDEr. As in the authors' code the weights are counts times idf, not frequencies.
    """
    return _mean(predictions, references, _clipped_cosine)


def bleu4(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    """Corpus BLEU of 1- to 4-grams, 0 to 100, over the same words; the closest reference length counts."""
    _check(predictions, references)
    found = CorpusBleu(**BLEU_SETTINGS)
    for prediction, several in zip(predictions, references, strict=True):
        found.add(" ".join(caption_words(prediction)), [" ".join(caption_words(reference)) for reference in several])
    return Score(found.value, bleu4_signature(references))


def bleu4_signature(references: Sequence[Sequence[str]]) -> str:
    """All settings of `bleu4`, and the number of references; sacrebleu knows that after scoring as many."""
    counts = {len(several) for several in references}
    # sacrebleu takes the first reference of every image, then the second, and None where there is none.
    columns: Any = [["a" if column < count else None for count in counts] for column in range(max(counts))]
    metric = BLEU(**BLEU_SETTINGS)
    metric.corpus_score(["a"] * len(counts), columns)
    return f"{metric.get_signature()}|words:no-punctuation"


def exact_match(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The fraction of predictions with the same words as one of their references."""
    _check(predictions, references)
    return sum(
        caption_words(prediction) in map(caption_words, several)
        for prediction, several in zip(predictions, references, strict=True)
    ) / len(predictions)


def _check(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    assert len(predictions) == len(references) > 0, (len(predictions), len(references))
    assert all(references), "an image without a reference"
    assert not any(isinstance(several, str) for several in references), "wanted several references an image"


class _Caption(NamedTuple):
    """The weighted n-grams of a caption, one vector for each n, and its number of words."""

    vectors: list[Vector]
    length: int


Similarity = Callable[[_Caption, _Caption], float]


class _Idf:
    """Inverse document frequency: log of the number of images over those with the n-gram in a reference."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self._images = len(references)
        self._frequencies: Grams = Counter()
        for several in references:
            self._frequencies.update(set().union(*map(_grams, several)))

    def weigh(self, grams: Grams) -> _Caption:
        vectors: list[Vector] = [{} for _ in range(ORDER)]
        for gram, count in grams.items():
            # An n-gram in no reference weighs as much as one of a single image.
            vectors[len(gram) - 1][gram] = count * math.log(self._images / max(1, self._frequencies[gram]))
        return _Caption(vectors, sum(count for gram, count in grams.items() if len(gram) == 1))


def _mean(predictions: Sequence[str], references: Sequence[Sequence[str]], similarity: Similarity) -> Cider:
    _check(predictions, references)
    idf = _Idf(references)
    each = []
    for prediction, several in zip(predictions, references, strict=True):
        found = idf.weigh(_grams(prediction))
        scores = [similarity(found, idf.weigh(_grams(reference))) for reference in several]
        each.append(SCALE * sum(scores) / len(scores))
    return Cider(float(np.mean(each)), each)


def _grams(caption: str) -> Grams:
    """The n-grams of a caption: counted again wherever they are needed, since those of all images fill memory."""
    words = list(map(sys.intern, caption_words(caption)))  # each word once in memory, not once a caption
    return Counter(tuple(words[start : start + n]) for n in range(1, ORDER + 1) for start in range(len(words) - n + 1))


def _cosine(prediction: _Caption, reference: _Caption) -> float:
    """The mean cosine over n."""
    total = 0.0
    for one, other in zip(prediction.vectors, reference.vectors, strict=True):
        product = sum(one[gram] * weight for gram, weight in other.items() if gram in one)
        total += _over_norms(product, one, other)
    return total / ORDER


def _clipped_cosine(prediction: _Caption, reference: _Caption) -> float:
    """The same with clipped weights, times a Gaussian of the difference in length."""
    total = 0.0
    for one, other in zip(prediction.vectors, reference.vectors, strict=True):
        product = sum(min(one[gram], weight) * weight for gram, weight in other.items() if gram in one)
        total += _over_norms(product, one, other)
    return total / ORDER * math.exp(-((prediction.length - reference.length) ** 2) / (2 * SIGMA**2))


def _over_norms(product: float, one: Vector, other: Vector) -> float:
    norms = math.hypot(*one.values()) * math.hypot(*other.values())
    return product / norms if norms else 0.0
