"""Maps of word embeddings: a projection to two dimensions, drawn as a figure or as an interactive page.

PCA keeps as much of the variance as two axes can (Pearson 1901). t-SNE keeps neighbors together and gives up distances
(van der Maaten & Hinton 2008).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import InputError
from regard.files import atomic_write, write_file
from regard.inspection.heat_map import FIGURE_SUFFIXES, check_figure
from regard.inspection.maps.labels import Label, line_end, place_labels
from regard.inspection.maps.map_page import page

MAP_SUFFIXES = (*FIGURE_SUFFIXES, ".html")
FRAME = (1000.0, 700.0)
MARGIN = 60.0
FONT_SIZE = 15.0  # of labels
MAX_LABELED = 60  # with more points, only some have labels
CHOSEN, OTHER = "#1f4e9c", "#c65d00"  # the words given, and their neighbors


@dataclass(frozen=True)
class Layout:
    """Positions in the frame, from its upper left corner: points (N, 2), labels, and which points are highlighted."""

    words: Sequence[str]
    points: np.ndarray
    labels: list[Label]
    chosen: Collection[int]


def pca(matrix: np.ndarray) -> np.ndarray:
    """The rows (N, D) projected on their first two principal components (N, 2); deterministic."""
    centered = np.asarray(matrix, np.float64) - np.mean(matrix, axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    directions = directions[:2]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
    points = centered @ (directions * np.sign(largest)).T  # the sign of a direction is arbitrary: fix it
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))


def tsne(matrix: np.ndarray, seed: int = 0) -> np.ndarray:
    """The rows (N, D) embedded by t-SNE (N, 2); deterministic for a seed."""
    from sklearn.manifold import TSNE  # takes a second to import

    if len(matrix) < 4:
        raise InputError(f"t-SNE of {len(matrix)} words; wanted 4 or more, or PCA")
    drawn = TSNE(perplexity=min(30.0, (len(matrix) - 1) / 3), init=pca(matrix) * 1e-4, random_state=seed)
    return np.asarray(drawn.fit_transform(np.asarray(matrix, np.float64)))


METHODS = {"pca": pca, "tsne": tsne}


def explained_variance(matrix: np.ndarray, points: np.ndarray) -> float:
    """The share of the variance of the rows that their projection keeps."""
    whole = float(np.var(matrix, axis=0, dtype=np.float64).sum())
    return float(np.var(points, axis=0).sum()) / whole if whole else 1.0


def check_map(path: Path) -> None:
    """InputError if no map can be written there; called before any work is done."""
    check_figure(path, MAP_SUFFIXES)


def save_map(
    path: Path, words: Sequence[str], points: np.ndarray, highlighted: Collection[str] = (), title: str = ""
) -> None:
    """Write a map of words at points (N, 2) to a PNG, SVG, PDF or HTML file, by its suffix.

    Up to sixty words are all labeled; of more, the highlighted ones, or the first if none is highlighted.
    """
    check_map(path)
    drawn = lay_out(words, points, highlighted)
    if path.suffix.lower() == ".html":
        write_file(path, page(drawn.words, drawn.points, drawn.labels, drawn.chosen, FRAME, title).encode())
    else:
        _save_figure(path, drawn, title)


def lay_out(words: Sequence[str], points: np.ndarray, highlighted: Collection[str] = ()) -> Layout:
    """Scale the points to the frame, both axes alike, and place the labels that fit."""
    assert points.shape == (len(words), 2)
    low, high = points.min(0), points.max(0)
    spread = np.where(high > low, high - low, np.inf)
    scale = float(np.min((np.array(FRAME) - 2 * MARGIN) / spread)) or 1.0  # 0 if all points are the same
    placed = (points - (low + high) / 2) * scale * [1, -1] + np.array(FRAME) / 2
    chosen = [number for number, word in enumerate(words) if word in set(highlighted)]
    others = [number for number in range(len(words)) if number not in set(chosen)]
    labeled = [*chosen, *others] if len(words) <= MAX_LABELED else chosen or others[:MAX_LABELED]
    labels = place_labels(placed, words, labeled, frame=FRAME, size=FONT_SIZE)
    if len(labeled) < len(words):  # among many points a line is ambiguous
        labels = [label for label in labels if not label.away or label.point in chosen]
    return Layout(words, placed, labels, chosen)


def _save_figure(path: Path, drawn: Layout, title: str) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # takes half a second to import

    figure = Figure(figsize=(FRAME[0] / 100, FRAME[1] / 100))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0, FRAME[0]), ylim=(FRAME[1], 0))
    axes.set_axis_off()
    colors = [CHOSEN if number in set(drawn.chosen) else OTHER for number in range(len(drawn.words))]
    many = len(drawn.words) > MAX_LABELED
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
        style: dict[str, Any] = {"ha": label.end, "va": "center_baseline", "fontsize": 0.72 * FONT_SIZE, "weight": bold}
        # A white background keeps labels readable over points; a dollar sign in a word is not a formula.
        below = {"facecolor": "white", "alpha": 0.7, "pad": 0.4, "linewidth": 0} if many else None
        axes.text(label.x, label.y, drawn.words[label.point], parse_math=False, bbox=below, **style)
    if title:
        axes.text(14, 22, title, fontsize=10, color="0.3", parse_math=False)
    with atomic_write(path) as file, rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        facts = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=160, metadata=facts)
