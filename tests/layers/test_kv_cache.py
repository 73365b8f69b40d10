"""The cache: what comes out is what went in, reordered and cropped as told."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import ops
from regard.layers.attention import KeysValues
from regard.layers.kv_cache import KVCache


def some(batch, length, start):
    numbers = torch.arange(batch * 2 * length * 3, dtype=torch.float32).view(batch, 2, length, 3) + start
    return KeysValues(numbers, -numbers)


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(1, 5), st.sampled_from(["reorder", "crop"])), max_size=12), st.randoms())
def test_a_cache_is_a_growing_tensor(actions, random):
    cache, plain = KVCache(capacity=2), None
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
            assert torch.equal(cache.contents.key, plain)
            assert torch.equal(cache.contents.value, -plain)
            assert cache.length == plain.shape[2]


def test_a_step_writes_gathered():
    cache = KVCache(capacity=8)
    before = cache.append(some(2, 3, 0)).key.data_ptr()
    assert cache.append(some(2, 3, 9)).key.data_ptr() == before


@pytest.mark.parametrize("is_disabled", [True, False])
@torch.no_grad()
def test_beams_that_change_rows_keep_their_past(is_disabled):
    """A cache with a row table and one that copies hold the same after beams were swapped, dropped and added."""
    generator = torch.Generator().manual_seed(4)
    cache, beams = KVCache(capacity=2), [torch.zeros(0, 3, 4) for _ in range(4)]
    for rows in ([0, 1, 2, 3], [3, 3, 0, 1], [1, 0], [1, 1, 0], [2, 1, 0, 0, 1], [4, 0]):
        new = torch.randn(len(beams), 1, 3, 4, generator=generator)
        cache.append(KeysValues(new.transpose(1, 2), new.transpose(1, 2) * 2))
        beams = [torch.cat([beam, one]) for beam, one in zip(beams, new, strict=True)]
        if is_disabled:
            with ops.disabled():
                cache.reorder(torch.tensor(rows))
        else:
            cache.reorder(torch.tensor(rows))
        beams = [beams[row] for row in rows]
        seen = cache.contents.gathered
        assert torch.equal(seen.key[: len(rows)], torch.stack(beams).transpose(1, 2))
        assert torch.equal(seen.value[: len(rows)], torch.stack(beams).transpose(1, 2) * 2)
