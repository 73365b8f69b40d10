"""Line plots side by side in one figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.files import atomic_write

# One color for each kind of model, in all figures.
COLORS = {
    "rnn": "#8c6bb1",
    "rnn-context": "#d95f0e",
    "rnn-attention": "#1f4e9c",
    "conv": "#2ca25f",
    "transformer": "#c51b8a",
    "recurrence": "#8c6bb1",
    "convolution": "#2ca25f",
    "self-attention": "#c51b8a",
}


@dataclass(frozen=True)
class Curve:
    """Points, with a standard deviation where they are means."""

    x: Sequence[float]
    y: Sequence[float]
    deviation: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, Curve]
    names: Sequence[str] = ()  # tick labels of the x axis, if it is not numeric
    logarithmic: bool = False
    shares: bool = False  # values from 0 to 1: the y axis shows this range
    marks: Mapping[str, float] = field(default_factory=dict)  # named vertical lines


def save_curves(panels: Sequence[Panel], path: Path, columns: int = 3) -> None:
    """Write the panels to a PNG, SVG or PDF file, by its suffix."""
    from matplotlib.figure import Figure  # takes half a second to import

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.9 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels, strict=False):
        for name, curve in panel.curves.items():
            style = {"marker": "o", "markersize": 4, "label": name, "color": COLORS.get(name), "alpha": 0.85}
            if any(curve.deviation):
                axes.errorbar(curve.x, curve.y, yerr=curve.deviation, capsize=3, **style)
            else:
                axes.plot(curve.x, curve.y, **style)
        if panel.logarithmic:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
        if panel.shares:
            axes.set_ylim(-0.03, 1.05)
        if panel.names:
            axes.set_xticks(range(len(panel.names)), panel.names)
        for name, x in panel.marks.items():
            axes.axvline(x, color="0.5", linestyle=":")
            axes.annotate(name, (x, 0.5), xycoords=("data", "axes fraction"), rotation=90, ha="right", fontsize=8)
        axes.set_title(panel.title, fontsize=11)
        axes.set_xlabel(panel.xlabel)
        axes.set_ylabel(panel.ylabel)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=130)
