"""Heat maps of attention weights, in the terminal and as figures. Queries are blue, keys orange."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.text import Text

from regard.errors import InputError
from regard.files import atomic_write

SHADES = " ░▒▓█"
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def terminal_heat_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Text:
    """Attention weights (queries, keys) as shaded cells with the names of the rows and columns."""
    margin = max(map(len, rows), default=0)
    cells = [max(4, len(name)) + 2 for name in columns]
    text = Text(" " * (margin + 1))
    for name, width in zip(columns, cells, strict=True):
        text.append(name.center(width), style="orange3")
    for name, line in zip(rows, weights, strict=True):
        text.append(f"\n{name:>{margin}} ", style="blue")
        for weight, width in zip(line, cells, strict=True):
            text.append((shade(weight) * (width - 2)).center(width))
    return text


def shade(weight: float) -> str:
    """One of five shades for a weight from 0 to 1."""
    return SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))]


def check_figure(path: Path, suffixes: Sequence[str] = FIGURE_SUFFIXES) -> None:
    """InputError if no figure can be written there; called before any work is done."""
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: a figure ends in {', '.join(suffixes)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")


def save_heat_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], path: Path) -> None:
    """Write a heat map with the number in every cell to a PNG, SVG or PDF file, by its suffix."""
    from matplotlib.figure import Figure  # takes half a second to import

    figure = Figure(figsize=(1.6 + 0.7 * len(columns), 1.2 + 0.45 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, color="#c65d00")
    axes.set_yticks(range(len(rows)), rows, color="#1f4e9c")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for (row, column), weight in np.ndenumerate(weights):
        color = "white" if weight > 0.5 else "0.35"
        axes.text(column, row, f"{weight:.2f}", ha="center", va="center", fontsize=8, color=color)
    axes.set_ylabel("each generated word")
    axes.set_xlabel("attends to these words")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160)
