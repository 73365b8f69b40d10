"""Decoding seen from a teacher-forced trace: its steps, its KV cache, and what a step costs.

A cached step equals the full pass, so position t of the trace has the numbers of the step that read token t.
"""

from dataclasses import dataclass
from typing import Any

from regard.inspection.predictions import OUTPUT_AXES, output_axis
from regard.inspection.trace import AttentionInfo, Trace, TraceInfo, tap_of


def cached_attentions(info: TraceInfo) -> list[AttentionInfo]:
    """The attentions whose keys and values a KV cache keeps, one a layer: those to the text so far."""
    axis = OUTPUT_AXES[info.interface]
    return [one for one in info.attentions if one.queries == one.keys == axis]


def has_no_cache(info: TraceInfo) -> str | None:
    """Why a model decodes without a KV cache; None: it has one."""
    if info.interface not in ("causal_lm", "seq2seq", "captioner"):
        return "it does not generate text"
    return None if cached_attentions(info) else "it has no KV cache: its decoder has no self-attention"


def decoding_steps(info: TraceInfo) -> list[int]:
    """The positions at which a token was generated; of a prompt without a continuation, its last position."""
    axis = output_axis(info)
    steps = range(max(axis.num_prompt - 1, 0), len(axis.tokens) - (axis.num_prompt > 0))
    return list(steps) or [len(axis.tokens) - 1]


@dataclass(frozen=True)
class CacheSize:
    """What a KV cache keeps of each position."""

    layers: int
    kv_heads: int
    heads: int  # of the queries; multi-head attention would have as many keys
    head_width: int
    number_bytes: int

    @property
    def layer_bytes(self) -> int:
        """Bytes of one position in one layer: a key and a value for each head."""
        return 2 * self.kv_heads * self.head_width * self.number_bytes

    def bytes_of(self, positions: int, kv_heads: int | None = None) -> int:
        return self.layers * positions * self.layer_bytes * (kv_heads or self.kv_heads) // self.kv_heads


def cache_size(trace: Trace, model: Any) -> CacheSize:
    """The sizes from the keys and queries of the trace."""
    paths = [one.path for one in cached_attentions(trace.info)]
    kv_heads, _, width = trace.value(tap_of(paths[0], "keys")).shape
    heads = len(trace.value(tap_of(paths[0], "queries")))
    return CacheSize(len(paths), kv_heads, heads, width, next(model.parameters()).element_size())


@dataclass(frozen=True)
class StepCost:
    """Multiply-adds of the step that reads token number t, from 1."""

    with_cache: float
    without_cache: float  # all tokens so far are read again


def step_cost(config: Any, tokens: int, source: int | None = None) -> StepCost:
    """From the config's formula of a whole pass, c + a t + b t²: a step with the cache costs a + b t.

    The term b t² is attention: t queries, each with t keys. A step has one query. The constant c is what is computed
    once, such as the encoder.
    """

    def whole(length: int) -> float:
        cost = config.flops(length) if source is None else config.flops(source, length)
        return float(cost.multiply_adds)

    constant, one, two = whole(0), whole(1), whole(2)
    square = (two - 2 * one + constant) / 2
    linear = one - constant - square
    return StepCost(linear + square * tokens, whole(tokens) - constant)
