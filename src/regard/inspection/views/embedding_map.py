"""The words of the input and their nearest neighbors among the model's input embeddings, as a map."""

import re
from collections.abc import Sequence

import numpy as np

from regard.data.readers.word_vectors import WordVectors
from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, INK, KEY, QUERY, RULE
from regard.inspection.drawing.layout import MARGIN, TOP, Block, framed, widest
from regard.inspection.drawing.scene import Figure, Item, Line, Rectangle, Scene, Text, in_drawing
from regard.inspection.maps.labels import line_end
from regard.inspection.maps.map import FONT_SIZE, FRAME, MAX_LABELED, explained_variance, lay_out, pca
from regard.inspection.maps.neighbors import Neighbor, nearest, units, word_embeddings
from regard.inspection.trace import TraceInfo
from regard.inspection.views.base import Choices, Subject, View

SCALE = 0.6  # of the frame of a map, in points of the page
DOT = 5.0
ROW = 13.0  # of the list of neighbors
CAPTION = (
    "Blue: words of the input; orange: their nearest embeddings by cosine, {count} each. Near dots have like vectors."
)


def draw(subject: Subject, choices: Choices) -> Figure:
    """A dot for each word of the input that is a token of its own, and for its neighbors; below, their cosines."""
    pipeline = subject.require_model("map")
    vectors = word_embeddings(pipeline.model.input_embeddings, pipeline.tokenizer.single_token_words())
    words = words_of(subject.trace.info, vectors)
    if not words:
        raise InputError(
            "no word of the input is a token of its own, so there is no embedding to show; try other words"
        )
    count = min(choices.limit, max(1, MAX_LABELED // len(words) - 1))
    found = {word: nearest(vectors, word, count=count) for word in words}
    return Figure.of(_scene(vectors, found, CAPTION.format(count=count)))


def words_of(info: TraceInfo, vectors: WordVectors) -> list[str]:
    """The words of all texts of a trace that have an embedding of their own; else such tokens."""
    texts = [word for axis in info.axes.values() for word in re.findall(r"\w+", axis.text)]
    tokens = [label.strip("·▁") for axis in info.axes.values() for label in axis.tokens]
    for words in (texts, tokens):
        known = [form for word in words for form in (word, word.lower()) if form in vectors.rows]
        if known:
            return list(dict.fromkeys(known))
    return []


def _scene(vectors: WordVectors, found: dict[str, list[Neighbor]], caption: str) -> Scene:
    shown = list(dict.fromkeys([*found, *(one.word for several in found.values() for one in several)]))
    matrix = units(vectors.matrix[[vectors.rows[word] for word in shown]])  # neighbors by cosine are near on the map
    points = pca(matrix)
    width, height = FRAME[0] * SCALE, FRAME[1] * SCALE
    kept = f"PCA: the two axes keep {explained_variance(matrix, points):.0%} of the variance"
    listed = _neighbors(found, MARGIN, TOP + height + 26)
    items: list[Item] = [
        Rectangle(MARGIN, TOP, width, height, stroke=RULE),
        *in_drawing(_dots(shown, points, set(found))),
        Text(MARGIN, TOP + height + 10, kept, 8, FAINT),
        *listed.items,
    ]
    title = f"embeddings: {len(shown)} of {len(vectors.words):,} words"
    return framed(title, caption, items, max(width, listed.width), height + 26 + listed.height)


def _dots(words: Sequence[str], points: np.ndarray, chosen: set[str]) -> list[Item]:
    """The points with the labels that fit, the chosen words over the others."""
    drawn = lay_out(words, points, chosen)
    items: list[Item] = []
    placed = np.array([MARGIN, TOP]) + drawn.points * SCALE
    for number, (word, (x, y), point) in enumerate(zip(words, placed, points, strict=True)):
        color, title = QUERY if number in drawn.chosen else KEY, f"{word}: {point[0]:.6g}, {point[1]:.6g}"
        box = (float(x) - DOT / 2, float(y) - DOT / 2, DOT, DOT)
        items.append(Rectangle(*box, color, None, radius=DOT / 2, title=title))
    for label in drawn.labels:
        if label.away:
            x, y = (float(part) for part in drawn.points[label.point])
            ends = ((x, y), line_end(x, y, label))
            items.append(Line([(MARGIN + across * SCALE, TOP + down * SCALE) for across, down in ends], RULE))
        bold = label.point in drawn.chosen
        at = (MARGIN + label.x * SCALE, TOP + label.y * SCALE)
        items.append(Text(*at, words[label.point], FONT_SIZE * SCALE, QUERY if bold else INK, label.end, bold))
    return items


def _neighbors(found: dict[str, list[Neighbor]], x: float, y: float) -> Block:
    """A line a word: its neighbors, nearest first, each with its cosine."""
    items: list[Item] = []
    left, wide = x + widest(list(found)) + 10, 0.0
    for number, (word, near) in enumerate(found.items()):
        line = ", ".join(f"{one.word} {one.cosine:.2f}" for one in near)
        middle = y + (number + 0.5) * ROW
        items += [Text(x, middle, word, color=QUERY, bold=True), Text(left, middle, line, 8, FAINT)]
        wide = max(wide, left - x + widest([line], 8))
    return Block(items, wide, ROW * len(found))


VIEW = View("map", "the words of the input among their nearest embeddings, as a map", draw, (), takes=("limit",))
