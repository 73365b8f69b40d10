"""Packed matrices: the numbers of the `gguf` package, and products equal to those of the unpacked weights."""

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, quants
from torch.testing import assert_close

from regard.ops.packed import (
    FROM_FLOAT,
    GGUF_TYPES,
    Layout,
    PackedMatrix,
    linear_packed,
    linear_packed_written_out,
    pack,
    pack_gguf,
    round_activations,
    unpack,
    unpack_rows,
)
from tests.ops.forms import needs_kernels, num_threads, numbers

pytestmark = needs_kernels
# Where float16 numbers stand in a block of the file.
SCALES_AT = {"Q6_K": [208]}
SCALES_AT |= {kind: [0] for kind in ("Q4_0", "Q5_0", "Q8_0")}
SCALES_AT |= {kind: [0, 2] for kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K")}


def blocks_of(kind: str, rows: int, columns: int) -> np.ndarray:
    """Random bytes with sensible scales: (rows, row bytes)."""
    random, found = np.random.default_rng(0), GGUF_TYPES[kind]
    shape = (rows, columns // found.block)
    raw = random.integers(0, 256, (*shape, found.block_bytes), dtype=np.uint8)
    for at in SCALES_AT[kind]:
        scales = random.uniform(-0.02, 0.02, shape).astype(np.float16)
        raw[..., at : at + 2] = scales.view(np.uint8).reshape(*shape, 2)
    return raw.reshape(rows, -1)


@pytest.fixture(params=GGUF_TYPES)
def kind(request) -> str:
    return request.param


@pytest.fixture(params=["file", 4, 8])
def matrix(request) -> PackedMatrix:
    if request.param == "file":
        return pack_gguf(torch.from_numpy(blocks_of("Q4_1", 37, 96)), "Q4_1", 96)
    return pack(numbers(37, 90), request.param)


def test_the_numbers_are_those_of_the_file(kind):
    raw = blocks_of(kind, 37, 512)
    wanted = torch.from_numpy(quants.dequantize(raw, GGMLQuantizationType[kind]).astype(np.float32))
    found = unpack(pack_gguf(torch.from_numpy(raw), kind, 512))
    if kind.endswith("_K"):  # a product of two scales is rounded to float16
        assert_close(found, wanted, rtol=1e-3, atol=1e-3 * wanted.abs().max().item())
    else:
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 21])
def test_a_product_is_that_of_rounded_activations_and_unpacked_weights(kind, rows):
    matrix, bias = pack_gguf(torch.from_numpy(blocks_of(kind, 37, 512)), kind, 512), numbers(37)
    hidden = numbers(rows, 512, seed=1)
    wanted = linear_packed_written_out(hidden, matrix, bias)
    for threads in (1, 2):
        with num_threads(threads):
            assert_close(linear_packed(hidden, matrix, bias), wanted, rtol=0, atol=2e-6 * wanted.abs().max().item())


def test_a_row_does_not_depend_on_those_beside_it(kind):
    matrix, hidden = pack_gguf(torch.from_numpy(blocks_of(kind, 37, 256)), kind, 256), numbers(21, 256)
    together, alone = linear_packed(hidden, matrix), torch.cat([linear_packed(row[None], matrix) for row in hidden])
    assert torch.equal(together, alone)


def test_every_float16_scale_is_read():
    halves = np.arange(65536, dtype=np.uint16)
    raw = np.concatenate([halves.view(np.uint8).reshape(-1, 2), np.ones((65536, 32), np.uint8)], axis=1)
    finite = np.isfinite(halves.view(np.float16))
    wanted = torch.from_numpy(halves.view(np.float16)[finite].astype(np.float32))
    assert torch.equal(unpack(pack_gguf(torch.from_numpy(raw[finite]), "Q8_0", 32))[:, 0], wanted)
    assert pack_gguf(torch.from_numpy(raw[~finite]), "Q8_0", 32) is None


