"""The states of a recurrent model and its gates, token by token."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, INK, KEY
from regard.inspection.drawing.layout import TOP, Block, heading_width, widest
from regard.inspection.drawing.scene import Figure, Frame, Item, Matrix, Scene, Text, heading
from regard.inspection.trace import Trace, TraceInfo
from regard.inspection.views.base import Choices, Subject, View

# value -> its name and what it is, in the order of the panels
MEANINGS = {
    "reset_gate": ("reset gate", "how much of the old state enters the candidate"),
    "update_gate": ("update gate", "how much of the old state is kept; the rest is the candidate"),
    "input_gate": ("input gate", "how much of the candidate enters the cell"),
    "forget_gate": ("forget gate", "how much of the old cell is kept"),
    "output_gate": ("output gate", "how much of the cell the state shows"),
    "candidate": ("candidate", "what this token would write"),
    "state": ("state", "what the layer hands on"),
}
MAX_UNITS = 48
CELL = (16.0, 4.0)
PAGE = 700.0  # panels beyond this width begin a new row
GAP = 22.0
TOKENS = 52.0  # the most room of the tokens above a panel
MAX_TOKENS = 40


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame for each recurrent layer and direction."""
    trace = subject.trace
    layers = dict.fromkeys(path.rpartition(".")[0] for path in trace.values if path.endswith(".candidate"))
    if not layers:
        raise InputError("this trace has no gates; trace again without --taps, or give the model's folder")
    frames = [Frame(layer, partial(_scene, trace, layer)) for layer in layers]
    return Figure(frames, "layer")


def layer_values(trace: Trace, layer: str) -> dict[str, np.ndarray]:
    """The gates (T, D) of a layer by name, and its states where the model names them, in the order of the text."""
    found = {name: trace.values[f"{layer}.{name}"] for name in MEANINGS if f"{layer}.{name}" in trace.values}
    if layer.endswith(".backwards"):  # it reads from the last token to the first
        found = {name: value[::-1] for name, value in found.items()}
    states = _states(trace, layer, next(iter(found.values())).shape[1])
    return found if states is None else found | {"state": states}


def _states(trace: Trace, layer: str, width: int) -> np.ndarray | None:
    parent, _, direction = layer.rpartition(".")
    if direction in ("forwards", "backwards"):
        hidden = trace.values.get(f"{parent}.hidden")
        if hidden is None:
            return None
        return hidden[:, :width] if direction == "forwards" else hidden[:, -width:]
    layers = [path for path in trace.values if path.endswith(".candidate") and path.startswith(parent + ".")]
    is_last = layers[-1] == f"{layer}.candidate"  # the model names the states that lead to the logits
    name = next((path for path in ("states", "decoder.states") if path in trace.values), None)
    return trace.values[name] if is_last and name else None


def _scene(trace: Trace, layer: str) -> Scene:
    tokens = trace.info.axes["source" if layer.startswith("encoder") else "target"].tokens[:MAX_TOKENS]
    values = layer_values(trace, layer)
    units = next(iter(values.values())).shape[1]
    title = f"states and gates of {layer}"
    shown = f"the first {MAX_UNITS} of {units} units" if units > MAX_UNITS else f"{units} units"
    caption = f"One column a token, one row a unit ({shown}). Gates: white 0, dark 1. States: orange -1, blue 1."
    items: list[Item] = heading(title, caption)
    x, y, right, row = 8.0, TOP, heading_width(title, caption), 0.0
    for name, value in values.items():
        block = _panel(x, y, name, value[: len(tokens)], tokens)
        if x > 8 and x + block.width > PAGE:
            x, y = 8.0, y + row + GAP
            block = _panel(x, y, name, value[: len(tokens)], tokens)
        items += block.items
        row, right = block.height, max(right, x + block.width + 12)
        x += block.width + GAP
    y += row + 14
    for number, name in enumerate(values):
        items.append(Text(8, y + number * 12, ": ".join(MEANINGS[name]), size=8, color=FAINT))
    return Scene(right, y + len(values) * 12, items, title, caption)


def _panel(x: float, y: float, name: str, value: np.ndarray, tokens: Sequence[str]) -> Block:
    """One gate, or the states: units down, tokens across."""
    cells = value[:, :MAX_UNITS].T
    ramp, low = ("query", 0.0) if name.endswith("gate") else ("diverging", -1.0)
    labels = [_short(token) for token in tokens]
    below = widest(labels, 8) + 18
    units = [f"unit {unit}" for unit in range(len(cells))]
    matrix = Matrix(x, y + below, *CELL, cells, units, tokens, ramp, low, name=name)
    items: list[Item] = [Text(x, y + 5, MEANINGS[name][0], color=INK, bold=True), matrix]
    for number, label in enumerate(labels):
        items.append(Text(x + (number + 0.5) * CELL[0], y + below - 3, label, 8, KEY, rotated=True))
    return Block(items, max(matrix.width, widest([MEANINGS[name][0]])), below + matrix.height)


def _short(token: str) -> str:
    return token if widest([token], 8) <= TOKENS else token[:8] + "…"


def _missing(info: TraceInfo) -> str | None:
    return None if any(one.kind in ("GRU", "LSTM") for one in info.modules) else "it has no recurrent layers"


TAPS = (*(f"*.{name}" for name in MEANINGS), "*.hidden", "states", "decoder.states")
VIEW = View("states", "the states and gates of a recurrent model, token by token", draw, TAPS, _missing)
