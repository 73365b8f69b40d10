"""Where a captioner looked, word by word: a strip of panels, the picture lit in violet where the weights were."""

import base64
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from regard.files import atomic_write, write_file
from regard.inspection.pictures import PICTURES, check_picture

ENDINGS = (*PICTURES, ".html")
VIOLET = "#7c3aed"
ACROSS = 6  # panels in a row of the strip
DARK = 0.25  # how much of the picture's light is left beside the look
TEMPLATE = Path(__file__).with_name("looks_page.html")


def check_look(path: Path) -> None:
    """InputError, before any work is done, if no look can be written there."""
    check_picture(path, ENDINGS)


def save_look(path: Path, pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> None:
    """A strip of panels, the picture and then a word each, as PNG, SVG, PDF or HTML, by the ending.

    Pixels (side, side, 3) of uint8; weights (words, grid, grid) whose panels sum to 1. In each panel the cell looked at
    most is shown in full, so that looks of different width can be told apart; the number below says how much it had.
    """
    check_look(path)
    assert len(words) == len(weights), f"{len(words)} words, {len(weights)} looks"
    if path.suffix.lower() == ".html":
        write_file(path, page(pixels, words, weights).encode())
    else:
        _save_strip(path, pixels, words, weights)


def overlaid(pixels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The picture (side, side, 3) in the dark but where it was looked at, (grid, grid), and there tinted violet."""
    side, strength = len(pixels), _strength(weights)[..., None]
    strength = strength.repeat(side // len(weights), axis=0).repeat(side // len(weights), axis=1)
    violet = np.array([int(VIOLET[place : place + 2], 16) for place in (1, 3, 5)])
    tinted = 0.75 * pixels + 0.25 * violet
    return (strength * tinted + (1 - strength) * DARK * pixels).round().astype(np.uint8)


def _strength(weights: np.ndarray) -> np.ndarray:
    return weights / max(float(weights.max()), 1e-9)


def _save_strip(path: Path, pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> None:
    from matplotlib.figure import Figure  # half a second that only pictures need

    panels = [("", "", pixels)]
    for word, look in zip(words, weights, strict=True):
        panels.append((word, f"{look.max():.2f}", overlaid(pixels, look)))
    rows = -(-len(panels) // ACROSS)
    figure = Figure(figsize=(1.5 * ACROSS, 1.85 * rows), layout="constrained")
    grid = figure.subplots(rows, ACROSS, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, (word, most, panel) in zip(grid.flat, panels, strict=False):
        axes.imshow(panel, interpolation="nearest")
        axes.set_title("".join(sign if sign.isprintable() else "�" for sign in word), fontsize=10, color=VIOLET)
        axes.text(0.5, -0.04, most, transform=axes.transAxes, ha="center", va="top", fontsize=7, color="0.4")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160)


def page(pixels: np.ndarray, words: Sequence[str], weights: np.ndarray) -> str:
    """One HTML file that needs nothing else: the panels, and the numbers behind them as a table."""
    panels = [_panel("the picture", pixels, "")]
    panels += [
        _panel(word, overlaid(pixels, look), f"{look.max():.2f}") for word, look in zip(words, weights, strict=True)
    ]
    holes = {
        "caption": escape(" ".join(words)),
        "panels": "\n".join(panels),
        "grid": str(weights.shape[-1]),
        "rows": "\n".join(_row(word, look) for word, look in zip(words, weights, strict=True)),
    }
    text, *parts = TEMPLATE.read_text(encoding="utf-8").split("{{")  # a word may hold what looks like a hole
    for part in parts:
        name, rest = part.split("}}", 1)
        text += holes[name] + rest
    return text


def _panel(word: str, pixels: np.ndarray, most: str) -> str:
    said = f"where it looked for “{escape(word)}”" if most else "the picture"
    most = f"<small>{most}</small>" if most else ""
    return f'<figure><img src="{_png(pixels)}" alt="{said}"><figcaption>{escape(word)} {most}</figcaption></figure>'


def _row(word: str, look: np.ndarray) -> str:
    """The three cells looked at most, by row and column from 1."""
    grid = look.shape[-1]
    most = np.argsort(-look.ravel(), kind="stable")[:3]
    cells = "".join(
        f"<td>{at // grid + 1}, {at % grid + 1}</td><td>{look.ravel()[at]:.3f}</td>" for at in most.tolist()
    )
    return f"<tr><th scope=row>{escape(word)}</th>{cells}</tr>"


def _png(pixels: np.ndarray) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
