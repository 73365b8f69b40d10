"""Texts beside pictures: what is hidden, which texts are false, and that a run can stop anywhere."""

from itertools import islice

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.data.masking import MaskingVocab
from regard.data.regions import UNKNOWN_CLASS, ImageRegions, Regions, normalize_boxes
from regard.errors import DataError
from regard.tasks.vision_language.dataset import FAR, MASKED, NEAR, TRUE, ImagesWithTexts, ImageTextData, PairingConfig

SIZE = 60
TABLE = MaskingVocab(pad_id=0, unk_id=1, bos_id=2, eos_id=3, mask_id=4, is_continuation=np.zeros(SIZE, bool))
PICTURES = 300


def regions(count: int = PICTURES, classes: bool = True) -> Regions:
    """Picture p shows p % 4 + 1 things; each has its number as every feature, never 0."""
    rng = np.random.default_rng(1)

    def one(picture: int) -> ImageRegions:
        things = picture % 4 + 1
        kinds = np.array([UNKNOWN_CLASS, *range(things)]) if classes else None
        numbers = np.arange(1, things + 2, dtype=np.float32)
        return ImageRegions(
            np.repeat(numbers[:, None], 5, 1), normalize_boxes(0.1 + rng.random((things + 1, 4))), kinds
        )

    return Regions(one(picture) for picture in range(count))


