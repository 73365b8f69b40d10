"""The co-attention of ViLBERT in both directions, with the regions drawn as boxes over the image."""

from functools import partial

import numpy as np

from regard.inspection.drawing.colors import IMAGE, INK, KEY, PAPER, QUERY
from regard.inspection.drawing.layout import TOP, Style, labelled, widest
from regard.inspection.drawing.scene import Figure, Frame, Item, Picture, Rectangle, Scene, Text, heading
from regard.inspection.trace import Trace, TraceInfo
from regard.inspection.views.base import Choices, Subject, View, choose_attention, find_tokens, layer_of

SIDE = 200.0
MAX_LABELS = 40  # more regions are cells of a grid, and have no labels
CAPTION = (
    "Left: the regions, violet by the attention that the chosen word pays them. Right: both directions as numbers."
)


def draw(subject: Subject, choices: Choices) -> Figure:
    """The mean over all layers and heads, then each layer."""
    trace = subject.trace
    to_regions = choose_attention(trace, choices, where=lambda one: (one.queries, one.keys) == ("text", "regions"))
    layers = [layer_of(trace, one) for one in to_regions]
    all_to_text = [one for one in trace.info.attentions if (one.queries, one.keys) == ("regions", "text")]
    to_text = [all_to_text[layer] for layer in layers]
    pairs = [(trace.weights(a).mean(0), trace.weights(b).mean(0)) for a, b in zip(to_regions, to_text, strict=True)]
    tokens = _tokens(trace, choices, np.mean([one for one, _ in pairs], axis=0))
    mean = [np.mean([pair[side] for pair in pairs], axis=0) for side in (0, 1)]
    frames = [Frame("mean of all layers", partial(_scene, trace, mean[0], mean[1], tokens, "mean of all layers"))]
    for layer, (regions, text) in zip(layers, pairs, strict=True):
        frames.append(Frame(f"layer {layer}", partial(_scene, trace, regions, text, tokens, f"layer {layer}")))
    return Figure(frames, "layer")


def _tokens(trace: Trace, choices: Choices, weights: np.ndarray) -> list[int]:
    """The tokens of the word that is looked at: --token, or the one whose attention to a region is the sharpest."""
    axis = trace.info.axes["text"]
    if choices.token is not None:
        return find_tokens(axis, choices.token)
    is_word = np.array([not label.startswith("[") for label in axis.tokens])
    return [int((weights[:, 1:].max(-1, initial=0.0) * is_word).argmax())]


def _scene(trace: Trace, regions: np.ndarray, text: np.ndarray, tokens: list[int], name: str) -> Scene:
    words, boxes = trace.info.axes["text"].tokens, trace.info.axes["regions"]
    answer = trace.info.answer or {}
    said = f", answer: {answer['answer']}" if isinstance(answer, dict) and "answer" in answer else ""
    word = "".join(words[token].removeprefix("·") for token in tokens)
    mean = f" (mean of {len(tokens)} tokens)" if len(tokens) > 1 else ""
    title = f"co-attention, {name}: “{word}”{mean} looks at the regions{said}"
    items: list[Item] = [*heading(title, CAPTION), *_image(trace, regions[tokens].mean(0))]
    below = f"attention of “{word}”, {name}"
    items.append(Text(8, TOP + SIDE + 10, below, color=IMAGE, in_drawing=True))
    labels = boxes.tokens
    digits, cell = (2, (34.0, 16.0)) if len(labels) <= MAX_LABELS else (None, (5.0, 12.0))
    x = SIDE + 32
    items.append(Text(x, TOP + 4, "words attend to regions", bold=True, in_drawing=True))
    shown = labels if len(labels) <= MAX_LABELS else ()
    first = labelled(
        x,
        TOP + 12,
        regions,
        words,
        shown,
        Style(cell, "image", digits=digits, colors=(QUERY, IMAGE)),
        name="words to regions",
    )
    y = TOP + 30 + first.height
    items.append(Text(x, y, "regions attend to words", bold=True, in_drawing=True))
    second = labelled(
        x,
        y + 8,
        text.T,
        words,
        shown,
        Style(cell, "key", digits=digits, colors=(KEY, IMAGE)),
        name="regions to words, a column each",
    )
    items += [*first.items, *second.items]
    height = max(TOP + SIDE + 24, y + second.height + 20)
    return Scene(max(x + max(first.width, second.width) + 16, 620), height, items, title, CAPTION)


def _image(trace: Trace, weights: np.ndarray) -> list[Item]:
    image, axis = trace.image, trace.info.axes["regions"]
    assert image is not None
    scale = SIDE / max(image.shape[:2])
    wide, high = image.shape[1] * scale, image.shape[0] * scale
    items: list[Item] = [Picture(8, TOP, wide, high, image, "the image")]
    most = max(float(weights.max()), 1e-9)
    for name, box, weight in zip(axis.tokens, axis.boxes, weights.tolist(), strict=True):
        left, top, right, bottom = box
        place = (8 + left * wide, TOP + top * high, (right - left) * wide, (bottom - top) * high)
        said = f"{name}: {weight:.6g}"
        if name == axis.tokens[0]:  # the whole image
            items.append(Rectangle(*place, stroke=INK, line_width=0.5 + 2 * weight / most, title=said))
            continue
        items.append(Rectangle(*place, fill=IMAGE, stroke=None, opacity=0.55 * weight / most, title=said))
        items.append(Rectangle(*place, stroke=IMAGE, line_width=0.5 + 1.5 * weight / most, title=said))
        if len(axis.tokens) <= MAX_LABELS:
            label = f"{name} {weight:.2f}"
            items.append(Rectangle(place[0], place[1] - 9, widest([label], 7) + 4, 9, fill=PAPER, stroke=IMAGE))
            items.append(Text(place[0] + 2, place[1] - 4.5, label, size=7, color=INK, in_drawing=True))
    return items


def _missing(info: TraceInfo) -> str | None:
    return None if info.interface == "vision_language" else "it is for models of text and image (ViLBERT)"


VIEW = View(
    "coattention",
    "ViLBERT's attention between words and regions, both ways",
    draw,
    missing=_missing,
    takes=("attention", "layer", "token"),
)
