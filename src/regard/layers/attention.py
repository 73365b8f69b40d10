"""Attention: the similarity of each query to each key, softmax, and the weighted sum of the values.

`attend` calls the fused op. If one of its taps is watched, or for a similarity without a fused op, it calls
`attend_written_out`, which returns every step of the lecture's formula. A test holds the two equal. A query whose mask
allows no key gets zeros, never NaN, forward and backward, in both forms.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from torch import Tensor, nn

from regard.layers import masks
from regard.layers.linear import Linear, fused_qkv
from regard.layers.tap import Tap, is_watching
from regard.ops.attention import gather_cache_rows, scaled_dot_product_attention, varlen_attention


class Similarity(Protocol):
    """Scores (…, T, S) from queries (…, T, K) and keys (…, S, K), and the factor they are scaled by."""

    fused: bool  # there is a fused op for it

    def __call__(self, query: Tensor, key: Tensor) -> Tensor: ...

    def scale(self, width: int) -> float: ...


class Dot:
    """q · k."""

    fused = True

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1)

    def scale(self, width: int) -> float:
        return 1.0


class ScaledDot(Dot):
    """q · k / √K: keeps the variance of the scores at 1, so softmax does not saturate (Vaswani 2017, 3.2.1)."""

    def scale(self, width: int) -> float:
        return 1 / math.sqrt(width)


class Additive(nn.Module):
    """v · tanh(q + k): a small MLP scores each pair (Bahdanau 2015, A.1.2).

    Its first layer, W s and U h, is the query and key projection: computed once for each, not for each pair.
    """

    fused = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        pairs = query.unsqueeze(-2) + key.unsqueeze(-3)  # (…, T, S, K)
        return self.score(pairs.tanh()).squeeze(-1)

    def scale(self, width: int) -> float:
        return 1.0


class Steps(NamedTuple):
    """Every step of attention written out; T queries, S keys."""

    scores: Tensor  # (…, T, S) similarity
    scaled: Tensor  # (…, T, S) times the similarity's scale, plus the score bias where there is one
    masked: Tensor  # (…, T, S) -inf where the query may not attend
    weights: Tensor  # (…, T, S) softmax over the keys: each row sums to 1, or is 0 where the mask allows no key
    output: Tensor  # (…, T, K) the weighted sum of the values


class AttentionTaps(nn.Module):
    """The inner values of one attention, each under its name; T queries, S keys, H heads of width K."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = Tap()  # (B, H, T, K), rotated where the model rotates them
        self.keys = Tap()  # (B, H, S, K)
        self.values = Tap()  # (B, H, S, K)
        self.scores = Tap()  # (B, H, T, S): the fields of Steps
        self.scaled_scores = Tap()
        self.masked_scores = Tap()
        self.weights = Tap()
        self.head_outputs = Tap()  # (B, H, T, K) the weighted sums, before W_O joins them

    @property
    def is_watched(self) -> bool:
        return is_watching() and any(isinstance(tap, Tap) and tap.watched for tap in self.children())


_UNWATCHED = AttentionTaps()
SCALED_DOT = ScaledDot()
SimilarityName = Literal["additive", "dot", "scaled_dot"]
# name -> the similarity of queries and keys of some width
SIMILARITIES: dict[SimilarityName, Callable[[int], Similarity]] = {
    "additive": Additive,
    "dot": lambda width: Dot(),
    "scaled_dot": lambda width: SCALED_DOT,
}


