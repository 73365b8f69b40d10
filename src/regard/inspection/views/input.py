"""The input row of an encoder: token, position and segment embeddings, their sum, and how training would mask it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.data.masking import IGNORE_INDEX, MaskingConfig, MaskingVocab, mask_row
from regard.inspection.drawing.colors import FAINT, INK, KEY, MASKED, PAPER, QUERY, VALUE
from regard.inspection.drawing.layout import TOP, heading_width
from regard.inspection.drawing.scene import Figure, Item, Line, Matrix, Rectangle, Scene, Text, heading
from regard.inspection.maps.labels import text_width
from regard.inspection.trace import Axis, TraceInfo
from regard.inspection.tracing import TraceInputs
from regard.inspection.views.base import Choices, Subject, View
from regard.layers.embeddings import TextEmbedding

NUMBERS = 8  # of each vector that are shown
CELL = (44.0, 6.0)
LEFT = 70.0
SIZE = 8.0
MASK = "[MASK]"
SEED = (0,)  # of the masking that is shown


@dataclass(frozen=True)
class Row:
    """The ids of a row, and the three embeddings (T, D) that are added."""

    ids: np.ndarray
    tokens: np.ndarray
    positions: np.ndarray
    segments: np.ndarray

    @property
    def sum(self) -> np.ndarray:
        found: np.ndarray = self.tokens + self.positions + self.segments
        return found


def draw(subject: Subject, choices: Choices) -> Figure:
    """Three aligned rows of embeddings and their sum; below, the row as masked language modeling would mask it."""
    pipeline, axis = subject.require_model("input"), subject.trace.info.axes["text"]
    assert subject.inputs is not None
    row = input_row(pipeline.model, subject.inputs)
    title = "the input of the encoder: token + position + segment"
    caption = f"One column a token; of each vector its first {NUMBERS} numbers: orange negative, blue positive."
    items: list[Item] = heading(title, caption)
    y = _embeddings(items, axis, row)
    if getattr(pipeline.tokenizer, "mask_id", None) is not None:
        y = _masking(items, pipeline, axis, row, y + 14)
    room = 16 + max(text_width(one.text, one.size) for one in items if isinstance(one, Text) and one.x == 8)
    width = max(LEFT + CELL[0] * len(axis.tokens) + 60, heading_width(title, caption), room)
    return Figure.of(Scene(width, y + 10, items, title, caption))


@torch.inference_mode()
def input_row(model: nn.Module, inputs: TraceInputs) -> Row:
    """The embeddings of the row that one pass gives to the model."""
    embedding = next(module for module in model.modules() if isinstance(module, TextEmbedding))
    seen: list[tuple[Any, ...]] = []
    hook = embedding.register_forward_pre_hook(lambda _module, arguments: seen.append(arguments))
    try:
        inputs.forward()
    finally:
        hook.remove()
    ids, segment_ids = seen[0][:2]
    segment_ids = torch.zeros_like(ids) if segment_ids is None else segment_ids
    parts = embedding.tokens(ids)[0], embedding.positions(0, ids.shape[1]), embedding.segments(segment_ids)[0]
    return Row(ids[0].cpu().numpy(), *(part.float().cpu().numpy() for part in parts))


def _embeddings(items: list[Item], axis: Axis, row: Row) -> float:
    """Adds the labels and the four rows; returns where they end."""
    y = TOP + 8
    for number, token in enumerate(axis.tokens):
        items.append(Text(_middle(number), y, _fitted(token), SIZE, KEY if token == MASK else INK, "center"))
    y += 8
    named = {"token": row.tokens, "+ position": row.positions, "+ segment": row.segments, "= sum": row.sum}
    high = max(float(np.abs(value[:, :NUMBERS]).max()) for value in named.values())
    begin = y
    for name, value in named.items():
        cells = value[:, :NUMBERS].T
        numbers = [f"number {at}" for at in range(len(cells))]
        items.append(
            Matrix(LEFT, y, *CELL, cells, numbers, axis.tokens, "diverging", -high, high, name=name.strip("+= "))
        )
        items.append(Text(LEFT - 6, y + CELL[1] * len(cells) / 2, name, color=INK, anchor="right"))
        for at, vector in enumerate(value):
            norm = float(np.linalg.norm(vector))
            below = y + CELL[1] * len(cells) + 6
            title = f"norm of {name.strip('+= ')} {at}: {norm:.6g}"
            items.append(Text(_middle(at), below, _told(name, axis, at, norm), 7, FAINT, "center", title=title))
        y += CELL[1] * len(cells) + 18
    edges = [LEFT + CELL[0] * at for at in range(1, len(axis.tokens))]
    items += [Line([(x, begin), (x, y - 18)], PAPER) for x in edges]
    masks = [LEFT + CELL[0] * at for at, token in enumerate(axis.tokens) if token == MASK]
    items += [Rectangle(x, begin - 2, CELL[0], y - begin - 3, stroke=KEY, line_width=1.6) for x in masks]
    return y


def _told(name: str, axis: Axis, at: int, norm: float) -> str:
    """What stands below a vector: its position or its segment, or its norm."""
    if name == "+ position":
        return f"{at}, |x| {norm:.2f}"
    if name == "+ segment" and axis.segment_ids:
        return f"{'AB'[axis.segment_ids[at]] if axis.segment_ids[at] < 2 else axis.segment_ids[at]}, |x| {norm:.2f}"
    return f"|x| {norm:.2f}"


def _masking(items: list[Item], pipeline: Any, axis: Axis, row: Row, y: float) -> float:
    """Adds the row as masked language modeling would mask it; returns where it ends."""
    config, vocab = MaskingConfig(), MaskingVocab.from_tokenizer(pipeline.tokenizer)
    masked = mask_row(row.ids, vocab.word_ids(row.ids), config, vocab, SEED)
    shares = f"{config.masked:.0%} become {MASK}, {config.replaced:.0%} another token, {config.kept:.0%} stay"
    text = f"masked language modeling, one draw: {config.share:.0%} of the tokens are predicted; of these {shares}"
    items.append(Text(8, y, text, SIZE, INK))
    items.append(Text(LEFT - 6, y + 18, "input", color=INK, anchor="right"))
    items.append(Text(LEFT - 6, y + 34, "predict", color=INK, anchor="right"))
    for at, (given, target) in enumerate(zip(masked.ids.tolist(), masked.targets.tolist(), strict=True)):
        label = pipeline.tokenizer.token_labels([given])[0]
        is_predicted = target != IGNORE_INDEX
        color = FAINT if not is_predicted else KEY if given == vocab.mask_id else VALUE if given == target else QUERY
        items.append(
            Text(
                _middle(at),
                y + 18,
                _fitted(label),
                SIZE,
                color,
                "center",
                bold=is_predicted,
                title=f"{label}, id {given}",
            )
        )
        if is_predicted:
            wanted = pipeline.tokenizer.token_labels([target])[0]
            items.append(Rectangle(LEFT + CELL[0] * at + 1, y + 27, CELL[0] - 2, 14, stroke=MASKED))
            items.append(
                Text(_middle(at), y + 34, _fitted(wanted), SIZE, INK, "center", title=f"{wanted}, id {target}")
            )
    return y + 46


def _middle(number: int) -> float:
    return LEFT + (number + 0.5) * CELL[0]


def _fitted(token: str) -> str:
    while len(token) > 1 and text_width(token, SIZE) > CELL[0] + 4:
        token = token[:-2] + "…"
    return token


def _missing(info: TraceInfo) -> str | None:
    has_row = any(one.kind == "TextEmbedding" for one in info.modules)
    return None if has_row else "it has no token, position and segment embeddings that are added"


VIEW = View(
    "input", "the input row: token + position + segment embeddings, and masking", draw, (), _missing, static=True
)
