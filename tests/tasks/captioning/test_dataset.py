"""The user's pictures and captions as batches: each caption once, no picture on both sides, nothing silent."""

from itertools import islice

import numpy as np
import pytest
import torch

from regard.data.batches import DataPosition
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.captions import folder_and_file
from regard.data.stores.images import ImageStore
from regard.errors import DataError
from regard.tasks.captioning.data import CaptionDataConfig, captioned_split
from regard.tasks.captioning.dataset import CaptionCollator, CaptionedImages, CaptionedPart

COLLATOR = CaptionCollator(bos_id=1, eos_id=2, pad_id=0)


def part(count: int, captions: int) -> CaptionedPart:
    """Picture n is all n; its captions are of n + 1 words, the k-th of the word 10 n + k + 3."""
    pixels = np.arange(count, dtype=np.uint8)[:, None, None, None].repeat(4, 1).repeat(4, 2).repeat(3, 3)
    ids = [[[10 * n + k + 3] * (n + 1) for k in range(captions)] for n in range(count)]
    texts = [[f"{n} {k}" for k in range(captions)] for n in range(count)]
    return CaptionedPart(ImageStore(pixels, np.arange(count), {}), texts, ids)


@pytest.fixture
def data():
    return CaptionedImages(part(7, 3), part(5, 2), COLLATOR, cells=4)


def epoch(data, number, seed=1):
    batches = data.training_batches(max_tokens=40, seed=seed, start=DataPosition(number, 0))
    return list(islice(batches, data.batches_per_epoch(max_tokens=40, seed=seed)))


def said(batch):
    return [tuple(number for number in row if number not in (0, 2)) for row in batch.target_out.tolist()]


def test_a_batch_has_the_picture_of_each_caption(data):
    for _, batch in epoch(data, 0):
        for row, caption in enumerate(said(batch)):
            number = len(caption) - 1
            assert torch.equal(batch.pixels[row], torch.full((4, 4, 3), number, dtype=torch.uint8))
            assert batch.references[row] == [f"{number} {k}" for k in range(3)]
            assert batch.target_in[row].tolist()[: number + 2] == [1, *caption]
            assert batch.target_out[row, number + 1] == 2
        assert batch.tokens == int((batch.target_out != 0).sum())


def test_an_epoch_has_every_caption_once_in_another_order_each(data):
    orders = [[caption for _, batch in epoch(data, number) for caption in said(batch)] for number in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert len(set(orders[0])) == len(orders[0]) == 21
    assert orders[0] != orders[1]
    again = [caption for _, batch in epoch(data, 0) for caption in said(batch)]
    assert again == orders[0] != [caption for _, batch in epoch(data, 0, seed=2) for caption in said(batch)]


def test_a_batch_is_within_the_budget_of_cells_and_words(data):
    for _, batch in epoch(data, 0):
        rows, longest = batch.target_in.shape
        assert rows == 1 or rows * (4 + longest) <= 40


def test_a_run_goes_on_in_the_middle(data):
    whole = epoch(data, 0)
    position, _ = whole[1]
    _, following = next(data.training_batches(max_tokens=40, seed=1, start=position))
    assert said(following) == said(whole[2][1])


def test_each_picture_kept_out_comes_once_with_its_first_caption(data):
    batches = list(data.validation_batches(max_tokens=40))
    assert sorted(caption for batch in batches for caption in said(batch)) == [
        (10 * n + 3,) * (n + 1) for n in range(5)
    ]
    assert all(len(references) == 2 for batch in batches for references in batch.references)
    first = [caption for batch in data.validation_batches(max_tokens=40, most=2) for caption in said(batch)]
    assert sorted(first) == [(3,), (13, 13)]


def test_a_folder_and_a_file_in_either_order(tmp_path):
    file = tmp_path / "captions.tsv"
    assert folder_and_file([tmp_path, file]) == folder_and_file([file, tmp_path]) == (tmp_path, file)
    for wrong in ([], [tmp_path], [file], [tmp_path, tmp_path], [tmp_path, file, file]):
        with pytest.raises(DataError, match="wanted the folder of the images and the file of their captions"):
            folder_and_file(wrong)


def captions_of(tmp_path, lengths):
    for number in range(len(lengths)):
        (tmp_path / f"{number}.png").touch()
    lines = [f"{number}.png\t{' '.join(['word'] * length)}\n" for number, length in enumerate(lengths)]
    file = tmp_path / "captions.tsv"
    file.write_text("".join(lines), encoding="utf-8")
    return [tmp_path, file]


def test_long_captions_are_left_out_and_counted(tmp_path):
    report = BadRows()
    paths = captions_of(tmp_path, [3] * 30 + [9, 5])
    training, validation = captioned_split(paths, CaptionDataConfig(max_length=5), report)
    assert sorted(one.name for one in training + validation) == sorted([f"{n}.png" for n in range(30)] + ["31.png"])
    assert report.by_reason == {"long caption": 1}
    assert str(report.first[0]) == f"{tmp_path}/30.png: long caption: more than 5 words; raise data.max_length"
    with pytest.raises(DataError, match="no caption has 2 words or less"):
        captioned_split(paths, CaptionDataConfig(max_length=2), BadRows())
