"""One head, or where one token looks, at each kept checkpoint of a training run."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT
from regard.inspection.drawing.layout import MARGIN, TOP, Block, Style, framed, labelled, weights_style, widest
from regard.inspection.drawing.links import top_of
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text
from regard.inspection.patterns import head_pattern
from regard.inspection.trace import AttentionInfo, Trace
from regard.inspection.views.attention.alignment import Gold, gold_of
from regard.inspection.views.attention.token import choose_query
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    is_cross,
    key_labels,
    needs_attention,
    query_labels,
)

SIDE = 150.0  # of one head, in points
APART = 16.0
ACROSS = 720.0  # of the small multiples of one line
NAME = 14.0
CAPTION = "The same input at each checkpoint: queries down, keys across; dark is a large weight."
TOKEN = "One row a checkpoint: how much this token attends to each token; dark is a large weight."


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a head, with its matrix at every checkpoint; with a token, a row of each checkpoint.

    A picture shows the head that aligns best at the last checkpoint where gold links are given, else the head whose
    attention has changed the most.
    """
    traces = [subject.trace, *subject.others]
    if len(traces) < 2:
        raise InputError(
            "the view checkpoints compares the checkpoints of a run; name its folder: regard show runs/NAME … "
            "--view checkpoints"
        )
    with_gold = bool(choices.gold or choices.possible)
    if choices.token is not None:
        if with_gold:
            raise InputError("--gold does not change where one token looks at each checkpoint; leave it or --token out")
        return _of_a_token(traces, subject.names, choices)
    first, last = traces[0], traces[-1]
    attentions = choose_attention(last, choices, where=is_cross if with_gold else None)
    gold = gold_of(last, attentions[0], choices)
    frames, ranks = [], []
    for attention in attentions:
        weights = last.weights(attention)
        check_head(choices.head, len(weights))
        crossing = any(is_cross(one) for one in attentions)
        for head in range(len(weights)) if choices.head is None else [choices.head]:
            name = f"{attention.path or 'attention'}, head {head}"
            frames.append(Frame(name, partial(_scene, traces, subject.names, attention, head, gold, name)))
            moved = change(first.weights(attention)[head], weights[head])
            preferred = is_cross(attention) == crossing
            ranks.append(gold.rank(weights[head]) if gold else (float(not preferred), -moved))
    return Figure(frames, "head", ranks.index(min(ranks)))


def change(before: np.ndarray, after: np.ndarray) -> float:
    """How much attention weights (queries, keys) have moved: the mean total variation distance, 0 to 1."""
    return float(np.abs(after - before).sum(-1).mean() / 2)


def _scene(
    traces: Sequence[Trace], names: Sequence[str], attention: AttentionInfo, head: int, gold: Gold | None, name: str
) -> Scene:
    several = [trace.weights(attention)[head] for trace in traces]
    rows, columns = query_labels(traces[-1], attention), key_labels(traces[-1], attention)
    special = np.array([label.startswith(("[", "<")) for label in columns])
    cell = min(14.0, SIDE / max(several[0].shape))
    style = Style((cell, cell), "query", 0.0, max(map(top_of, several)), None)
    items: list[Item] = []
    x, y, right, below = MARGIN, TOP, 0.0, 0.0
    for step, weights in zip(names, several, strict=True):
        said = f"AER {gold.error_rate(weights):.0%}" if gold else ""
        said = said or head_pattern(weights, special, square=not is_cross(attention))
        block = _multiple(x, y, weights, rows, columns, style, step, said, first=x == MARGIN)
        items += block.items
        right, below = max(right, x + block.width), max(below, y + block.height)
        x += block.width + APART
        if x + block.width > ACROSS:
            x, y = MARGIN, below + APART
    moved = f"From the first to the last, {change(several[0], several[-1]):.0%} of its attention has moved."
    return framed(f"{name}, {names[0]} to {names[-1]}", f"{CAPTION} {moved}", items, right - MARGIN, below - TOP)


def _multiple(
    x: float,
    y: float,
    weights: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    style: Style,
    step: str,
    said: str,
    *,
    first: bool,
) -> Block:
    """One checkpoint's matrix below its name; only the first of a line has the labels of its rows beside it."""
    beside = rows if first else [""] * len(rows)
    block = labelled(x, y + NAME, weights, beside, columns, style, name=f"attention, {step}")
    items = [replace(item, rows=rows) if isinstance(item, Matrix) else item for item in block.items]
    (matrix,) = (item for item in items if isinstance(item, Matrix))
    title = Text(matrix.x, y + NAME / 2, f"{step}: {said}", 8, FAINT)
    width = max(block.width, matrix.x - x + widest([title.text], 8))
    return Block([title, *items], width, block.height + NAME)


def _of_a_token(traces: Sequence[Trace], names: Sequence[str], choices: Choices) -> Figure:
    """The mean over the heads that are chosen, then each head."""
    attentions, places = choose_query(traces[-1], choices)
    if choices.layer is not None:
        if not 0 <= choices.layer < len(attentions):
            raise InputError(f"--layer {choices.layer}: wanted 0 to {len(attentions) - 1}")
        attentions = [attentions[choices.layer]]
    rows = [[trace.weights(one)[:, places].mean(1) for one in attentions] for trace in traces]
    for layer in rows[-1]:
        check_head(choices.head, len(layer))
    named = {"mean of all heads": np.stack([np.concatenate(one).mean(0) for one in rows])}
    for number, attention in enumerate(attentions):
        for head in range(len(rows[-1][number])) if choices.head is None else [choices.head]:
            named[f"{attention.path}, head {head}"] = np.stack([one[number][head] for one in rows])
    queries, keys = query_labels(traces[-1], attentions[0]), key_labels(traces[-1], attentions[0])
    token = "".join(queries[place].removeprefix("·") for place in places)
    frames = [Frame(name, partial(_token_scene, token, keys, names, name, values)) for name, values in named.items()]
    return Figure(frames, "head", 0 if choices.head is None else len(frames) - 1)


def _token_scene(token: str, keys: Sequence[str], names: Sequence[str], name: str, values: np.ndarray) -> Scene:
    style = replace(weights_style(values.shape), high=top_of(values))
    block = labelled(MARGIN, TOP, values, names, keys, style, name=f"attention of {token}, {name}")
    title = f"where “{token}” looks, {names[0]} to {names[-1]}: {name}"
    return framed(title, TOKEN, block.items, block.width, block.height)


VIEW = View(
    "checkpoints",
    "a head, or a token (--token), at each kept checkpoint of a run folder",
    draw,
    missing=needs_attention,
    of_a_run=True,
    takes=("attention", "layer", "head", "token", "gold", "possible"),
)
