"""Encoding without padding: sequences concatenated in one row, where attention has a fast form for that."""

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor, nn

from regard.layers.masks import Varlen
from regard.layers.tap import watched
from regard.ops.attention import varlen_is_fast

MAX_TOKENS = 2048  # tokens encoded at once, or one sequence

# ids (B, T), positions (B, T) or None for 0..T-1, what may be attended to -> hidden states (B, T, D)
Encode = Callable[[Tensor, Tensor | None, Tensor | Varlen], Tensor]


def unpadded_is_faster(encoder: nn.Module, head_width: int) -> bool:
    """Leave out padding: attention has a fast varlen form here, and nobody watches a padded value."""
    weight = next(encoder.parameters(), None)
    if weight is None or not varlen_is_fast(weight, head_width) or watched(encoder):
        return False
    return not any(module._forward_hooks for module in encoder.modules())  # of `capture` on what is no tap


def encode_unpadded(encode: Encode, ids: Tensor, mask: Tensor, *, encoder: nn.Module, head_width: int) -> Tensor:
    """`encode(ids, None, mask)` for ids (B, S) and a mask (B, 1, 1, S), without computing padding where that pays.

    The hidden states (B, S, D) of padding are then zeros. `encoder` holds the weights and taps that `encode` runs.
    """
    if not unpadded_is_faster(encoder, head_width):
        return encode(ids, None, mask)
    real = mask[:, 0, 0]  # (B, S)
    lengths = real.sum(-1).tolist()
    hidden: Tensor | None = None
    for rows in batches_of(lengths, MAX_TOKENS):
        kept = real[rows]
        found = encode(ids[rows][kept][None], kept.nonzero()[None, :, 1], Varlen(lengths[rows]))
        if hidden is None:
            hidden = found.new_zeros(*ids.shape, found.shape[-1])
        hidden[rows][kept] = found[0]
    return encode(ids, None, mask) if hidden is None else hidden


def batches_of(lengths: Sequence[int], max_tokens: int) -> Iterator[slice]:
    """All sequences in order, as many at once as have at most `max_tokens` together, at least one."""
    start, tokens = 0, 0
    for number, length in enumerate(lengths):
        if number > start and tokens + length > max_tokens:
            yield slice(start, number)
            start, tokens = number, 0
        tokens += length
    if lengths:
        yield slice(start, len(lengths))
