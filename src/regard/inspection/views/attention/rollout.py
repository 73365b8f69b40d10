"""Attention rollout: how much of each input token reaches each position, through all layers up to one."""

from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.layout import MARGIN, TOP, framed, labelled, weights_style
from regard.inspection.drawing.links import top_of
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.inspection.patterns import rollout
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo
from regard.inspection.views.base import Choices, Subject, View

AXES = {"encoder": "text", "causal_lm": "text", "seq2seq": "source"}  # of the self-attention, by interface
CAPTION = (
    "How much of each input token (orange) reaches each position (blue): a layer is half attention, half residual."
)


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame a layer; a picture shows the last one, or the one that was chosen."""
    trace = subject.trace
    attentions = _stack(trace.info)
    missing = [one.path for one in attentions if one not in trace.attentions()]
    if missing:
        raise InputError(f"rollout needs the weights of all layers, and this trace has none of {missing[0]}")
    if choices.layer is not None and not 0 <= choices.layer < len(attentions):
        raise InputError(f"--layer {choices.layer}: wanted 0 to {len(attentions) - 1}")
    layers = [trace.weights(one) for one in attentions]
    frames = [
        Frame(f"after layer {number}", partial(_scene, trace, attentions[0], rollout(layers[: number + 1]), number))
        for number in range(len(layers))
    ]
    return Figure(frames, "layer", len(frames) - 1 if choices.layer is None else choices.layer)


def _stack(info: TraceInfo) -> list[AttentionInfo]:
    """The self-attention of an encoder or a language model, layer by layer."""
    axis = AXES.get(info.interface)
    return [one for one in info.attentions if one.queries == one.keys == axis]


def _scene(trace: Trace, attention: AttentionInfo, values: np.ndarray, layer: int) -> Scene:
    labels = trace.info.axes[attention.keys].tokens
    style = weights_style(values.shape, high=top_of(values))
    block = labelled(MARGIN, TOP, values, labels, labels, style, name=f"rollout after layer {layer}")
    title = f"attention rollout after layer {layer}, mean over heads"
    return framed(title, CAPTION, block.items, block.width, block.height)


def _missing(info: TraceInfo) -> str | None:
    if info.interface not in AXES:
        return "rollout follows one stack of self-attention over a text"
    return None if _stack(info) else "it has no self-attention, and rollout follows one token through its layers"


VIEW = View(
    "rollout",
    "how much of each input token reaches each position (attention rollout)",
    draw,
    missing=_missing,
    takes=("layer",),
)