class KeysValues(NamedTuple):
    """Keys and values, (B, H, S, K) each.

    In a KV cache whose beams changed rows without a copy, `cache_rows` (B, S) has the row of each beam's positions.
    """

    key: Tensor
    value: Tensor
    cache_rows: Tensor | None = None

    @property
    def gathered(self) -> "KeysValues":
        """The same with every beam in its own row."""
        if self.cache_rows is None:
            return self
        return KeysValues(*(gather_cache_rows(part, self.cache_rows) for part in (self.key, self.value)))


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | masks.Varlen | None = None,
    *,
    cache_rows: Tensor | None = None,
    causal: bool = False,
    score_bias: Tensor | None = None,
    similarity: Similarity = SCALED_DOT,
    taps: AttentionTaps | None = None,
) -> Tensor:
    """The weighted sums (…, T, K). `causal`: query t attends to no key after it; the queries are the last T of S keys.

    `cache_rows` is that of KeysValues. `score_bias` broadcasts to (…, T, S) and is added to the scaled scores.
    """
    is_fused = similarity.fused and not (taps is not None and taps.is_watched)
    scale = similarity.scale(query.shape[-1])
    if isinstance(mask, masks.Varlen):
        if is_fused and not causal and cache_rows is None and score_bias is None:
            return varlen_attention(query, key, value, mask.cu_seqlens, mask.max_seqlen, scale=scale)
        mask = mask.mask.to(query.device)
    if is_fused:
        return scaled_dot_product_attention(
            query, key, value, mask, scale=scale, is_causal=causal, cache_rows=cache_rows, score_bias=score_bias
        )
    key, value, _ = KeysValues(key, value, cache_rows).gathered
    return attend_written_out(
        query, key, value, mask, causal=causal, score_bias=score_bias, similarity=similarity, taps=taps
    ).output


