"""The key-value cache of one attention: what was projected once is kept, because the past does not change.

It lives outside the model and is passed in. Room is made in advance and doubled when it runs out, so that a step
writes one column and copies nothing. What a row has seen stands together in memory, (B, T, H, K).

Beams change rows at every step. Where our own kernel looks them up, their keys and values stay where they were written,
and only a table says in which row each place of a text stands; elsewhere they are copied.
"""

import torch
from torch import Tensor

from regard.layers.attention import KeysValues
from regard.ops.attention import reads_cache_rows


class KVCache:
    """Keys and values (B, H, T, K) of the T tokens seen so far."""

    def __init__(self, room: int = 32) -> None:
        self.length = 0
        self._room = room
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._cache_rows: Tensor | None = None  # (B, T) the row in which each place stands; None: its own

    def append(self, new: KeysValues) -> KeysValues:
        """Write the new tokens behind the old ones; gives views on all of them."""
        before, self.length = self.length, self.length + new.key.shape[2]
        if self._keys is None or self._values is None or self.length > self._keys.shape[1]:
            self._keys = self._with_room(self._keys, new.key, before)
            self._values = self._with_room(self._values, new.value, before)
        rows = len(new.key)
        self._keys[:rows, before : self.length] = new.key.transpose(1, 2)
        self._values[:rows, before : self.length] = new.value.transpose(1, 2)
        if self._cache_rows is not None:
            own = torch.arange(rows, dtype=torch.int32)[:, None].expand(-1, self.length - before)
            self._cache_rows = torch.cat([self._cache_rows, own], dim=1)
        return self.seen

    @property
    def seen(self) -> KeysValues:
        assert self._keys is not None, "nothing was appended yet"
        assert self._values is not None
        keys, values = self._keys[:, : self.length], self._values[:, : self.length]
        return KeysValues(keys.transpose(1, 2), values.transpose(1, 2), self._cache_rows)

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was: rows may be dropped, repeated, exchanged."""
        if self._keys is None or self._values is None:
            return
        if len(rows) <= len(self._keys) and reads_cache_rows(self._keys):
            if self._cache_rows is None:
                self._cache_rows = torch.arange(len(self._keys), dtype=torch.int32)[:, None].expand(-1, self.length)
            self._cache_rows = self._cache_rows[rows]
        else:
            seen = self.seen.gathered
            self._cache_rows = None
            self._keys = self._take(seen.key, rows)
            self._values = self._take(seen.value, rows)

    def crop(self, length: int) -> None:
        """Forget all but the first tokens."""
        assert 0 <= length <= self.length, f"cannot crop {self.length} tokens to {length}"
        self.length = length
        self._cache_rows = None if self._cache_rows is None else self._cache_rows[:, :length]

    def _with_room(self, buffer: Tensor | None, new: Tensor, filled: int) -> Tensor:
        """A buffer with room for all tokens, the first `filled` of them as they were."""
        while self._room < self.length:
            self._room *= 2
        batch, heads, _, width = new.shape
        larger = new.new_empty(batch if buffer is None else len(buffer), self._room, heads, width)
        if buffer is not None:
            larger[:, :filled] = buffer[:, :filled]
        return larger

    def _take(self, seen: Tensor, rows: Tensor) -> Tensor:
        """A buffer of the same room whose row i has what row rows[i] of `seen` (B, H, T, K) has."""
        _, heads, length, width = seen.shape
        taken = seen.new_empty(len(rows), self._room, heads, width)
        torch.index_select(seen.transpose(1, 2), 0, rows, out=taken[:, :length])
        return taken
