"""Where one token looks: its attention to the tokens of the sentence, over all layers and heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, HEADS, PAPER, QUERY, RULE, hexadecimal, shade, text_on
from regard.inspection.drawing.layout import GAP, MARGIN, TOP, Block, Style, framed, labelled, widest
from regard.inspection.drawing.links import BETWEEN, lines, shaded_sentence, top_of
from regard.inspection.drawing.scene import Figure, Frame, Item, Rectangle, Scene, Text
from regard.inspection.trace import AttentionInfo, Axis, Trace
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    find_tokens,
    key_labels,
    needs_attention,
    query_labels,
)

ROW = 16.0  # of a token in a column
SQUARE = 10.0  # of a head beside a key
PROBE = "a linear classifier on the hidden states of one layer, fitted on stories in which the noun is known"
LONGEST = 48  # tokens of a sentence that is drawn as two columns


@dataclass(frozen=True)
class _Looking:
    """The attention of one token, or the mean of the tokens of a word: in each layer the weights (heads, keys)."""

    places: Sequence[int]
    said: str  # what the model's probe says of this token
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    layers: list[np.ndarray]
    heads: Sequence[int]

    @property
    def token(self) -> str:
        return "".join([self.queries[self.places[0]], *(self.queries[at].removeprefix("·") for at in self.places[1:])])

    @property
    def title(self) -> str:
        mean = f" (mean of {len(self.places)} tokens)" if len(self.places) > 1 else ""
        return f"where “{self.token}”{mean} looks"


def draw(subject: Subject, choices: Choices) -> Figure:
    """All layers and heads in one frame; then each layer, with a color for each head."""
    attentions, places = choose_query(subject.trace, choices)
    looking = _look(subject.trace, attentions, places, choices.head)
    frames = [Frame("all layers", partial(_all_layers, looking))]
    if len(looking.keys) <= LONGEST:
        frames += [Frame(f"layer {n}", partial(_one_layer, looking, n)) for n in range(len(looking.layers))]
    if choices.layer is not None and not 0 <= choices.layer < len(looking.layers):
        raise InputError(f"--layer {choices.layer}: wanted 0 to {len(looking.layers) - 1}")
    return Figure(frames, "layer", 0 if choices.layer is None or len(frames) == 1 else choices.layer + 1)


def choose_query(trace: Trace, choices: Choices) -> tuple[list[AttentionInfo], list[int]]:
    """The attentions whose queries have the token, self-attention first, and the positions of its tokens."""
    kinds: dict[tuple[str, str], list[AttentionInfo]] = {}
    for one in choose_attention(trace, replace(choices, layer=None)):
        kinds.setdefault((one.queries, one.keys), []).append(one)
    missing: InputError | None = None
    for found in sorted(kinds.values(), key=lambda several: several[0].queries != several[0].keys):
        try:
            return found, find_tokens(Axis(tokens=query_labels(trace, found[0])), choices.token)
        except InputError as error:
            missing = missing or error
    assert missing is not None
    raise missing


def _look(trace: Trace, attentions: list[AttentionInfo], places: list[int], head: int | None) -> _Looking:
    layers = [trace.weights(one)[:, places].mean(1) for one in attentions]
    for layer in layers:
        check_head(head, len(layer))
    chosen = layers if head is None else [layer[[head]] for layer in layers]
    heads = range(max(map(len, layers))) if head is None else [head]
    said = probed(trace, places[0]) if attentions[0].queries == attentions[0].keys else ""
    return _Looking(places, said, query_labels(trace, attentions[0]), key_labels(trace, attentions[0]), chosen, heads)


def probed(trace: Trace, place: int) -> str:
    """What the model's coreference probe says of a token, if it has one: the probability of each noun."""
    for one in trace.info.references:
        if one.token == place:
            named = sorted(zip(one.shares, one.nouns, strict=True), reverse=True)
            told = ", ".join(f"{noun} {share:.2f}" for share, noun in named)
            return f"probe: {told} ({one.accuracy:.0%} right in held-out stories)"
    return ""


def _scene(looking: _Looking, title: str, caption: str, items: list[Item], width: float, height: float) -> Scene:
    """Framed, with what the probe says below."""
    if not looking.said:
        return framed(title, caption, items, width, height)
    below = Text(MARGIN, TOP + height + 12, looking.said, title=PROBE)
    return framed(title, caption, [*items, below], max(width, widest([looking.said])), height + 20)


# ------------------------------------------------ all layers


def _all_layers(looking: _Looking) -> Scene:
    rows = np.concatenate(looking.layers)
    mean = np.mean(rows, axis=0)
    items: list[Item] = []
    x, height = MARGIN, 0.0
    matrix_width = _cell(rows.shape)[0] * len(looking.keys)
    if len(looking.keys) <= LONGEST:
        columns = _two_columns(looking, mean, x, TOP)
        items += columns.items
        x, height = x + columns.width + 28, columns.height
    sentence = shaded_sentence(x, TOP, looking.keys, mean, max(matrix_width, 300), outlined=_itself(looking))
    matrix = _matrix(looking, rows, x, TOP + sentence.height + 8)
    items += [*sentence.items, *matrix.items]
    caption = "Shaded: the mean over all heads. Below, one row a head (layer.head): the weights of this token's query."
    width = x + max(matrix.width, sentence.width) - MARGIN
    height = max(height, sentence.height + 8 + matrix.height)
    return _scene(looking, f"{looking.title}: all layers and heads", caption, items, width, height)