def attend_written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    score_bias: Tensor | None = None,
    similarity: Similarity = SCALED_DOT,
    taps: AttentionTaps | None = None,
) -> Steps:
    """The same step by step, with all intermediate values."""
    if taps is None:
        taps = _UNWATCHED
    query, key, value = taps.queries(query), taps.keys(key), taps.values(value)
    if causal:
        mask = masks.combine(mask, masks.causal_mask(query.shape[-2], key.shape[-2], query.device))
    if query.dim() == 4 and query.shape[1] != key.shape[1]:  # grouped-query attention: adjacent heads share a key
        key, value = (part.repeat_interleave(query.shape[1] // part.shape[1], dim=1) for part in (key, value))
    scores = taps.scores(similarity(query, key))
    scaled = scores * similarity.scale(query.shape[-1])
    if score_bias is not None:
        scaled = scaled + score_bias
    scaled = taps.scaled_scores(scaled)
    masked = taps.masked_scores(scaled if mask is None else scaled.masked_fill(~mask, -math.inf))
    weights = taps.weights(_softmax(masked, mask))
    return Steps(scores, scaled, masked, weights, taps.head_outputs(weights @ value))


def _softmax(masked: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return masked.softmax(-1)
    # softmax of a row of -inf is NaN, and so is its gradient: such a row gets the softmax of zeros, then zeros.
    fully_masked = ~mask.any(-1, keepdim=True)
    return masked.masked_fill(fully_masked, 0.0).softmax(-1).masked_fill(fully_masked, 0.0)


class Appendable(Protocol):
    """What attention needs of a KV cache: it takes new keys and values and returns all of them."""

    def append(self, new: KeysValues) -> KeysValues: ...


ApplyRotary = Callable[[Tensor], Tensor]  # heads (B, H, T, K) rotated by position; see positions.Rotary


class MultiHeadAttention(AttentionTaps):
    """H heads, each of width K = D / H or `head_width`, concatenated and projected.

    Self-attention attends to its own input, cross-attention to a memory, whose width may differ. `project_memory` gives
    the keys and values of a memory and `cross_attend` uses them, so that a memory is projected once for all steps.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        similarity: Similarity = SCALED_DOT,
        *,
        memory_width: int | None = None,
        head_width: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        assert head_width or width % heads == 0, f"width {width} does not divide into {heads} heads"
        inner = heads * head_width if head_width else width
        self.heads = heads
        self.query = Linear(width, inner, bias=bias)
        self.key = Linear(memory_width or width, inner, bias=bias)
        self.value = Linear(memory_width or width, inner, bias=bias)
        self.output = Linear(inner, width, bias=bias)
        self.similarity = similarity
        self.inputs = Tap()  # (B, T, D) what the queries are projected from
        self.memory = Tap()  # (B, S, D) what keys and values are projected from: in self-attention the inputs

    def forward(
        self, hidden: Tensor, memory: Tensor, mask: Tensor | masks.Varlen | None = None, *, causal: bool = False
    ) -> Tensor:
        if hidden is memory:
            return self.self_attend(hidden, mask, causal=causal)
        return self.cross_attend(hidden, self.project_memory(memory), mask, causal=causal)

    def project_memory(self, memory: Tensor) -> KeysValues:
        if is_watching():
            memory = self.memory(memory)
        return KeysValues(*map(self._split, fused_qkv(memory, self.key, self.value)))

    def cross_attend(
        self, hidden: Tensor, memory: KeysValues, mask: Tensor | masks.Varlen | None = None, *, causal: bool = False
    ) -> Tensor:
        return self._attend(self._project_query(hidden), memory, mask, causal)

    def self_attend(
        self,
        hidden: Tensor,
        mask: Tensor | masks.Varlen | None = None,
        *,
        causal: bool = False,
        cache: Appendable | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Self-attention; `cache` has the keys and values of the tokens before these. `score_bias`: see `attend`."""
        if is_watching():
            hidden = self.memory(self.inputs(hidden))
        query, key, value = map(self._split, fused_qkv(hidden, self.query, self.key, self.value))
        keys_values = KeysValues(key, value) if cache is None else cache.append(KeysValues(key, value))
        return self._attend(query, keys_values, mask, causal, score_bias)

    def _attend(
        self,
        query: Tensor,
        keys_values: KeysValues,
        mask: Tensor | masks.Varlen | None,
        causal: bool,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        heads = attend(
            query,
            *keys_values[:2],
            mask,
            cache_rows=keys_values.cache_rows,
            causal=causal,
            score_bias=score_bias,
            similarity=self.similarity,
            taps=self,
        )
        return self.output(heads.transpose(1, 2).flatten(2))  # (B, T, D)

    def cross_attend_with_weights(
        self, hidden: Tensor, memory: KeysValues, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`cross_attend` written out, with its weights (B, H, T, S), for a loss on them."""
        query = self._project_query(hidden)
        steps = attend_written_out(query, *memory.gathered[:2], mask, similarity=self.similarity, taps=self)
        return self.output(steps.output.transpose(1, 2).flatten(2)), steps.weights

    def _project_query(self, hidden: Tensor) -> Tensor:
        if is_watching():
            hidden = self.inputs(hidden)
        return self._split(self.query(hidden))

    def _split(self, hidden: Tensor) -> Tensor:
        return hidden.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, K)


class SelfAttention(AttentionTaps):
    """Self-attention with H heads; `causal`, as in language models: a token attends to itself and those before it.

    Queries, keys and values come from one matrix. With fewer `num_kv_heads` than heads, several heads share a key and a
    value (grouped-query attention, Ainslie 2023): the KV cache shrinks by that factor.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool = True,
        num_kv_heads: int | None = None,
        bias: bool = True,
        output_bias: bool = True,
    ) -> None:
        super().__init__()
        self.causal = causal
        self.heads, self.num_kv_heads = heads, num_kv_heads or heads
        assert width % heads == 0, f"width {width} does not divide into {heads} heads"
        assert heads % self.num_kv_heads == 0, f"{heads} heads do not divide into {self.num_kv_heads} key heads"
        self.head_width = width // heads
        self.project = Linear(width, (heads + 2 * self.num_kv_heads) * self.head_width, bias=bias)
        self.output = Linear(width, width, bias=output_bias)
        self.inputs = Tap()  # (B, T, D) what queries, keys and values are projected from

    def forward(
        self,
        hidden: Tensor,
        mask: Tensor | masks.Varlen | None = None,
        *,
        apply_rotary: ApplyRotary | None = None,
        cache: Appendable | None = None,
    ) -> Tensor:
        """(B, T, D). `apply_rotary` rotates queries and keys by position; `cache` has the tokens before these."""
        if is_watching():
            hidden = self.inputs(hidden)
        rows, length, _ = hidden.shape
        heads = self.project(hidden).view(rows, length, -1, self.head_width).transpose(1, 2)
        query, key, value = heads.split([self.heads, self.num_kv_heads, self.num_kv_heads], dim=1)  # (B, H, T, K)
        if apply_rotary is not None:
            query, key = apply_rotary(query), apply_rotary(key)
        keys_values = KeysValues(key, value) if cache is None else cache.append(KeysValues(key, value))
        cache_rows = keys_values.cache_rows
        found = attend(query, *keys_values[:2], mask, cache_rows=cache_rows, causal=self.causal, taps=self)
        return self.output(found.transpose(1, 2).reshape(rows, length, -1))
