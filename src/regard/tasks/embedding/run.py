"""`regard run` on a sentence encoder."""

from collections.abc import Iterator

from regard.tasks.base import Answer, Note, RunRequest
from regard.tasks.embedding.pipeline import Embedder
from regard.tasks.encoders.run import run_encoder


def run(pipeline: Embedder, request: RunRequest) -> Iterator[Answer | Note]:
    mask = pipeline.tokenizer.id_to_token(pipeline.tokenizer.mask_id) or "[MASK]"
    if not request.options.embed and any(mask in text for text in request.inputs):
        yield Note(f"this model, a {pipeline.kind}, has no head to fill in {mask}: the texts are embedded as they are")
    yield from run_encoder(pipeline, request, None)
