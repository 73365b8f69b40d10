"""Inputs of `regard run` a chunk at a time: answers are printed before the next chunk is computed, and not kept."""

from collections.abc import Iterator

CHUNK = 1024  # texts in memory at a time with what is computed for them


def chunks(count: int) -> Iterator[slice]:
    """The slices that cut so many inputs into chunks."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(start + CHUNK, count))
