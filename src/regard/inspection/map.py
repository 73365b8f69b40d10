"""Word vectors as a map: many numbers a word become two, drawn as a picture or as a page to move about in.

PCA keeps as much of the variance as two axes can (Pearson 1901). t-SNE keeps neighbors together and lets distances go
(van der Maaten & Hinton 2008).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import InputError
from regard.files import atomic_write, write_file
from regard.inspection.labels import Label, line_end, place_labels
from regard.inspection.map_page import page
from regard.inspection.pictures import PICTURES, check_picture

MAPS = (*PICTURES, ".html")
FRAME = (1000.0, 700.0)
MARGIN = 60.0
LETTERS = 15.0  # height of a label
LABELED = 60  # points up to which each has a label
CHOSEN, OTHER = "#1f4e9c", "#c65d00"  # what was asked for, and what was found near it


@dataclass(frozen=True)
class Layout:
    """Where all stands in the frame, from its upper left corner: points (N, 2), labels, and which points are chosen."""

    words: Sequence[str]
    points: np.ndarray
    labels: list[Label]
    chosen: Collection[int]


def pca(matrix: np.ndarray) -> np.ndarray:
    """The rows (N, D) along the two directions in which they differ most (N, 2); the same rows, the same map."""
    centered = np.asarray(matrix, np.float64) - np.mean(matrix, axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    directions = directions[:2]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
    points = centered @ (directions * np.sign(largest)).T  # a direction has no sign of its own
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def tsne(matrix: np.ndarray, seed: int = 0) -> np.ndarray:
    """The rows (N, D) so that neighbors stay neighbors (N, 2); the same seed, the same map."""
    from sklearn.manifold import TSNE  # a second that only this needs

    if len(matrix) < 4:
        raise InputError(f"t-SNE of {len(matrix)} words; wanted 4 or more, or PCA")
    drawn = TSNE(perplexity=min(30.0, (len(matrix) - 1) / 3), init=pca(matrix) * 1e-4, random_state=seed)
    return np.asarray(drawn.fit_transform(np.asarray(matrix, np.float64)))


METHODS = {"pca": pca, "tsne": tsne}


def share_kept(matrix: np.ndarray, points: np.ndarray) -> float:
    """The share of the variance of the rows that a map of them by PCA shows."""
    whole = float(np.var(matrix, axis=0, dtype=np.float64).sum())
    return float(np.var(points, axis=0).sum()) / whole if whole else 1.0


def check_map(path: Path) -> None:
    """InputError, before any work is done, if no map can be written there."""
    check_picture(path, MAPS)


def save_map(
    path: Path, words: Sequence[str], points: np.ndarray, highlighted: Collection[str] = (), title: str = ""
) -> None:
    """The words at their points (N, 2) as a PNG, SVG, PDF or HTML file, by its ending.

    Up to sixty words are all labeled; of more, the highlighted, or if there are none, the first.
    """
    check_map(path)
    drawn = lay_out(words, points, highlighted)
    if path.suffix.lower() == ".html":
        write_file(path, page(drawn.words, drawn.points, drawn.labels, drawn.chosen, FRAME, title).encode())
    else:
        _save_picture(path, drawn, title)


def lay_out(words: Sequence[str], points: np.ndarray, highlighted: Collection[str] = ()) -> Layout:
    """The points fitted into the frame, one scale for both axes, and labels where there is room."""
    assert points.shape == (len(words), 2)
    low, high = points.min(0), points.max(0)
    spread = np.where(high > low, high - low, np.inf)
    scale = float(np.min((np.array(FRAME) - 2 * MARGIN) / spread)) or 1.0  # 0 where all are at one point
    placed = (points - (low + high) / 2) * scale * [1, -1] + np.array(FRAME) / 2
    chosen = [number for number, word in enumerate(words) if word in set(highlighted)]
    others = [number for number in range(len(words)) if number not in set(chosen)]
    labeled = [*chosen, *others] if len(words) <= LABELED else chosen or others[:LABELED]
    labels = place_labels(placed, words, labeled, frame=FRAME, size=LETTERS)
    if len(labeled) < len(words):  # among many dots a line would lead to any of them
        labels = [label for label in labels if not label.away or label.point in chosen]
    return Layout(words, placed, labels, chosen)


def _save_picture(path: Path, drawn: Layout, title: str) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # half a second that only pictures need

    figure = Figure(figsize=(FRAME[0] / 100, FRAME[1] / 100))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, FRAME[0]), ylim=(FRAME[1], 0))
    axes.set_axis_off()
    colors = [CHOSEN if number in set(drawn.chosen) else OTHER for number in range(len(drawn.words))]
    many = len(drawn.words) > LABELED
    axes.scatter(
        drawn.points[:, 0], drawn.points[:, 1], s=8 if many else 28, c=colors, alpha=0.5 if many else 1.0, linewidths=0
    )
    if many and drawn.chosen:
        x, y = drawn.points[list(drawn.chosen)].T
        axes.scatter(x, y, s=40, c=CHOSEN, linewidths=0)
    for label in drawn.labels:
        x, y = drawn.points[label.point]
        if label.away:
            to = line_end(x, y, label)
            axes.plot([x, to[0]], [y, to[1]], color="0.7", linewidth=0.8, zorder=0)
        bold = "bold" if label.point in drawn.chosen else "normal"
        style: dict[str, Any] = {"ha": label.end, "va": "center_baseline", "fontsize": 0.72 * LETTERS, "weight": bold}
        # A word is a word: a dollar sign begins no formula.
        below = {"facecolor": "white", "alpha": 0.7, "pad": 0.4, "linewidth": 0} if many else None  # for dots there
        axes.text(label.x, label.y, drawn.words[label.point], parse_math=False, bbox=below, **style)
    if title:
        axes.text(14, 22, title, fontsize=10, color="0.3", parse_math=False)
    with atomic_write(path) as file, rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        facts = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160, metadata=facts)
