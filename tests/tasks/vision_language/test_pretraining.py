"""The lesson of ViLBERT: what is hidden on either side, and whether the two belong together."""

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.data.masking import MaskingVocab
from regard.data.regions import UNKNOWN_CLASS, ImageRegions, Regions, normalize_boxes
from regard.inspection.capture import capture
from regard.models.base import EncoderIds
from regard.models.vilbert import (
    StreamConfig,
    ViLBERTConfig,
    ViLBERTForPreTraining,
    ViLBERTForPreTrainingConfig,
    ViLBERTForRetrieval,
    ViLBERTForRetrievalConfig,
    VisionConfig,
)
from regard.tasks import TASKS
from regard.tasks.vision_language.dataset import MASKED, NEAR, TRUE, ImagesWithTexts, ImageTextData, PairingConfig
from regard.tasks.vision_language.pretraining import GUIDED, ImageTextPretraining, RetrievalTraining
from regard.training.validation import metrics, validation_loss

SIZE = 40
TABLE = MaskingVocab(pad_id=0, unk_id=1, bos_id=2, eos_id=3, mask_id=4, is_continuation=np.zeros(SIZE, bool))


def pictures(count: int, classes: bool) -> ImagesWithTexts:
    """Picture p shows a thing of kind p % 6 and says so."""

    def one(p: int) -> ImageRegions:
        features = np.repeat(3 * np.eye(6, dtype=np.float32)[None, p % 6], 2, axis=0)
        return ImageRegions(
            features,
            normalize_boxes([(0, 0, 1, 1), (0, 0, 0.5, 0.5)]),
            np.array([UNKNOWN_CLASS, p % 6]) if classes else None,
        )

    texts = [[[10 + p % 6, 20], [20, 20, 10 + p % 6]] for p in range(count)]
    return ImagesWithTexts(Regions(map(one, range(count))), texts, [[[10 + (p + 1) % 6, 20]] for p in range(count)])


def task(classes: bool = True, **config) -> ImageTextPretraining:
    told = PairingConfig(**config)
    return ImageTextPretraining(ImageTextData(pictures(60, classes), pictures(30, classes), TABLE, told, context=12))


def model(classes: bool = True) -> ViLBERTForPreTraining:
    torch.manual_seed(1)
    config = ViLBERTForPreTrainingConfig(
        vocab_size=SIZE,
        context=12,
        text=StreamConfig(width=32, heads=2, layers=0),
        regions=StreamConfig(width=32, heads=2, layers=0),
        co_attention_layers=1,
        joint_width=16,
        vision=VisionConfig(features=6, classes=6 if classes else 0),
        dropout=0.0,
        special_ids=EncoderIds(pad_id=0, bos_id=2, eos_id=3, mask_id=4),
    )
    made = ViLBERTForPreTraining(config)
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return made


def first_batch(lesson: ImageTextPretraining):
    return next(lesson.training_batches(max_tokens=400, seed=1, start=DataPosition(0, 0)))[1]


