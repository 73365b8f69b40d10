"""Pictures of what was seen, for the terminal and as files. Query blue, key orange, value green."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.text import Text

from regard.errors import InputError
from regard.files import atomic_write

SHADES = " ░▒▓█"
PICTURES = (".png", ".svg", ".pdf")


def terminal_heat_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Text:
    """Weights (rows, columns) as shaded cells with their names; a row is what looks, a column what is looked at."""
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


def check_picture(path: Path, endings: Sequence[str] = PICTURES) -> None:
    """InputError, before any work is done, if no picture can be written there."""
    if path.suffix.lower() not in endings:
        raise InputError(f"{path}: a picture ends in {', '.join(endings)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")


def save_heat_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], path: Path) -> None:
    """The same as a PNG, SVG or PDF file, by its ending; every cell with its number."""
    from matplotlib.figure import Figure  # half a second that only pictures need

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
    axes.set_ylabel("each word written")
    axes.set_xlabel("looked at these words")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160)
