"""A map of word embeddings as one self-contained HTML file: an SVG drawing, a search field and a table.

The drawing is static SVG, visible without the script. The script searches words, shows the word under the pointer and
moves between words with the arrow keys.
"""

from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path

import numpy as np

from regard.inspection.maps.labels import Label, line_end

TEMPLATE = Path(__file__).with_name("map_page.html")


def page(
    words: Sequence[str],
    points: np.ndarray,
    labels: Sequence[Label],
    chosen: Collection[int],
    frame: tuple[float, float],
    title: str,
) -> str:
    """The page with words at points (N, 2) of a frame and these labels; the chosen points are highlighted."""
    chosen = set(chosen)
    kinds = ["chosen" if number in chosen else "other" for number in range(len(words))]
    fields = {
        "title": escape(title or "Map of words"),
        "count": f"{len(words):,}",
        "many": "many" if len(words) > 4 * len(labels) else "few",
        "legend": "" if not chosen else LEGEND,
        "frame": f"0 0 {frame[0]:g} {frame[1]:g}",
        "lines": "\n".join(_line(label, points) for label in labels if label.away),
        "dots": "\n".join(_dot(*each) for each in zip(words, points.tolist(), kinds, strict=True)),
        "labels": "\n".join(_label(label, words[label.point], kinds[label.point]) for label in labels),
        "rows": "\n".join(_row(*each) for each in zip(words, points.tolist(), kinds, strict=True)),
    }
    text, *parts = TEMPLATE.read_text(encoding="utf-8").split("{{")  # not str.format: a word may contain braces
    for part in parts:
        name, rest = part.split("}}", 1)
        text += fields[name] + rest
    return text


LEGEND = '<span class="key chosen">given words</span> <span class="key other">neighbors</span>'


def _dot(word: str, point: list[float], kind: str) -> str:
    return f'<circle class="{kind}" cx="{point[0]:.1f}" cy="{point[1]:.1f}"><title>{escape(word)}</title></circle>'


def _line(label: Label, points: np.ndarray) -> str:
    x, y = map(float, points[label.point])
    to = line_end(x, y, label)
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to[0]:.1f}" y2="{to[1]:.1f}"/>'


def _label(label: Label, word: str, kind: str) -> str:
    return f'<text class="{kind} {label.end}" x="{label.x:.1f}" y="{label.y:.1f}">{escape(word)}</text>'


def _row(word: str, point: list[float], kind: str) -> str:
    note = "given" if kind == "chosen" else ""
    return f"<tr><th scope=row>{escape(word)}</th><td>{point[0]:.0f}</td><td>{point[1]:.0f}</td><td>{note}</td></tr>"
