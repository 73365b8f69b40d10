"""Which heads resolve "it": switch heads off, and see how often a probe still finds the right noun.

The probe stays as it was fitted on the whole model. Only heads that the probe's hidden states depend on are tried. They
are chosen on training sentences, one after the other: each time the one without which the probe does worst. They are
scored on held-out sentences. The control switches off as many of the other heads, at random.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from regard.inspection.interventions import intervene, num_heads, parse_switch
from regard.inspection.trace import attentions_of
from regard.synthetic.stories.story import Stories, Story
from regard.tasks.masked_lm.coreference import Activations, Probe, WordTokenizer, activations

NUM_DRAWS = 5  # of the control


@dataclass(frozen=True)
class HeadAblation:
    """How often the probe finds the right noun in held-out sentences, with heads switched off."""

    heads: list[str]  # as `regard show --off` takes them, the one that matters most first
    accuracy: list[float]  # without none of them, without the first, without the first two, …
    control: list[float]  # without as many others, the mean over random draws


def ablate_heads(
    model: Any, tokenizer: WordTokenizer, probe: Probe, *, most: int = 3, num_training: int = 500, num_test: int = 1000
) -> HeadAblation:
    """Switch off the heads that matter most: `most` of them, or half of those there are; the numbers count stories.

    The probe was fitted on `model`.
    """
    known = list(Stories(seed=1).stories(0, num_training))
    new = list(Stories(seed=1, part="validation").stories(0, num_test))

    def without(heads: Sequence[str], stories: Sequence[Story]) -> Activations:
        with intervene(model, [parse_switch(head) for head in heads]):
            return activations(model, tokenizer, stories)

    few = known[:20]
    whole = without([], few).hidden[probe.layer]
    heads = [f"{one.path}:{head}" for one in attentions_of(model) for head in range(num_heads(model, one.path))]
    heads = [head for head in heads if not without([head], few).hidden[probe.layer].equal(whole)]
    chosen: list[str] = []
    while len(chosen) < min(most, len(heads) // 2):
        left = [head for head in heads if head not in chosen]
        chosen.append(min(left, key=lambda head: probe.accuracy(without([*chosen, head], known))))
    others = [head for head in heads if head not in chosen]
    draws = [random.Random(seed).sample(others, len(chosen)) for seed in range(NUM_DRAWS)]
    numbers = range(len(chosen) + 1)
    return HeadAblation(
        chosen,
        [probe.accuracy(without(chosen[:number], new)) for number in numbers],
        [mean(probe.accuracy(without(draw[:number], new)) for draw in draws) for number in numbers],
    )
