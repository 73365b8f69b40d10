"""The alignment matrix as in the lectures: source across, target down, one row for each token that was chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from regard.errors import InputError
from regard.inspection.drawing.layout import MARGIN, TOP, framed, labelled, weights_style
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo
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
from regard.metrics.alignment import Link, argmax_links, count_errors, tokens_to_words

CAPTION = "Each row is one generated token, and sums to 1: how much it attends to each source token."
GOLD = "Each row is one generated token, and sums to 1. Outlined: the gold alignment; AER: alignment error rate."


@dataclass(frozen=True)
class _Gold:
    """Gold links between words, and the word of each token, -1 for none."""

    links: frozenset[Link]
    source: Sequence[int]
    target: Sequence[int]

    def error_rate(self, weights: np.ndarray) -> float:
        """The alignment error rate of token weights (target, source)."""
        return count_errors(argmax_links(tokens_to_words(weights, self.source, self.target)), self.links, ()).aer

    def rank(self, weights: np.ndarray) -> tuple[float, float]:
        """Smaller is better: the error rate, and among equals less weight outside of the gold links."""
        return self.error_rate(weights), float(weights[~self.cells].sum())

    @property
    def cells(self) -> np.ndarray:
        """The pairs of tokens (target, source) whose words are linked."""
        return np.array([[(source, target) in self.links for source in self.source] for target in self.target])


def draw(subject: Subject, choices: Choices) -> Figure:
    """The mean over all layers and heads, then each head; with gold links a picture shows the best head."""
    trace = subject.trace
    attentions = choose_attention(trace, choices, where=is_cross)
    gold = _gold(trace, attentions[0], choices.gold) if choices.gold else None
    of = "all heads" if choices.layer is None else f"the heads of layer {layer_of(trace, attentions[0])}"
    named = {f"mean of {of}": np.mean([trace.weights(one).mean(0) for one in attentions], axis=0)}
    for attention in attentions:
        weights = trace.weights(attention)
        check_head(choices.head, len(weights))
        for head in range(len(weights)) if choices.head is None else [choices.head]:
            named[f"layer {layer_of(trace, attention)}, head {head}"] = weights[head]
    best = None if gold is None else min(list(named)[1:], key=lambda name: gold.rank(named[name]))
    frames = []
    for name, one in named.items():
        shown = f"{name} (best)" if name == best else name
        frames.append(Frame(shown, partial(_scene, trace, attentions[0], one, gold, shown)))
    if choices.head is not None:
        return Figure(frames, "attention", len(frames) - 1)
    return Figure(frames, "attention", 0 if best is None else list(named).index(best))


def _gold(trace: Trace, attention: AttentionInfo, links: Sequence[Link]) -> _Gold:
    source, target = word_ids(key_labels(trace, attention)), word_ids(query_labels(trace, attention))
    num_source, num_target = max(source, default=-1) + 1, max(target, default=-1) + 1
    for one, other in links:
        if not (0 <= one < num_source and 0 <= other < num_target):
            raise InputError(
                f"the gold link {one}-{other} is not of this pair; wanted source words 0 to {num_source - 1}, "
                f"target words 0 to {num_target - 1}"
            )
    return _Gold(frozenset((one, other) for one, other in links), source, target)


def word_ids(labels: Sequence[str]) -> list[int]:
    """The word that each token belongs to, by its label: "·" continues a word, special tokens have none (-1)."""
    found: list[int] = []
    count = -1
    for label in labels:
        special = len(label) > 2 and label[0] + label[-1] in ("<>", "[]")
        if not special and (count < 0 or not label.startswith("·")):
            count += 1
        found.append(-1 if special else count)
    return found


def _scene(trace: Trace, attention: AttentionInfo, weights: np.ndarray, gold: _Gold | None, name: str) -> Scene:
    rows, columns = query_labels(trace, attention), key_labels(trace, attention)
    style, outlined = weights_style(weights.shape), None if gold is None else gold.cells
    block = labelled(MARGIN, TOP, weights, rows, columns, style, outlined=outlined, name=f"attention, {name}")
    title = f"alignment: {name}" + ("" if gold is None else f", AER {gold.error_rate(weights):.0%}")
    return framed(title, CAPTION if gold is None else GOLD, block.items, block.width, block.height)


def _missing(info: TraceInfo) -> str | None:
    if not any(map(is_cross, info.attentions)):
        return "it has no attention from a target to a source"
    return None if info.interface == "seq2seq" else "it is for models with a source text and a target text"


VIEW = View(
    "alignment", "which source token each generated token attends to", draw, ("*.weights", "bridge.weights"), _missing
)
