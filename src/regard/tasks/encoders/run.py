"""`regard run` on an encoder: the answers of its task, or with --embed the vectors of the texts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from regard.errors import ConfigError, InputError
from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.encoders.pipeline import EncoderPipeline

BAR_WIDTH = 24  # characters for a probability of 1
NUM_NEIGHBORS = 3
MAX_LABEL_LENGTH = 40  # of a text on a map


def run_encoder(
    pipeline: EncoderPipeline,
    request: RunRequest,
    answers: Callable[[Any, Sequence[str], Any], Iterator[Answer]] | None,
) -> Iterator[Answer | Note]:
    """The answers to the texts that are not blank; without `answers`, or with --embed, their vectors."""
    texts = [text for text in request.inputs if text.strip()]
    options = request.options
    if not texts:
        raise InputError("every text is blank; wanted at least one with words")
    if answers is None or options.embed:
        if getattr(options, "second", None) is not None:
            raise ConfigError("--second is for pairs; give both texts to be embedded as INPUT")
        yield from _embed(pipeline, texts, options.output, request.as_json)
    elif options.output is not None:
        raise ConfigError(f"-o {options.output} draws a map of texts; add --embed")
    else:
        yield from answers(pipeline, texts, options)
    if pipeline.truncated:
        yield Note(f"{pipeline.truncated} of {len(texts)} texts were truncated to {pipeline.max_length} tokens")
    if blank := len(request.inputs) - len(texts):
        yield Note(f"{blank} blank texts left out")


def _embed(pipeline: EncoderPipeline, texts: Sequence[str], output: Any, as_json: bool) -> Iterator[Answer | Note]:
    if output is not None:
        from regard.inspection.maps.map import check_map

        check_map(output)
        if len(texts) < 3:
            raise InputError(f"a map of {len(texts)} texts shows nothing; give at least three")
    vectors = pipeline.embed(texts)
    for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        lines = [] if as_json else _neighbors(number, texts, vectors)
        data = {"text": text, "vector": [round(float(value), 7) for value in vector]}
        yield Answer("\n".join(lines), data, end="\n" if lines else "")
    if output is not None:
        from regard.inspection.maps.map import pca, save_map

        save_map(output, [_shorten(text) for text in texts], pca(vectors), title="texts by their vectors")
        yield Note(f"wrote {output}")


def _neighbors(number: int, texts: Sequence[str], vectors: np.ndarray) -> list[str]:
    """The nearest other texts, with cosine and euclidean distance; the vector itself where there is one text."""
    if len(texts) == 1:
        return [" ".join(f"{value:.4f}" for value in vectors[0])]
    if len(texts) == 2 and number == 1:
        return []  # the same two again
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units[number]
    nearest = [other for other in (-cosines).argsort().tolist() if other != number]
    lines = [texts[number]]
    for other in nearest[:NUM_NEIGHBORS]:
        distance = np.linalg.norm(vectors[other] - vectors[number])
        lines.append(f"  cosine {cosines[other]:+.3f}   distance {distance:.3f}   {texts[other]}")
    return lines


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_LABEL_LENGTH else text[: MAX_LABEL_LENGTH - 3] + "…"


def probability_bar(name: str, probability: float) -> str:
    return f"  {probability:6.1%}  {name:<16}{'█' * round(BAR_WIDTH * probability)}".rstrip()
