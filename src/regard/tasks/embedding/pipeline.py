"""A sentence encoder in use: texts in, vectors out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.tasks.encoders.pipeline import EncoderPipeline


@dataclass(frozen=True)
class Embedding:
    """A text and its vector."""

    text: str
    vector: np.ndarray  # (D,)


class Embedder(EncoderPipeline):
    """`run("a text").vector`, `embed(["a text", "another"])`."""

    def run(self, text: str, **options: Any) -> Embedding:
        """The vector of one text; the options are those of `embed`."""
        return self.run_all([text], **options)[0]

    def run_all(self, texts: Sequence[str], **options: Any) -> list[Embedding]:
        """The vectors of many texts."""
        return [Embedding(text, vector) for text, vector in zip(texts, self.embed(texts, **options), strict=True)]


def export_settings(pipeline: Embedder) -> Mapping[str, Any]:
    """What a Hugging Face folder keeps beside the weights: how to pool."""
    return {"pooling": pipeline.pooling} if pipeline.kind == "bert" else {}
