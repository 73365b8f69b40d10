"""A map of words as one HTML file that needs nothing else: the drawing, a search, and the table behind it.

What is drawn is in the file as it is, so that it can be seen without the script; the script finds words, shows the one
under the pointer and goes from word to word by the arrow keys.
"""

from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path

import numpy as np

from regard.inspection.labels import Label, line_end

TEMPLATE = Path(__file__).with_name("map_page.html")


def page(
    words: Sequence[str],
    points: np.ndarray,
    labels: Sequence[Label],
    chosen: Collection[int],
    frame: tuple[float, float],
    title: str,
) -> str:
    """The page of words at points (N, 2) of a frame, with these labels; the chosen are told from the others."""
    chosen = set(chosen)
    kinds = ["chosen" if number in chosen else "other" for number in range(len(words))]
    holes = {
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
    text, *parts = TEMPLATE.read_text(encoding="utf-8").split("{{")  # a word may hold what looks like a hole
    for part in parts:
        name, rest = part.split("}}", 1)
        text += holes[name] + rest
    return text


LEGEND = '<span class="key chosen">asked for</span> <span class="key other">the others</span>'


def _dot(word: str, place: list[float], kind: str) -> str:
    return f'<circle class="{kind}" cx="{place[0]:.1f}" cy="{place[1]:.1f}"><title>{escape(word)}</title></circle>'


def _line(label: Label, points: np.ndarray) -> str:
    x, y = map(float, points[label.point])
    to = line_end(x, y, label)
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to[0]:.1f}" y2="{to[1]:.1f}"/>'


def _label(label: Label, word: str, kind: str) -> str:
    return f'<text class="{kind} {label.end}" x="{label.x:.1f}" y="{label.y:.1f}">{escape(word)}</text>'


def _row(word: str, place: list[float], kind: str) -> str:
    said = "asked for" if kind == "chosen" else ""
    return f"<tr><th scope=row>{escape(word)}</th><td>{place[0]:.0f}</td><td>{place[1]:.0f}</td><td>{said}</td></tr>"
