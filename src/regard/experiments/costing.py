"""What layers and models cost, measured here and now."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ConfigError
from regard.experiments.cost import Crossing, Growth, Measured, find_crossing, growth, measure
from regard.experiments.model_cost import Pairing, Row, model_cost, pair_cost, pairings, reader_cost
from regard.inspection.curves import Curve, Panel, save_curves
from regard.models.bert import BertConfig
from regard.models.captioner import CaptionerConfig
from regard.models.vilbert import ViLBERTConfig
from regard.tasks.loading import load

SHORTEST = 32
BOXES = 36  # in a picture, where a model is given boxes: as many as the paper takes of a detector at most
LENGTH = 128  # tokens read and written, where the caller says nothing
LAYERS = ("recurrence", "convolution", "self-attention")
SCORES = ("scores, written out", "scores, fast kernel")


@dataclass(frozen=True)
class LayerCosts:
    """A layer of each kind over the length n."""

    width: int
    heads: int
    kernel: int
    measured: list[Measured]
    growth: list[Growth]
    crossing: Crossing
    pairings: list[Pairing]  # N² + M² + NM, counted


def cost_of_layers(
    *, width: int, heads: int, kernel: int, longest: int, output: Path | None, note: Callable[[str], None]
) -> LayerCosts:
    """Measure every kind at n = 32, 64, … and the longest; with an output, draw it there."""
    lengths = [SHORTEST]
    while 2 * lengths[-1] < longest:
        lengths.append(2 * lengths[-1])
    lengths.append(longest)
    found = measure(lengths, width=width, heads=heads, kernel=kernel, note=note)
    note("where recurrence and self-attention cross")
    crossing = find_crossing(width=width, heads=heads, longest=longest)
    costs = LayerCosts(width, heads, kernel, found, growth(found), crossing, pairings())
    if output is not None:
        save_curves(_panels(costs), output)
        note(f"wrote {output}")
    return costs


def _panels(costs: LayerCosts) -> list[Panel]:
    marks = {"n = d": costs.crossing.formula}

    def curves(kinds: tuple[str, ...], value: Callable[[Measured], float]) -> dict[str, Curve]:
        return {
            kind: Curve(
                [one.length for one in costs.measured if one.kind == kind],
                [value(one) for one in costs.measured if one.kind == kind],
            )
            for kind in kinds
        }

    return [
        Panel(
            "Multiply-adds by formula",
            "n",
            "",
            curves(LAYERS, lambda o: o.multiply_adds),
            logarithmic=True,
            marks=marks,
        ),
        Panel("Time of a layer", "n", "seconds", curves(LAYERS, lambda o: o.seconds), logarithmic=True),
        Panel("Memory kept for the way back", "n", "bytes", curves(LAYERS, lambda o: o.kept_bytes), logarithmic=True),
        Panel("Time of attention alone", "n", "seconds", curves(SCORES, lambda o: o.seconds), logarithmic=True),
        Panel("Memory of attention alone", "n", "bytes", curves(SCORES, lambda o: o.kept_bytes), logarithmic=True),
    ]


def cost_of_model(folder: Path, *, batch: int, source: int | None = None, target: int | None = None) -> list[Row]:
    """The costs of a model folder for a batch of pairs of these lengths: 128 each, or what its context holds."""
    model = load(folder).model
    context = getattr(model.config, "context", 2 * LENGTH)
    if isinstance(model.config, BertConfig | ViLBERTConfig) and target is not None:
        raise ConfigError(f"--target {target} is of a model that writes; {folder} reads only, leave it out")
    if isinstance(model.config, ViLBERTConfig):
        regions = 1 + (model.config.seeing.cells**2 or BOXES)
        return pair_cost(model, batch=batch, length=source or min(LENGTH, context), regions=regions)
    if isinstance(model.config, BertConfig):
        return reader_cost(model, batch=batch, length=source or min(LENGTH, context))
    if isinstance(model.config, CaptionerConfig):
        if source is not None:
            raise ConfigError(f"--source {source} is of a model that reads words; {folder} sees pictures, leave it out")
        return model_cost(model, batch=batch, source=model.config.cells, target=target or LENGTH)
    source = source or max(1, min(LENGTH, context // 2))
    target = target or max(1, min(LENGTH, context - source))
    return model_cost(model, batch=batch, source=source, target=target)
