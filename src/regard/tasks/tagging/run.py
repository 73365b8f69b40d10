"""`regard run` on a tagger: a line per word with its label, then the entities."""

from collections.abc import Iterator, Sequence
from typing import Any

from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.chunks import chunks
from regard.tasks.encoders.run import run_encoder
from regard.tasks.tagging.pipeline import TaggedText, Tagger


def run(pipeline: Tagger, request: RunRequest) -> Iterator[Answer | Note]:
    return run_encoder(pipeline, request, _answers)


def _answers(pipeline: Tagger, texts: Sequence[str], options: Any) -> Iterator[Answer]:
    for tagged in (tagged for chunk in chunks(len(texts)) for tagged in pipeline.run_all(texts[chunk])):
        lines = _lines(tagged)
        words = [{"word": one.text, "label": one.label, "probability": one.probability} for one in tagged.words]
        entities = [{"text": one.text, "type": one.type} for one in tagged.entities]
        data = {"text": tagged.text, "words": words, "entities": entities}
        yield Answer("\n".join(lines), data, end="\n" if lines else "")


def _lines(tagged: TaggedText) -> list[str]:
    width = max((len(word.text) for word in tagged.words), default=0) + 2
    words = [f"{word.text:<{width}}{word.label:<12}{word.probability:.3f}" for word in tagged.words]
    return words + [f"{entity.type}: {entity.text}" for entity in tagged.entities]
