"""The KV cache of one attention layer: the keys and values of earlier tokens, which do not change.

It lives outside the model and is passed in. Its capacity is allocated in advance and doubled when it is full, so that a
decoding step writes one column and copies nothing. A row is contiguous in memory, (B, T, H, K).

Beams change rows at every step. Where attention reads a row table (`cache_rows`), their keys and values stay where they
were written and only the table changes; otherwise they are copied.
"""

import torch
from torch import Tensor

from regard.layers.attention import KeysValues
from regard.ops.attention import reads_cache_rows


class KVCache:
    """Keys and values (B, H, T, K) of the T tokens so far."""

    def __init__(self, capacity: int = 32) -> None:
        self.length = 0
        self._capacity = capacity
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._cache_rows: Tensor | None = None  # (B, T) the row that holds each position; None: its own

    def append(self, new: KeysValues) -> KeysValues:
        """Add the keys and values of new tokens; returns views of all of them."""
        before, self.length = self.length, self.length + new.key.shape[2]
        if self._keys is None or self._values is None or self.length > self._keys.shape[1]:
            self._keys = self._grown(self._keys, new.key, before)
            self._values = self._grown(self._values, new.value, before)
        rows = len(new.key)
        self._keys[:rows, before : self.length] = new.key.transpose(1, 2)
        self._values[:rows, before : self.length] = new.value.transpose(1, 2)
        if self._cache_rows is not None:
            own = torch.arange(rows, dtype=torch.int32, device=new.key.device)[:, None].expand(-1, self.length - before)
            self._cache_rows = torch.cat([self._cache_rows, own], dim=1)
        return self.contents

    @property
    def contents(self) -> KeysValues:
        assert self._keys is not None, "the cache is empty"
        assert self._values is not None
        keys, values = self._keys[:, : self.length], self._values[:, : self.length]
        return KeysValues(keys.transpose(1, 2), values.transpose(1, 2), self._cache_rows)

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was: rows may be dropped, repeated and swapped."""
        if self._keys is None or self._values is None:
            return
        if len(rows) <= len(self._keys) and reads_cache_rows(self._keys):
            if self._cache_rows is None:
                self._cache_rows = torch.arange(len(self._keys), dtype=torch.int32, device=rows.device)[:, None].expand(
                    -1, self.length
                )
            self._cache_rows = self._cache_rows[rows]
        else:
            contents = self.contents.gathered
            self._cache_rows = None
            self._keys = self._copy_rows(contents.key, rows)
            self._values = self._copy_rows(contents.value, rows)

    def crop(self, length: int) -> None:
        """Keep only the first `length` tokens."""
        assert 0 <= length <= self.length, f"cannot crop {self.length} tokens to {length}"
        self.length = length
        self._cache_rows = None if self._cache_rows is None else self._cache_rows[:, :length]

    def _grown(self, buffer: Tensor | None, new: Tensor, filled: int) -> Tensor:
        """A buffer for all tokens, the first `filled` of them copied."""
        while self._capacity < self.length:
            self._capacity *= 2
        batch, heads, _, width = new.shape
        larger = new.new_empty(batch if buffer is None else len(buffer), self._capacity, heads, width)
        if buffer is not None:
            larger[:, :filled] = buffer[:, :filled]
        return larger

    def _copy_rows(self, cached: Tensor, rows: Tensor) -> Tensor:
        """A buffer of the same capacity whose row i is row rows[i] of `cached` (B, H, T, K)."""
        _, heads, length, width = cached.shape
        copied = cached.new_empty(len(rows), self._capacity, heads, width)
        torch.index_select(cached.transpose(1, 2), 0, rows, out=copied[:, :length])
        return copied
