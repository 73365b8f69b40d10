"""The alignment matrix as in the lectures: source across, target down, one row for each token that was chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.colors import FAINT
from regard.inspection.drawing.layout import MARGIN, TOP, Block, Style, framed, labelled, weights_style, widest
from regard.inspection.drawing.scene import Figure, Frame, Scene, Text
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo, byte_spans
from regard.inspection.views.base import (
    Choices,
    Subject,
    View,
    check_head,
    choose_attention,
    is_cross,
    key_labels,
    layer_of,
    query_labels,
)
from regard.metrics.alignment import Link, argmax_links, count_errors, tokens_to_words, words_with_tokens

CAPTION = "Each row is one generated token, and sums to 1: how much it attends to each source token."
GOLD = "Each row is one generated token, and sums to 1. Outlined: the gold alignment; AER: alignment error rate."


APART = 28.0  # the alignment and the table of error rates


@dataclass(frozen=True)
class Gold:
    """Gold links between words, and the word of each token, -1 for none."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # besides the sure ones
    source: Sequence[int]
    target: Sequence[int]

    def error_rate(self, weights: np.ndarray) -> float:
        """The alignment error rate of token weights (target, source)."""
        found = argmax_links(tokens_to_words(weights, self.source, self.target))
        sources, targets = words_with_tokens(self.source), words_with_tokens(self.target)
        named = {(sources[one], targets[other]) for one, other in found}
        return count_errors(named, self.sure, self.possible).aer

    def rank(self, weights: np.ndarray) -> tuple[float, float]:
        """Smaller is better: the error rate, and among equals less weight outside of the gold links."""
        return self.error_rate(weights), float(weights[~self.cells].sum())

    @property
    def cells(self) -> np.ndarray:
        """The pairs of tokens (target, source) whose words are linked."""
        links = self.sure | self.possible
        return np.array([[(source, target) in links for source in self.source] for target in self.target])


def draw(subject: Subject, choices: Choices) -> Figure:
    """The mean over all layers and heads, then each head; with gold links a picture shows the best head."""
    trace = subject.trace
    attentions = choose_attention(trace, choices, where=is_cross)
    gold = gold_of(trace, attentions[0], choices)
    of = "all heads" if choices.layer is None else f"the heads of layer {layer_of(trace, attentions[0])}"
    named = {f"mean of {of}": np.mean([trace.weights(one).mean(0) for one in attentions], axis=0)}
    for attention in attentions:
        weights = trace.weights(attention)
        check_head(choices.head, len(weights))
        for head in range(len(weights)) if choices.head is None else [choices.head]:
            named[f"layer {layer_of(trace, attention)}, head {head}"] = weights[head]
    best = None if gold is None else min(list(named)[1:], key=lambda name: gold.rank(named[name]))
    rates = None if gold is None else error_rates(trace, attentions, gold)
    frames = []
    for name, one in named.items():
        shown = f"{name} (best)" if name == best else name
        frames.append(Frame(shown, partial(_scene, trace, attentions[0], one, gold, rates, shown)))
    if choices.head is not None:
        return Figure(frames, "attention", len(frames) - 1)
    return Figure(frames, "attention", 0 if best is None else list(named).index(best))


# ------------------------------------------------ gold


def gold_of(trace: Trace, attention: AttentionInfo, choices: Choices) -> Gold | None:
    """The gold links of this pair, between its space-separated words; None if none are given."""
    sure, possible = frozenset(choices.gold), frozenset(choices.possible)
    if not sure and not possible:
        return None
    source = _words(trace, attention.keys, key_labels(trace, attention))
    target = _words(trace, attention.queries, query_labels(trace, attention))
    num_source, num_target = max(source, default=-1) + 1, max(target, default=-1) + 1
    for one, other in sorted(sure | possible):
        if not (0 <= one < num_source and 0 <= other < num_target):
            raise InputError(
                f"the gold link {one}-{other} is not of this pair; wanted source words 0 to {num_source - 1}, "
                f"target words 0 to {num_target - 1}"
            )
    return Gold(sure, possible - sure, source, target)