@pytest.mark.parametrize("classes", [True, False])
def test_the_loss_is_that_of_words_regions_and_pairs_alike(classes):
    lesson, reader = task(classes, region_share=0.5), model(classes)
    batch = first_batch(lesson)
    said = reader(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    words = F.cross_entropy(said.tokens.flatten(0, 1)[batch.positions], batch.targets)
    found = said.regions.flatten(0, 1)[batch.region_positions]
    regions = (F.cross_entropy if classes else F.mse_loss)(found, batch.region_targets)
    judged = batch.kinds != MASKED
    wanted, fits = (batch.kinds[judged] == TRUE).float(), said.matching[judged]
    pairs = -(wanted * F.logsigmoid(fits) + (1 - wanted) * F.logsigmoid(-fits)).mean()
    assert len(batch.targets)
    assert len(batch.region_targets)
    assert_close(lesson.loss(reader, batch), batch.tokens * (words + regions + pairs))


def test_where_no_region_is_hidden_the_others_are_learned():
    lesson, reader = task(region_share=0.0), model()
    batch = first_batch(lesson)
    assert not len(batch.region_positions)
    loss = lesson.loss(reader, batch)
    assert loss.isfinite()
    loss.backward()
    found = metrics(reader, lesson, 1.0, [batch])
    assert math.isnan(found["masked_region_accuracy"])


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_no_pair_is_judged_or_all_are_the_loss_is_that_of_the_rest(share):
    lesson, reader = task(matching_share=share), model()
    batch = first_batch(lesson)
    loss = lesson.loss(reader, batch)
    assert loss.isfinite()
    assert loss > 0
    loss.backward()
    assert (reader.matching.weight.grad.abs().max() > 0) == bool(share)


def test_the_measures_are_shares_of_what_was_asked():
    lesson, reader = task(region_share=0.5, visible_region_share=0.5), model()
    batches = list(lesson.validation_batches(max_tokens=300))
    right = {
        "masked_accuracy": [],
        "masked_region_accuracy": [],
        "visible_region_accuracy": [],
        "matching_accuracy": [],
        "hard_negative_accuracy": [],
    }
    for batch in batches:
        said = reader(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
        right["masked_accuracy"] += (said.tokens.flatten(0, 1)[batch.positions].argmax(-1) == batch.targets).tolist()
        found = said.regions.flatten(0, 1)[batch.region_positions].argmax(-1)
        blank = (batch.regions.flatten(0, 1)[batch.region_positions] == 0).all(-1)
        right["masked_region_accuracy"] += (found == batch.region_targets)[blank].tolist()
        right["visible_region_accuracy"] += (found == batch.region_targets)[~blank].tolist()
        pairs = ((said.matching > 0) == (batch.kinds == TRUE)).tolist()
        right["matching_accuracy"] += [one for one, kind in zip(pairs, batch.kinds, strict=True) if kind != MASKED]
        right["hard_negative_accuracy"] += [one for one, kind in zip(pairs, batch.kinds, strict=True) if kind == NEAR]
    wanted = {name: np.mean(some) for name, some in right.items()}
    assert metrics(reader, lesson, 1.0, batches) == pytest.approx(wanted)
    assert validation_loss(reader, lesson, batches) > 0


def test_without_kinds_it_is_measured_how_far_the_features_are_off():
    lesson, reader = task(classes=False, region_share=0.5), model(classes=False)
    found = metrics(reader, lesson, 1.0, lesson.validation_batches(max_tokens=300))
    assert "masked_region_accuracy" not in found
    assert found["masked_region_error"] > 0


def test_pairs_alone_are_learned_by_a_model_that_only_matches():
    """The same loss and shares as the whole lesson has where every pair is judged; no head for words is needed."""
    whole, reader = task(matching_share=1.0), model()
    pairs = RetrievalTraining(whole.data)
    facts = {name: getattr(reader.config, name) for name in ViLBERTConfig.model_fields}
    matcher = ViLBERTForRetrieval(ViLBERTForRetrievalConfig(**facts))
    matcher.load_state_dict({name: reader.state_dict()[name] for name in matcher.state_dict()})
    batch = first_batch(pairs)
    assert_close(pairs.loss(matcher, batch), whole.loss(reader, batch))
    batches = list(pairs.validation_batches(max_tokens=300))
    found, wanted = metrics(matcher, pairs, 1.0, batches), metrics(reader, whole, 1.0, batches)
    assert found == {name: wanted[name] for name in ("matching_accuracy", "hard_negative_accuracy")}


def test_the_task_is_known_by_its_name():
    assert {ImageTextPretraining.name, RetrievalTraining.name} <= TASKS.keys()


def named(lesson: ImageTextPretraining) -> ImageTextPretraining:
    """The same, where it is known that the words from 10 on name the one object, region 1."""
    told = lesson.data.training
    names = [[[int(10 <= word < 16) for word in text] for text in texts] for texts in told.texts]
    return ImageTextPretraining(replace(lesson.data, training=replace(told, named=names)))


def test_the_tokens_that_name_a_region_are_those_of_true_texts():
    batches = named(task()).training_batches(max_tokens=60, seed=1, start=DataPosition(0, 0))
    kinds: set[int] = set()
    for _, batch in islice(batches, 8):
        rows = batch.naming // batch.ids.shape[1]
        kinds |= set(batch.kinds[rows].tolist())
        assert (batch.named == 1).all()
        assert len(set(rows.tolist())) == (batch.kinds <= TRUE).sum()
        words = batch.ids.flatten()[batch.naming][batch.kinds[rows] == TRUE]  # those of the others may be masked
        assert all(10 <= word < 16 for word in words)
    assert kinds == {MASKED, TRUE}
    assert not len(first_batch(task()).naming)


def test_guided_attention_adds_the_surprise_of_one_head_while_training():
    lesson, reader = named(task(guided_attention=2.0)), model().train()
    batch = first_batch(lesson)
    with capture(reader, GUIDED) as captured:
        found = lesson.loss(reader, batch) / batch.tokens
    weights = captured[GUIDED][0][:, 0]  # (B, T, R) of the first head
    rows, positions = batch.naming // batch.ids.shape[1], batch.naming % batch.ids.shape[1]
    surprise = -weights[rows, positions, 1].log().mean()
    plain = ImageTextPretraining(replace(lesson.data, config=PairingConfig())).loss(reader, batch) / batch.tokens
    assert surprise > 0.1
    assert_close(found, plain + 2 * surprise)
    reader.eval()
    assert_close(lesson.loss(reader, batch) / batch.tokens, plain)


def test_guided_attention_reaches_the_weights_of_queries_and_keys():
    lesson, reader = named(task(guided_attention=1.0)), model().train()
    batch = first_batch(lesson)
    rows, positions = batch.naming // batch.ids.shape[1], batch.naming % batch.ids.shape[1]

    def on_region():
        with capture(reader, GUIDED) as captured:
            lesson.loss(reader, batch)
        return captured[GUIDED][0][rows, 0, positions, 1].mean()

    before, start = GUIDED.removesuffix("weights"), on_region()
    pair = [reader.get_parameter(f"{before}{part}.weight") for part in ("query", "key")]
    for _ in range(60):
        loss = lesson.loss(reader, batch) / batch.tokens
        with torch.no_grad():
            for weight, gradient in zip(pair, torch.autograd.grad(loss, pair), strict=True):
                weight -= 0.3 * gradient
    assert on_region() > start + 0.1


def test_the_parts_of_a_batch_add_up_to_its_guided_loss():
    lesson, reader = named(task(guided_attention=1.0)), model().train()
    batch = first_batch(lesson)
    half = len(batch.ids) // 2
    parts = [batch.take_rows(slice(0, half)), batch.take_rows(slice(half, len(batch.ids)))]
    assert sum(len(part.naming) for part in parts) == len(batch.naming)
    assert_close(sum(lesson.loss(reader, part) for part in parts), lesson.loss(reader, batch))