def pictures(count: int = PICTURES, *, near: bool = True, classes: bool = True) -> ImagesWithTexts:
    """The texts of p are its own: p in base 30, twice, the second backwards with one word more."""
    texts = [[[5 + p % 30, 5 + p // 30, 50], [50, 5 + p // 30, 5 + p % 30, 51]] for p in range(count)]
    misses = [[[5 + p % 30, 5 + p // 30, 52], [53, 5 + p // 30, 50]] for p in range(count)]
    return ImagesWithTexts(regions(count, classes), texts, misses if near else None)


def data(config: PairingConfig | None = None, **told) -> ImageTextData:
    return ImageTextData(pictures(**told), pictures(40, **told), TABLE, config or PairingConfig(), context=16)


def some(lesson: ImageTextData, count: int = 12, seed: int = 1, start: DataPosition | None = None) -> list:
    found = lesson.training_batches(max_tokens=200, seed=seed, start=start or DataPosition(0, 0))
    return list(islice(found, count))


def tensors(batch) -> dict[str, torch.Tensor]:
    return {name: value for name, value in vars(batch).items() if isinstance(value, torch.Tensor)}


def test_the_same_seed_the_same_batches_another_seed_others():
    one, same, other = (some(data(), seed=seed) for seed in (1, 1, 2))
    for (here, mine), (there, yours) in zip(one, same, strict=True):
        assert here == there
        assert all(torch.equal(value, tensors(yours)[name]) for name, value in tensors(mine).items())
    assert any(
        not torch.equal(a.kinds, b.kinds)
        for (_, a), (_, b) in zip(one, other, strict=True)
        if len(a.kinds) == len(b.kinds)
    )


def test_a_run_goes_on_where_it_stopped():
    whole = some(data(), 20)
    rest = some(data(), 10, start=whole[9][0])
    for (here, mine), (there, yours) in zip(whole[10:], rest, strict=True):
        assert here == there
        assert all(torch.equal(value, tensors(yours)[name]) for name, value in tensors(mine).items())


def test_a_batch_keeps_to_its_budget_and_an_epoch_has_every_picture_once():
    found = [batch for position, batch in some(data(), 60) if position.epoch == 0]
    assert sum(batch.tokens for batch in found) == PICTURES
    assert all(len(batch.ids) * (batch.ids.shape[1] + batch.boxes.shape[1]) <= 200 for batch in found)


def test_half_of_the_pairs_are_judged_half_of_those_false_and_half_of_those_near_misses():
    kinds = np.array([pair.kind for epoch in range(20) for pair in pictures().pairs(PairingConfig(), (1, epoch))])
    shares = [(kinds == kind).mean() for kind in (MASKED, TRUE, FAR, NEAR)]
    assert shares == pytest.approx([0.5, 0.25, 0.125, 0.125], abs=0.03)
    without = [pair.kind for pair in pictures(near=False).pairs(PairingConfig(), (1, 0))]
    assert set(without) == {MASKED, TRUE, FAR}


def test_each_pair_has_a_text_of_its_kind():
    told = pictures()
    for pair in told.pairs(PairingConfig(), (3, 0)):
        own, misses = told.texts[pair.image], told.near[pair.image]
        assert (pair.text in own) == (pair.kind in (MASKED, TRUE))
        assert (pair.text in misses) == (pair.kind == NEAR)


def test_the_first_text_is_drawn_as_often_as_all_others():
    told = pictures()
    firsts = [
        pair.text == told.texts[pair.image][0]
        for epoch in range(10)
        for pair in told.pairs(PairingConfig(matching_share=0.0), (1, epoch))
    ]
    assert np.mean(firsts) == pytest.approx(0.5, abs=0.03)


def test_texts_written_as_near_misses_are_half_and_of_another_picture_only_a_whole_one_is_false():
    """Text 1 of each picture says less than the others: it may be true of other pictures too."""
    texts = [[[5 + p, 50], [51], [5 + p, 52], [5 + p, 53]] for p in range(40)]
    told = ImagesWithTexts(regions(40), texts, [[[54], [55]]] * 40, alike=2)
    found = [pair for epoch in range(60) for pair in told.pairs(PairingConfig(matching_share=1.0), (1, epoch))]
    true = [told.texts[pair.image].index(pair.text) for pair in found if pair.kind == TRUE]
    assert [np.mean([one == at for one in true]) for at in range(4)] == pytest.approx([0.25] * 4, abs=0.04)
    far = [pair.text[-1] for pair in found if pair.kind == FAR]
    assert [np.mean([one == last for one in far]) for last in (50, 51, 52, 53)] == pytest.approx(
        [0.5, 0, 0.25, 0.25], abs=0.05
    )


def test_a_text_with_the_same_words_as_an_own_one_is_not_called_false():
    """All say the same but one picture; its text alone is false of the others, and theirs of it."""
    texts = [[[5, 6]] for _ in range(9)] + [[[6, 7]]]
    told = ImagesWithTexts(regions(10), texts)
    found = told.pairs(PairingConfig(matching_share=1.0, negative_share=0.99), (1, 0))
    assert {tuple(pair.text) for pair in found[:9] if pair.kind == FAR} == {(6, 7)}
    alike = ImagesWithTexts(regions(3), [[[5, 6]], [[6, 5]], [[5, 6]]])
    with pytest.raises(DataError, match="image . has the same texts as all others"):
        alike.pairs(PairingConfig(matching_share=1.0, negative_share=0.99), (1, 0))
    with pytest.raises(DataError, match="one image only"):
        ImagesWithTexts(regions(1), [[[5]]])


def test_nothing_is_hidden_where_a_pair_is_judged():
    asked = rows = 0
    for _, batch in some(data(), 40):
        judged = batch.kinds != MASKED
        hidden = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        hidden[batch.positions] = True
        hidden = hidden.view(batch.ids.shape)
        assert not hidden[judged].any()
        assert hidden[~judged].any(1).all()  # of each at least one
        assert not (batch.ids[judged] == TABLE.mask_id).any()
        blank = (batch.regions == 0).all(-1) & batch.boxes.any(-1)
        assert not blank[judged].any()
        asked += len(batch.region_positions)
        rows += int(batch.boxes.any(-1)[~judged, 1:].sum())
    assert asked / rows == pytest.approx(0.15, abs=0.04)


def test_a_hidden_region_shows_nothing_keeps_its_box_and_hides_the_whole_picture():
    lesson = data(PairingConfig(region_share=0.5, visible_region_share=0.0, matching_share=0.0))
    for _, batch in some(lesson, 10):
        blank = (batch.regions == 0).all(-1) & batch.boxes.any(-1)
        rows, places = batch.region_positions // blank.shape[1], batch.region_positions % blank.shape[1]
        assert blank[rows, places].all()
        assert (places > 0).all()
        assert torch.equal(blank[:, 0], blank[:, 1:].any(1))
        assert batch.region_targets.tolist() == (places - 1).tolist()  # thing k is of kind k
    shown = [
        batch
        for _, batch in some(data(PairingConfig(region_share=0.5, visible_region_share=1.0, matching_share=0.0)), 10)
    ]
    assert all(
        len(batch.region_positions) and (batch.regions != 0).all(-1)[batch.boxes.any(-1)].all() for batch in shown
    )


def test_without_kinds_the_features_are_asked_for():
    for _, batch in some(data(PairingConfig(region_share=0.5, matching_share=0.0), classes=False), 5):
        places = batch.region_positions % batch.regions.shape[1]
        assert_close(batch.region_targets, (places + 1.0)[:, None].expand(-1, 5))


def test_targets_are_the_true_words():
    lesson = data(PairingConfig(matching_share=0.0))
    texts = {tuple(text) for texts in lesson.training.texts for text in texts}
    for _, batch in some(lesson, 10):
        ids = batch.ids.flatten()
        ids[batch.positions] = batch.targets
        for row in ids.view(batch.ids.shape).tolist():
            inside = [word for word in row if word]
            assert inside[0] == TABLE.bos_id
            assert inside[-1] == TABLE.eos_id
            assert tuple(inside[1:-1]) in texts


def test_a_long_text_loses_its_end():
    told = ImagesWithTexts(regions(4), [[[5 + p] * 40] for p in range(4)])
    lesson = ImageTextData(told, told, TABLE, PairingConfig(), context=16)
    for batch in lesson.validation_batches(max_tokens=1000):
        assert batch.ids.shape[1] == 16
        assert (batch.ids[:, -1] == TABLE.eos_id).all()


def test_what_is_kept_out_is_always_asked_alike():
    one, same = (list(data().validation_batches(max_tokens=200)) for _ in range(2))
    assert sum(batch.tokens for batch in one) == 40
    for mine, yours in zip(one, same, strict=True):
        assert all(torch.equal(value, tensors(yours)[name]) for name, value in tensors(mine).items())
    assert sum(batch.tokens for batch in data().validation_batches(max_tokens=200, most=7)) == 7
