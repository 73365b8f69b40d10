"""Which heads matter: each is switched off in turn, and the effect stands beside its attention."""

from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.layout import TOP, Style, labelled
from regard.inspection.drawing.scene import Figure, Frame, Item, Scene, Text, heading
from regard.inspection.interventions import Effect, sweep
from regard.inspection.trace import Trace, TraceInfo
from regard.inspection.views.base import Choices, Subject, View, find_token, find_tokens

MAX_WIDTH = 420  # of a matrix that another stands beside
DROP = "drop of the log probability, in nats"
LARGEST = "largest attention weight there"
CAPTION = "How much the log probability of the model's choice falls without a head; beside it, how sharply it attends."


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame for each kind of attention: the drop of each head, and its largest weight."""
    pipeline = subject.require_model("switches")
    assert subject.inputs is not None
    trace = subject.trace
    position = _position(trace, choices)
    effects = sweep(pipeline.model, subject.inputs.forward, position, track=subject.track)
    kinds = dict.fromkeys((one.attention.queries, one.attention.keys) for one in effects)
    high = max(max((abs(one.drop) for one in effects), default=0.0), 1e-6)
    frames = [
        Frame(f"{queries} attends to {keys}", partial(_scene, trace, queries, keys, effects, position, high))
        for queries, keys in kinds
    ]
    strongest = max(effects, key=lambda one: one.drop)
    note = f"the head that matters most: {strongest.attention.path}:{strongest.head} (drop {strongest.drop:.3f})"
    chosen = list(kinds).index((strongest.attention.queries, strongest.attention.keys))
    return Figure(frames, "attention", chosen, (note,))


def _position(trace: Trace, choices: Choices) -> int | None:
    """The position whose choice is measured: --token, else a mask, else the last."""
    name = {"seq2seq": "target", "captioner": "target"}.get(trace.info.interface, "text")
    axis = trace.info.axes[name]
    if choices.token is not None:
        labels = axis.model_copy(update={"tokens": axis.generated}) if name == "target" else axis
        places = find_tokens(labels, choices.token)
        return find_token(labels, choices.token) if trace.info.task == "masked-lm" else places[-1]
    if trace.info.task == "masked-lm":
        masks = [number for number, label in enumerate(axis.tokens) if label == "[MASK]"]
        if not masks:
            raise InputError("which token? give --token, or write [MASK] for one word")
        return masks[0]
    return None


def _scene(trace: Trace, queries: str, keys: str, effects: list[Effect], position: int | None, high: float) -> Scene:
    mine = [one for one in effects if (one.attention.queries, one.attention.keys) == (queries, keys)]
    paths = list(dict.fromkeys(one.attention.path for one in mine))
    heads = 1 + max(one.head for one in mine)
    drops, sharpness = np.full((2, len(paths), heads), np.nan, np.float32)
    for one in mine:
        row = paths.index(one.attention.path)
        drops[row, one.head] = one.drop
        weights = trace.weights(one.attention)[one.head]
        sharpness[row, one.head] = weights[-1 if position is None or position >= len(weights) else position].max()
    title = f"heads switched off: {queries} attends to {keys}"
    items: list[Item] = heading(title, CAPTION)
    columns = [f"head {head}" for head in range(heads)]
    style = Style((46, 22), "diverging", -high, high, 3)
    items.append(Text(8, TOP + 6, DROP, bold=True, in_drawing=True))
    left = labelled(8, TOP + 16, drops, paths, columns, style, name=DROP)
    beside = left.width < MAX_WIDTH
    x, y = (left.width + 32, TOP) if beside else (8.0, TOP + 32 + left.height)
    items.append(Text(x, y + 6, LARGEST, bold=True, in_drawing=True))
    right = labelled(x, y + 16, sharpness, paths, columns, Style((46, 22)), name=LARGEST)
    items += [*left.items, *right.items]
    return Scene(max(x + right.width + 16, 560), y + 28 + right.height, items, title, CAPTION)


def _missing(info: TraceInfo) -> str | None:
    if not info.attentions:
        return "it has no attention"
    return "it has no head whose choice could be measured" if info.task == "embedding" else None


VIEW = View(
    "switches", "which heads matter: the effect of switching each one off", draw, missing=_missing, takes=("token",)
)