@pytest.mark.parametrize("size", [(1, 1), (16, 32), (17, 33), (5, 100), (40, 31)])
@pytest.mark.parametrize("bits", FROM_FLOAT)
def test_of_any_size(size, bits):
    weight, hidden = numbers(*size), numbers(3, size[1], seed=1)
    matrix = pack(weight, bits)
    step = weight.abs().amax().item() * 2 / (2**bits - 2)
    assert (unpack(matrix) - weight).abs().max() <= step
    assert_close(linear_packed(hidden, matrix), linear_packed_written_out(hidden, matrix), rtol=1e-5, atol=1e-5)


def test_eight_bits_are_as_near_as_they_can_be():
    weight = numbers(16, 320)
    error = (unpack(pack(weight, 8)) - weight).unflatten(1, (-1, 32))
    levels = weight.unflatten(1, (-1, 32)).abs().amax(-1, keepdim=True) / 127
    assert (error.abs() <= 0.502 * levels + 1e-3 * levels * 127).all()


def test_the_search_of_four_bits_beats_the_plain_range():
    weight = numbers(64, 320)
    blocks = weight.unflatten(1, (-1, 32))
    low, high = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    plain = ((blocks - low) / (high - low) * 15).round() * (high - low) / 15 + low
    assert (unpack(pack(weight, 4)) - weight).square().mean() < 0.9 * (plain - blocks).square().mean()


def test_zeros_and_constants_stay(matrix):
    for value in (0.0, 0.25):
        for bits in FROM_FLOAT:
            assert_close(unpack(pack(torch.full((3, 40), value), bits)), torch.full((3, 40), value), rtol=1e-3, atol=0)
    assert torch.equal(linear_packed(torch.zeros(2, matrix.shape[1]), matrix), torch.zeros(2, matrix.shape[0]))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_damage_stays_visible(matrix, value):
    hidden = numbers(3, matrix.shape[1])
    hidden[1, 40] = value
    found = linear_packed(hidden, matrix)
    assert found[1].isnan().all()
    assert found[[0, 2]].isfinite().all()


def test_rows_are_looked_up(matrix):
    rows = torch.tensor([[3, 0], [36, 3]])
    assert torch.equal(unpack_rows(matrix, rows), unpack(matrix)[rows])
    assert unpack_rows(matrix, rows[:0]).shape == (0, 2, matrix.shape[1])
    for wrong in (-1, 37, 2**40):
        with pytest.raises(IndexError):
            unpack_rows(matrix, torch.tensor([wrong]))


def test_rounded_activations_are_within_half_a_level():
    hidden = numbers(4, 70)
    scales = torch.nn.functional.pad(hidden, (0, 26)).unflatten(-1, (-1, 32)).abs().amax(-1) / 127
    bound = 0.5001 * scales.repeat_interleave(32, -1)[:, :70]
    assert ((round_activations(hidden) - hidden).abs() <= bound).all()


def test_what_does_not_fit_is_refused(matrix):
    columns = matrix.shape[1]
    for hidden in (torch.ones(columns + 1), torch.ones(2, 0), torch.tensor(1.0), torch.ones(2, columns, device="meta")):
        with pytest.raises(ValueError, match="wanted"):
            linear_packed(hidden, matrix)
    with pytest.raises(ValueError, match="bias"):
        linear_packed(torch.ones(columns), matrix, torch.ones(36))
    with pytest.raises(ValueError, match="bits"):
        pack(torch.ones(3, 3), 5)
    for weight in (torch.ones(3), torch.ones(0, 3), torch.ones(3, 3, device="meta")):
        with pytest.raises(ValueError, match="wanted"):
            pack(weight, 4)
    for weight in (torch.tensor([[torch.nan]]), torch.tensor([[3e38, -3e38]])):
        with pytest.raises(ValueError, match="finite"):
            pack(weight, 4)
    with pytest.raises(ValueError, match="wanted uint8"):
        pack_gguf(torch.zeros(3, 21, dtype=torch.uint8), "Q4_1", 32)
    with pytest.raises(ValueError, match="panels"):
        PackedMatrix(matrix.panels[1:], matrix.shape, matrix.bits, matrix.layout)
    with pytest.raises(ValueError, match="wanted a pair"):
        PackedMatrix(matrix.panels, matrix.shape, 5, Layout.MINIMUM)
