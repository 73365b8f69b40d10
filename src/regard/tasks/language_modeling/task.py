"""Training a language model: windows of text, cross-entropy of the next token, perplexity and bits per byte.

Works with any model whose `model.hidden_states(ids, document_ids)` returns (B, T, D), with `output_embeddings` (V, D)
as its output layer. The logits of a whole batch never exist at once: see ops.cross_entropy.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from regard.config import Config
from regard.data.batches import DataPosition
from regard.ops.cross_entropy import linear_cross_entropy
from regard.tasks.language_modeling.dataset import LanguageText, TextBatch


class LanguageModelingConfig(Config):
    """The training objective of a language model: the next token; there is nothing to set."""


class LanguageModelTraining:
    """Language modeling as the training loop needs it."""

    name = "language-modeling"
    unit = "tokens"

    def __init__(self, data: LanguageText) -> None:
        self.data = data

    def training_batches(
        self, *, max_tokens: int, seed: int, start: DataPosition
    ) -> Iterator[tuple[DataPosition, TextBatch]]:
        """Endless random windows; those of a step are a pure function of (seed, step)."""
        return self.data.training_batches(max_tokens=max_tokens, seed=seed, start=start)

    def batches_per_epoch(self, *, max_tokens: int, seed: int) -> None:
        """None: windows are sampled without end."""

    def validation_batches(self, *, max_tokens: int, most: int | None = None) -> Iterator[TextBatch]:
        return self.data.validation_batches(max_tokens=max_tokens, most=most)

    def loss(self, model: Any, batch: TextBatch) -> Tensor:
        """Summed cross-entropy of the batch's targets."""
        hidden = model.hidden_states(batch.ids, batch.document_ids)
        return linear_cross_entropy(hidden.flatten(0, 1), model.output_embeddings, batch.targets.flatten())

    def metrics(self, model: Any, loss: float, batches: Iterable[TextBatch], generate: Any) -> dict[str, float]:
        """Perplexity, and bits per byte of text, which does not depend on the tokenizer.

        The bytes per token are those of the whole validation text, also where the loss is of its beginning only.
        """
        validation = self.data.validation
        return loss_metrics(loss, tokens=len(validation), text_bytes=validation.text_bytes)


def loss_metrics(loss: float, *, tokens: int, text_bytes: int) -> dict[str, float]:
    """The mean loss per token in other units."""
    return {
        "perplexity": math.exp(min(loss, 700.0)),
        "bits_per_byte": loss * tokens / (math.log(2) * text_bytes),
    }