def _itself(looking: _Looking) -> Sequence[int]:
    """The tokens among the keys, in self-attention."""
    return looking.places if looking.queries == looking.keys else ()


def _matrix(looking: _Looking, rows: np.ndarray, x: float, y: float) -> Block:
    names = [
        f"{n}.{head}" for n, layer in enumerate(looking.layers) for head, _ in zip(looking.heads, layer, strict=False)
    ]
    cell = _cell(rows.shape)
    style = Style(cell, "key", 0.0, top_of(rows), 2 if cell[0] == 30 else None)
    return labelled(x, y, rows, names, looking.keys, style, name=f"attention of {looking.token}")


def _cell(shape: tuple[int, ...]) -> tuple[float, float]:
    """The size of a cell: with room for its number if there are few."""
    rows, columns = shape
    if rows * columns <= 600 and columns <= 24:
        return 30.0, 16.0
    return min(18.0, max(600 / columns, 2.0)), min(14.0, max(720 / rows, 5.0))


# ------------------------------------------------ the sentence twice


def _one_layer(looking: _Looking, layer: int) -> Scene:
    weights = looking.layers[layer]
    x, y = MARGIN, TOP + 14
    columns = _two_columns(looking, weights.mean(0), x, y, layer)
    x += columns.width + 10
    items: list[Item] = [*columns.items, Text(x - GAP, TOP + 6, "head", 7, FAINT, "right")]
    for number, (head, row) in enumerate(zip(looking.heads, weights, strict=False)):
        left, color = x + number * (SQUARE + 3), HEADS[number % len(HEADS)]
        items.append(Text(left + SQUARE / 2, TOP + 6, str(head), 7, color, "center", title=f"head {head}"))
        for key, weight in enumerate(row):
            box = (left, y + key * ROW + (ROW - SQUARE) / 2, SQUARE, SQUARE)
            title = f"head {head}: {looking.token} → {looking.keys[key]}: {weight:.6g}"
            items.append(Rectangle(*box, PAPER, RULE, 0.5))
            items.append(Rectangle(*box, color, None, opacity=float(weight), title=title))
    caption = "Left the query, right the keys, shaded by the mean over heads; one color a head, full is a weight of 1."
    width = columns.width + 10 + len(weights) * (SQUARE + 3)
    title = f"{looking.title}: layer {layer}"
    return _scene(looking, title, caption, items, width, columns.height + 14)


def _two_columns(looking: _Looking, mean: np.ndarray, x: float, y: float, layer: int | None = None) -> Block:
    """Queries to the left with the token marked, keys to the right shaded by the mean; lines a head, or of the mean."""
    left = x + widest(looking.queries) + 2 * GAP
    right, wide = left + BETWEEN * 0.75, widest(looking.keys) + 2 * GAP
    named = [("mean: ", QUERY, mean)]
    if layer is not None:
        pairs = enumerate(zip(looking.heads, looking.layers[layer], strict=False))
        named = [(f"head {head}: ", HEADS[number % len(HEADS)], row) for number, (head, row) in pairs]
    items: list[Item] = []
    for name, color, row in named:
        weights = np.zeros((len(looking.queries), len(looking.keys)), np.float32)
        weights[looking.places] = row
        items += lines((left, right), y + ROW / 2, ROW, looking.queries, looking.keys, weights, color, name)
    items += [*_queries(looking, x, left, y), *_keys(looking, mean, right, y, wide)]
    return Block(items, right + wide - x, ROW * max(len(looking.queries), len(looking.keys)))


def _queries(looking: _Looking, x: float, right: float, y: float) -> list[Item]:
    boxes = [(x, y + place * ROW + 1, right - x, ROW - 2) for place in looking.places]
    items: list[Item] = [Rectangle(*box, QUERY, None, radius=2) for box in boxes]
    for number, token in enumerate(looking.queries):
        marked = number in looking.places
        at = (right - GAP, y + (number + 0.5) * ROW)
        color = PAPER if marked else FAINT
        items.append(Text(*at, token, color=color, anchor="right", bold=marked, in_drawing=True))
    return items


def _keys(looking: _Looking, mean: np.ndarray, x: float, y: float, wide: float) -> list[Item]:
    items: list[Item] = []
    for number, (token, color) in enumerate(zip(looking.keys, shade(mean, "key", 0.0, top_of(mean)), strict=True)):
        top, title = y + number * ROW, f"mean: {looking.token} → {token}: {mean[number]:.6g}"
        items.append(Rectangle(x, top + 1, wide, ROW - 2, hexadecimal(color), None, radius=2, title=title))
        items.append(Text(x + GAP, top + ROW / 2, token, color=text_on(color), in_drawing=True))
    return items


VIEW = View(
    "token",
    "where one token looks (--token), over all layers and heads",
    draw,
    missing=needs_attention,
    takes=("attention", "layer", "head", "token"),
)