def error_rates(trace: Trace, attentions: Sequence[AttentionInfo], gold: Gold) -> np.ndarray:
    """The alignment error rate of each head, (layers, heads); not a number where a layer has fewer heads."""
    weights = [trace.weights(one) for one in attentions]
    found = np.full((len(weights), max(map(len, weights))), np.nan)
    for row, layer in enumerate(weights):
        found[row, : len(layer)] = [gold.error_rate(head) for head in layer]
    return found


def _words(trace: Trace, axis: str, labels: Sequence[str]) -> list[int]:
    """The space-separated word of each token, -1 for special tokens and for punctuation attached to a word."""
    text = trace.info.axes[axis].text
    spans = byte_spans(text, labels)
    if any(span is None and not is_special(label) for span, label in zip(spans, labels, strict=True)):
        return word_ids(labels)  # the text is not known, or was changed
    words, data, found = text.split(), text.encode(), []
    for span in spans:
        if span is None:
            found.append(-1)
            continue
        number = len(data[: span[1]].split()) - 1
        attached = any(map(str.isalnum, words[number])) and not any(map(str.isalnum, data[slice(*span)].decode()))
        found.append(-1 if attached else number)
    return found


def is_special(label: str) -> bool:
    """Whether a label is that of a special token: <s>, [SEP]."""
    return len(label) > 2 and label[0] + label[-1] in ("<>", "[]")


def word_ids(labels: Sequence[str]) -> list[int]:
    """The word that each token belongs to, by its label: "·" continues a word, special tokens have none (-1)."""
    found: list[int] = []
    count = -1
    for label in labels:
        if not is_special(label) and (count < 0 or not label.startswith("·")):
            count += 1
        found.append(-1 if is_special(label) else count)
    return found


# ------------------------------------------------ drawing


def _scene(
    trace: Trace,
    attention: AttentionInfo,
    weights: np.ndarray,
    gold: Gold | None,
    rates: np.ndarray | None,
    name: str,
) -> Scene:
    rows, columns = query_labels(trace, attention), key_labels(trace, attention)
    style, outlined = weights_style(weights.shape), None if gold is None else gold.cells
    block = labelled(MARGIN, TOP, weights, rows, columns, style, outlined=outlined, name=f"attention, {name}")
    if gold is None or rates is None:
        return framed(f"alignment: {name}", CAPTION, block.items, block.width, block.height)
    table = _table(rates, MARGIN + block.width + APART)
    title = f"alignment: {name}, AER {gold.error_rate(weights):.0%}"
    width, height = block.width + APART + table.width, max(block.height, table.height)
    return framed(title, GOLD, [*block.items, *table.items], width, height)


def _table(rates: np.ndarray, x: float) -> Block:
    """The alignment error rate of each head, layers down; the lowest is outlined."""
    layers, heads = ([str(number) for number in range(size)] for size in rates.shape)
    name, style = "AER of each layer (down) and head", Style((30, 16), "grey", 0.0, 1.0, 2, (FAINT, FAINT))
    lowest = rates == np.nanmin(rates)
    block = labelled(x, TOP + 12, rates, layers, heads, style, outlined=lowest, name=name)
    return Block(
        [Text(x, TOP + 6, name, 8, FAINT, in_drawing=True), *block.items],
        max(block.width, widest([name], 8)),
        block.height + 12,
    )


def _missing(info: TraceInfo) -> str | None:
    if not any(map(is_cross, info.attentions)):
        return "it has no attention from a target to a source"
    return None if info.interface == "seq2seq" else "it is for models with a source text and a target text"


VIEW = View(
    "alignment",
    "which source token each generated token attends to; --gold marks gold links",
    draw,
    ("*.weights", "bridge.weights"),
    _missing,
    takes=("attention", "layer", "head", "gold", "possible"),
)
