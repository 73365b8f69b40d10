"""`regard run` on a classifier: the class of each text or pair with its probability, or its score."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.errors import InputError
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.chunks import chunks
from regard.tasks.classification.pipeline import Classification, Classifier
from regard.tasks.encoders.run import probability_bar, run_encoder

MAX_CLASSES = 10  # shown with their probabilities


def run(pipeline: Classifier, request: RunRequest) -> Iterator[Answer | Note]:
    return run_encoder(pipeline, request, _answers)


def _answers(pipeline: Classifier, texts: Sequence[str], options: Any) -> Iterator[Answer]:
    firsts, seconds = _pairs(texts, options.second, pipeline.pairs)
    for chunk in chunks(len(texts)):
        for found in pipeline.run_all(firsts[chunk], None if seconds is None else seconds[chunk]):
            pair = {} if found.second is None else {"second": found.second}
            classes = {"label": found.label, "probabilities": found.probabilities} if found.label else {}
            data = {"text": found.text, **pair, **classes, "score": found.score}
            yield Answer(_show(found, alone=len(texts) == 1), data)


def _show(found: Classification, *, alone: bool) -> str:
    if found.label is None:
        return f"{found.score:.3f}" + ("" if alone else f"  {found.text}")
    if alone:
        shown = list(found.probabilities.items())[:MAX_CLASSES]
        return "\n".join([found.label, *(probability_bar(label, share) for label, share in shown)])
    return f"{found.label}\t{found.score:.3f}\t{found.text}"


def _pairs(texts: Sequence[str], second: str | None, takes_pairs: bool | None) -> tuple[list[str], list[str] | None]:
    """First and second texts. A tab separates the two, unless the model is known to take single texts."""
    if second is not None:
        return list(texts), [second] * len(texts)
    if takes_pairs is False:
        return list(texts), None
    split = [text.partition("\t") for text in texts]
    if not any(tab for _, tab, _ in split):
        return list(texts), None
    for number, (first, tab, other) in enumerate(split, 1):
        if not (tab and first.strip() and other.strip()):
            raise InputError(f"text {number} is no pair, others are; wanted two texts with a tab between them in each")
    return [first for first, _, _ in split], [other for _, _, other in split]
