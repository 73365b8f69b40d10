"""One word in several sentences: its contextual vectors as a map, and how alike they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, INK, QUERY, RULE
from regard.inspection.drawing.layout import TOP, Style, heading_width, labelled, widest
from regard.inspection.drawing.scene import Figure, Item, Rectangle, Scene, Text, heading, in_drawing
from regard.inspection.maps.labels import place_labels
from regard.inspection.maps.map import explained_variance, pca
from regard.inspection.trace import Axis, Trace, TraceInfo
from regard.inspection.views.base import Choices, Subject, View, find_token

MAP = (300.0, 220.0)
MARGIN = 24.0
DOT = 6.0
LONGEST = 60  # of a sentence, in characters


@dataclass(frozen=True)
class Occurrence:
    """A word in one sentence, and its vector."""

    sentence: str
    vector: np.ndarray  # (D,)


def draw(subject: Subject, choices: Choices) -> Figure:
    """A dot for each occurrence of the word, numbered as its sentence; beside it the cosine of each pair."""
    if choices.token is None:
        raise InputError("which word? give --token, and two or more sentences that have it")
    traces = [subject.trace, *subject.others]
    layer, num_layers = _layer(subject.trace, choices)
    found = [one for trace in traces for one in occurrences(trace, choices.token, layer)]
    if len(found) < 2:
        raise InputError(f"{choices.token!r} is there once; give two or more sentences that have it")
    vectors = np.stack([one.vector for one in found])
    title = f"“{choices.token}” in {len(found)} contexts, after layer {layer} of 0 to {num_layers - 1}"
    caption = "One dot an occurrence: near dots have like vectors. Right, the cosine of each pair."
    return Figure.of(_scene(title, caption, found, vectors))


def occurrences(trace: Trace, word: str, layer: int) -> list[Occurrence]:
    """The vectors of a word wherever it is in the text: the mean over its tokens."""
    axis = _axis(trace.info)
    hidden = trace.value(_taps(trace)[layer])
    found = _in_text(axis, word)
    if not found:
        at = find_token(axis, word)
        tokens = [f"«{token}»" if number == at else token for number, token in enumerate(axis.tokens)]
        found = [(" ".join(tokens), [at])]
    return [Occurrence(sentence, hidden[positions].mean(0)) for sentence, positions in found]


def cosines(vectors: np.ndarray) -> np.ndarray:
    """The cosine of each pair of rows (N, D)."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    found: np.ndarray = unit @ unit.T
    return found


def _in_text(axis: Axis, word: str) -> list[tuple[str, list[int]]]:
    """Each occurrence of a word in the text: the text with the word marked, and the positions of its tokens."""
    found = []
    for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", axis.text, re.IGNORECASE):
        start, end = (len(axis.text[:at].encode()) for at in match.span())
        places = [at for at, span in enumerate(axis.spans) if span and span[0] < end and start < span[1]]
        if places:
            marked = f"{axis.text[: match.start()]}«{match[0]}»{axis.text[match.end() :]}"
            found.append((marked, places))
    return found


def _axis(info: TraceInfo) -> Axis:
    return info.axes["source" if info.interface == "seq2seq" else "text"]


def _taps(trace: Trace) -> list[str]:
    """The hidden states after each layer that reads the text."""
    reads = "encoder" if trace.info.interface == "seq2seq" else ""
    return [path for path in trace.values if path.endswith(".hidden") and path.startswith(reads)]


def _layer(trace: Trace, choices: Choices) -> tuple[int, int]:
    """The layer that is looked at, the last if none is chosen, and how many there are."""
    number = len(_taps(trace))
    layer = number - 1 if choices.layer is None else choices.layer
    if not 0 <= layer < number:
        raise InputError(f"--layer {layer}: wanted 0 to {number - 1}")
    return layer, number


def _scene(title: str, caption: str, found: Sequence[Occurrence], vectors: np.ndarray) -> Scene:
    points = pca(vectors)
    kept = explained_variance(vectors, points)
    names = [str(number + 1) for number in range(len(found))]
    cell = 30.0 if len(found) <= 12 else 16.0
    style = Style((cell, min(cell, 20.0)), "diverging", -1.0, 1.0, 2 if cell > 20 else None, (INK, INK))
    table = labelled(8 + MAP[0] + 24, TOP, cosines(vectors), names, names, style, name="cosine")
    items: list[Item] = [*heading(title, caption), *_map(points, names), *table.items]
    y = TOP + max(MAP[1] + 14, table.height) + 10
    items.append(Text(8, TOP + MAP[1] + 8, f"PCA: the two axes keep {kept:.0%} of the variance", 8, FAINT))
    right = max(heading_width(title, caption), 8 + MAP[0] + 24 + table.width + 16)
    for name, one in zip(names, found, strict=True):
        text = f"{name}  {one.sentence}"
        text = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        items.append(Text(8, y + 6, text, title=one.sentence))
        y, right = y + 14, max(right, widest([text]) + 16)
    return Scene(right, y + 8, items, title, caption)


def _map(points: np.ndarray, names: Sequence[str]) -> list[Item]:
    """The points scaled to the frame, both axes alike, with their numbers."""
    low, high = points.min(0), points.max(0)
    room = np.array(MAP) - 2 * MARGIN
    spread = np.where(high > low, high - low, np.inf)
    scale = float(np.min(room / spread)) or 1.0  # 0 if all points are the same
    placed = (points - (low + high) / 2) * scale * [1, -1] + np.array(MAP) / 2
    items: list[Item] = [Rectangle(8, TOP, *MAP, stroke=RULE)]
    for name, (x, y), point in zip(names, placed, points, strict=True):
        title = f"{name}: {point[0]:.6g}, {point[1]:.6g}"
        at = 8 + float(x) - DOT / 2, TOP + float(y) - DOT / 2
        items.append(Rectangle(*at, DOT, DOT, QUERY, None, radius=DOT / 2, title=title))
    for label in place_labels(placed, names, range(len(names)), frame=MAP, size=9):
        items.append(Text(8 + label.x, TOP + label.y, names[label.point], anchor=label.end))
    return in_drawing(items)


def _missing(info: TraceInfo) -> str | None:
    return None if info.interface in ("causal_lm", "encoder", "seq2seq") else "it is for models of text alone"


VIEW = View(
    "words",
    "one word in several sentences: its contextual vectors",
    draw,
    ("*.hidden",),
    _missing,
    several_inputs=True,
    takes=("layer", "token"),
)
