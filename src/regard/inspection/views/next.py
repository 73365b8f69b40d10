"""The next token: the probabilities at one position, and what top-k and top-p leave of them."""

from functools import partial

from torch import Tensor

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT, KEY, QUERY
from regard.inspection.drawing.layout import TOP, bars, heading_width
from regard.inspection.drawing.scene import Figure, Frame, Item, Line, Scene, Text, heading
from regard.inspection.predictions import (
    fills_masks,
    output_axis,
    output_tokenizer,
    predicts_no_tokens,
    text_until,
    token_labels,
    token_logits,
)
from regard.inspection.trace import Axis
from regard.inspection.views.base import Choices, Subject, View, find_token, find_tokens
from regard.layers.sampling import apply_temperature, kept_ids

ROW = 14.0  # of one bar, in points
MASK = "[MASK]"


def draw(subject: Subject, choices: Choices) -> Figure:
    """One frame for each position at which a token is predicted; the last one, or that of --token, is chosen."""
    pipeline, info = subject.require_model("next"), subject.trace.info
    assert subject.inputs is not None
    axis, is_masked = output_axis(info), fills_masks(info)
    logits = token_logits(subject.inputs, output_tokenizer(pipeline).vocab_size)
    positions = _masks(axis, choices.token) if is_masked else list(range(len(axis.tokens)))
    chosen = positions[0] if is_masked else positions[-1]
    if not is_masked and choices.token is not None:
        chosen = find_tokens(axis, choices.token)[-1]  # what follows a word is predicted at its last token
    frames = []
    for position in positions:
        place = f"token at {axis.tokens[position]}, position {position}"
        title = place if is_masked else f"next token after “{text_until(axis, position)}”"
        frames.append(
            Frame(f"{position} {axis.tokens[position]}", partial(_scene, pipeline, logits[position], title, choices))
        )
    return Figure(frames, "position", positions.index(chosen))


def _masks(axis: Axis, token: str | None) -> list[int]:
    """The positions to predict of a masked language model: every [MASK], or the token that was chosen."""
    if token is not None:
        return [find_token(axis, token)]
    found = [number for number, label in enumerate(axis.tokens) if label == MASK]
    if not found:
        raise InputError(f"there is no {MASK} in this text; write one in place of a word, or choose a --token")
    return found


def _scene(pipeline: object, logits: Tensor, title: str, choices: Choices) -> Scene:
    probabilities = apply_temperature(logits[None], choices.temperature)[0].softmax(-1)
    top_p = 1.0 if choices.top_p is None else choices.top_p
    kept = kept_ids(logits, choices.temperature, choices.top_k, top_p).tolist()
    shown = probabilities.topk(min(choices.limit, len(probabilities)))
    ids, values = shown.indices.tolist(), shown.values.tolist()
    is_cut = [number not in set(kept) for number in ids]
    caption = _caption(choices, len(kept))
    block = bars(8, TOP, token_labels(pipeline, ids), values, width=250, color=QUERY, faint=is_cut)
    items: list[Item] = [*heading(title, caption), *block.items]
    bottom = TOP + block.height
    if any(is_cut):
        y = TOP + is_cut.index(True) * ROW
        items.append(Line([(8, y), (block.width, y)], KEY, dashed=True))
        items.append(Text(block.width + 4, y, "cut", size=8, color=KEY))
    rest = len(probabilities) - len(ids)
    if rest:
        share = 1 - sum(values)
        text = f"the other {rest:,} tokens together: {share:.1%}"
        items.append(Text(8, bottom + 10, text, size=8, color=FAINT, title=f"{share:.6g}"))
    return Scene(max(block.width + 40, heading_width(title, caption)), bottom + 22, items, title, caption)


def _caption(choices: Choices, num_kept: int) -> str:
    caption = f"The most probable tokens, at temperature {choices.temperature:g}."
    if choices.top_k is None and choices.top_p is None:
        return caption
    cuts = [
        f"top-k {choices.top_k}" if choices.top_k else "",
        f"top-p {choices.top_p:g}" if choices.top_p is not None else "",
    ]
    tokens = "1 token" if num_kept == 1 else f"{num_kept:,} tokens"
    return f"{caption} Sampling with {' and '.join(filter(None, cuts))} keeps {tokens}; grey ones are cut."


VIEW = View(
    "next",
    "the most probable next tokens, and what top-k and top-p keep",
    draw,
    (),
    predicts_no_tokens,
    takes=("token", "temperature", "top_k", "top_p", "limit"),
)
