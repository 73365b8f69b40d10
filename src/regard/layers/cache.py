"""The key-value cache of one attention: what was projected once is kept, because the past does not change.

It lives outside the model and is passed in. Room is made in advance and doubled when it runs out, so that a step
writes one column and copies nothing. What a row has seen stands together in memory, (B, T, H, K), so that rows change
places by copying long stretches.
"""

import torch
from torch import Tensor

from regard.layers.attention import KeysValues


class Cache:
    """Keys and values (B, H, T, K) of the T tokens seen so far."""

    def __init__(self, room: int = 32) -> None:
        self.length = 0
        self._room = room
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def append(self, new: KeysValues) -> KeysValues:
        """Write the new tokens behind the old ones; gives views on all of them."""
        before, self.length = self.length, self.length + new.key.shape[2]
        if self._keys is None or self._values is None or self.length > self._keys.shape[1]:
            self._keys = self._with_room(self._keys, new.key, before)
            self._values = self._with_room(self._values, new.value, before)
        self._keys[:, before : self.length] = new.key.transpose(1, 2)
        self._values[:, before : self.length] = new.value.transpose(1, 2)
        return self.seen

    @property
    def seen(self) -> KeysValues:
        assert self._keys is not None, "nothing was appended yet"
        assert self._values is not None
        keys, values = self._keys[:, : self.length], self._values[:, : self.length]
        return KeysValues(keys.transpose(1, 2), values.transpose(1, 2))

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was: rows may be dropped, repeated, exchanged."""
        if self._keys is not None and self._values is not None:
            self._keys = self._take(self._keys, rows)
            self._values = self._take(self._values, rows)

    def crop(self, length: int) -> None:
        """Forget all but the first tokens."""
        assert 0 <= length <= self.length, f"cannot crop {self.length} tokens to {length}"
        self.length = length

    def _with_room(self, buffer: Tensor | None, new: Tensor, filled: int) -> Tensor:
        """A buffer with room for all tokens, the first `filled` of them as they were."""
        while self._room < self.length:
            self._room *= 2
        batch, heads, _, width = new.shape
        larger = new.new_empty(batch, self._room, heads, width)
        if buffer is not None:
            larger[:, :filled] = buffer[:, :filled]
        return larger

    def _take(self, buffer: Tensor, rows: Tensor) -> Tensor:
        # Only the used columns are copied; the rest of the room stays unwritten.
        taken = buffer.new_empty(len(rows), *buffer.shape[1:])
        torch.index_select(buffer[:, : self.length], 0, rows, out=taken[:, : self.length])
        return taken
