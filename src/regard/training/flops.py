"""FLOPs of a training step, from the formula that each model's config has."""

from collections.abc import Callable, Sequence
from typing import Any

from regard.models.base import Interface, Model


def training_flops(model: Any, batches: Sequence[Any]) -> float | None:
    """FLOPs of a training step over these batches: the forward pass and the backward pass, which costs twice as much.

    None for a module that is not one of our models: it has no formula.
    """
    if not isinstance(model, Model):
        return None
    sizes = SIZES[model.interface]
    return 6 * sum(len(_rows(batch)) * model.config.flops(**sizes(batch)).multiply_adds for batch in batches)


def _rows(batch: Any) -> Any:
    return batch.target_in if hasattr(batch, "target_in") else batch.ids


def _predicted(batch: Any) -> float:
    """Masked tokens of a row, on average."""
    return len(getattr(batch, "positions", ())) / len(batch.ids)


# What `flops` of a model with this interface is given for one row of a batch.
SIZES: dict[Interface, Callable[[Any], dict[str, Any]]] = {
    "seq2seq": lambda batch: {"source": batch.source.shape[1], "target": batch.target_in.shape[1]},
    "causal_lm": lambda batch: {"tokens": batch.ids.shape[1]},
    "encoder": lambda batch: {"tokens": batch.ids.shape[1], "predicted": _predicted(batch)},
    "captioner": lambda batch: {"target": batch.target_in.shape[1]},
    "vision_language": lambda batch: {
        "tokens": batch.ids.shape[1],
        "predicted": _predicted(batch),
        "regions": batch.regions.shape[1],
    },
}
