"""The attention of a captioner, word by word: panels of the image, violet and bright where the weights are large."""

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from regard.files import atomic_write, write_file
from regard.inspection.heat_map import FIGURE_SUFFIXES, check_figure

SUFFIXES = (*FIGURE_SUFFIXES, ".html")
VIOLET = "#7c3aed"
PANELS_PER_ROW = 6
BACKGROUND = 0.25  # brightness of the image where the attention is zero
TEMPLATE = Path(__file__).with_name("attention_overlay.html")


def check_overlay(path: Path) -> None:
    """InputError if no overlay can be written there; called before any work is done."""
    check_figure(path, SUFFIXES)


def save_overlay(path: Path, pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> None:
    """Write panels, the image and then one for each word, as PNG, SVG, PDF or HTML, by the suffix.

    Pixels (side, side, 3) of uint8; weights (words, grid, grid) that sum to 1 for each word. In each panel the cell
    with the largest weight has full brightness; the number below is that weight.
    """
    check_overlay(path)
    assert len(words) == len(weights), f"{len(words)} words, {len(weights)} grids of weights"
    if path.suffix.lower() == ".html":
        write_file(path, page(pixels, words, weights).encode())
    else:
        _save_strip(path, pixels, words, weights)


def overlay(pixels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The image (side, side, 3), dark where the weights (grid, grid) are small and violet where they are large."""
    side, strength = len(pixels), _strength(weights)[..., None]
    strength = strength.repeat(side // len(weights), axis=0).repeat(side // len(weights), axis=1)
    violet = np.array([int(VIOLET[start : start + 2], 16) for start in (1, 3, 5)])
    tinted = 0.75 * pixels + 0.25 * violet
    return (strength * tinted + (1 - strength) * BACKGROUND * pixels).round().astype(np.uint8)


def _strength(weights: np.ndarray) -> np.ndarray:
    return weights / max(float(weights.max()), 1e-9)


def _save_strip(path: Path, pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> None:
    from matplotlib.figure import Figure  # takes half a second to import

    panels = [("", "", pixels)]
    for word, cells in zip(words, weights, strict=True):
        panels.append((word, f"{cells.max():.2f}", overlay(pixels, cells)))
    rows = -(-len(panels) // PANELS_PER_ROW)
    figure = Figure(figsize=(1.5 * PANELS_PER_ROW, 1.85 * rows), layout="constrained")
    grid = figure.subplots(rows, PANELS_PER_ROW, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (word, most, panel) in zip(grid.flat, panels, strict=False):
        axes.imshow(panel, interpolation="nearest")
        axes.set_title("".join(sign if sign.isprintable() else "�" for sign in word), fontsize=10, color=VIOLET)
        axes.text(0.5, -0.04, most, transform=axes.transAxes, ha="center", va="top", fontsize=7, color="0.4")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160)


def page(pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> str:
    """One self-contained HTML file: the panels, and a table of the largest weights."""
    panels = [_panel("the image", pixels, "")]
    panels += [
        _panel(word, overlay(pixels, cells), f"{cells.max():.2f}") for word, cells in zip(words, weights, strict=True)
    ]
    fields = {
        "caption": escape(" ".join(words)),
        "panels": "\n".join(panels),
        "grid": str(weights.shape[-1]),
        "rows": "\n".join(_row(word, cells) for word, cells in zip(words, weights, strict=True)),
    }
    text, *parts = TEMPLATE.read_text(encoding="utf-8").split("{{")  # not str.format: a word may contain braces
    for part in parts:
        name, rest = part.split("}}", 1)
        text += fields[name] + rest
    return text


def _panel(word: str, pixels: np.ndarray, most: str) -> str:
    said = f"attention for “{escape(word)}”" if most else "the image"
    most = f"<small>{most}</small>" if most else ""
    return f'<figure><img src="{_png(pixels)}" alt="{said}"><figcaption>{escape(word)} {most}</figcaption></figure>'


def _row(word: str, weights: np.ndarray) -> str:
    """The three cells with the largest weights, by row and column from 1."""
    grid = weights.shape[-1]
    largest = np.argsort(-weights.ravel(), kind="stable")[:3]
    cells = "".join(
        f"<td>{at // grid + 1}, {at % grid + 1}</td><td>{weights.ravel()[at]:.3f}</td>" for at in largest.tolist()
    )
    return f"<tr><th scope=row>{escape(word)}</th>{cells}</tr>"


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
