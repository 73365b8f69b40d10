"""The cache: what comes out is what went in, reordered and cropped as told."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.layers.attention import KeysValues
from regard.layers.kv_cache import KVCache


def some(batch, length, start):
    numbers = torch.arange(batch * 2 * length * 3, dtype=torch.float32).view(batch, 2, length, 3) + start
    return KeysValues(numbers, -numbers)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(1, 5), st.sampled_from(["reorder", "crop"])), max_size=12), st.randoms())
def test_a_cache_is_a_growing_tensor(actions, random):
    cache, plain = KVCache(room=2), None
    for number, action in enumerate(actions):
        if action == "reorder":
            if plain is not None:
                rows = torch.tensor([random.randrange(len(plain)) for _ in range(random.randint(1, 4))])
                cache.reorder(rows)
                plain = plain[rows]
        elif action == "crop":
            if plain is not None:
                length = random.randint(0, plain.shape[2])
                cache.crop(length)
                plain = plain[:, :, :length]
        else:
            new = some(3 if plain is None else len(plain), action, number * 100)
            plain = new.key if plain is None else torch.cat([plain, new.key], dim=2)
            cache.append(new)
        if plain is not None:
            assert torch.equal(cache.seen.key, plain)
            assert torch.equal(cache.seen.value, -plain)
            assert cache.length == plain.shape[2]


def test_a_step_writes_in_place():
    cache = KVCache(room=8)
    before = cache.append(some(2, 3, 0)).key.data_ptr()
    assert cache.append(some(2, 3, 9)).key.data_ptr() == before
