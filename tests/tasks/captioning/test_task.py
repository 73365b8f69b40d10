"""Captioning: the order of the scenes, the loss and its second sum, the scores."""

from itertools import islice
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.generation import Greedy
from regard.images.preprocessing import normalize
from regard.models.base import SpecialIds
from regard.models.captioner import Captioner, CaptionerConfig
from regard.synthetic.scenes.captions import caption
from regard.synthetic.scenes.scene import Scenes
from regard.synthetic.scenes.vocabulary import VOCABULARY
from regard.tasks.captioning.dataset import CANONICAL_CAPTION_TOKENS, CaptionedScenes
from regard.tasks.captioning.task import CaptioningConfig, CaptionTraining, doubly_stochastic_loss, score_captions
from regard.tokenizers.bpe import BPETokenizer
from regard.training.validation import generator

BUDGET = 8 * (16 + CANONICAL_CAPTION_TOKENS)  # eight rows


@pytest.fixture(scope="module")
def tokenizer():
    return BPETokenizer.train([" ".join(VOCABULARY)] * 2, 400, whole_words=100)


def scenes(tokenizer, **changes):
    return CaptionedScenes(tokenizer, **{"side": 64, "cells": 16, "validation": 20} | changes)


def taken(data, count, *, seed=1, start=0):
    return list(islice(data.training_batches(max_tokens=BUDGET, seed=seed, start=DataPosition(0, start)), count))


def model_of(tokenizer, **changes):
    special_ids = SpecialIds(pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id)
    config = CaptionerConfig(
        vocab_size=tokenizer.vocab_size,
        special_ids=special_ids,
        image_size=64,
        cell_size=16,
        width=16,
        heads=2,
        feed_forward=16,
        **changes,
    )
    return Captioner(config)


def test_a_run_goes_on_as_if_it_had_not_stopped(tokenizer):
    data = scenes(tokenizer, captions_per_scene=5)
    whole, rest = taken(data, 4), taken(data, 2, start=2)
    assert [position for position, _ in whole] == [DataPosition(0, step) for step in (1, 2, 3, 4)]
    for (_, one), (_, other) in zip(whole[2:], rest, strict=True):
        assert torch.equal(one.pixels, other.pixels)
        assert torch.equal(one.target_in, other.target_in)


def test_no_scene_comes_twice_and_other_seeds_draw_others(tokenizer):
    data = scenes(tokenizer)
    pictures = torch.cat([batch.pixels for seed in (1, 2) for _, batch in taken(data, 3, seed=seed)])
    assert len({picture.numpy().tobytes() for picture in pictures}) == len(pictures) == 48


def test_a_row_is_a_scene_and_its_canonical_caption(tokenizer):
    (_, batch), *_ = taken(scenes(tokenizer), 1)
    for row in range(8):
        scene = Scenes(1)[row]
        text = " ".join(caption(scene).words)
        assert batch.references[row] == [text]
        assert tokenizer.decode(batch.target_out[row].tolist()) == text
        assert torch.equal(batch.pixels[row], torch.tensor(scene.pixels()))
        assert batch.target_in[row, 0] == tokenizer.bos_id
    words = batch.target_out != tokenizer.pad_id
    assert batch.tokens == words.sum() == sum(len(texts[0].split()) + 1 for texts in batch.references)


def test_with_several_captions_all_are_references_and_any_is_learned(tokenizer):
    batches = [batch for _, batch in taken(scenes(tokenizer, captions_per_scene=4), 6)]
    chosen = set()
    for batch in batches:
        for references, row in zip(batch.references, batch.target_out.tolist(), strict=True):
            assert len(set(references)) == 4
            chosen.add(references.index(tokenizer.decode(row)))
    assert chosen == {0, 1, 2, 3}


def test_no_batch_is_over_the_budget(tokenizer):
    for several in (1, 6):
        for _, batch in taken(scenes(tokenizer, captions_per_scene=several), 5):
            assert len(batch.pixels) * (16 + batch.target_in.shape[1]) <= BUDGET


def test_what_is_held_out_is_of_its_own_part_and_the_same_for_every_run(tokenizer):
    data = scenes(tokenizer)
    batches = list(data.validation_batches(max_tokens=BUDGET))
    assert [len(batch.pixels) for batch in batches] == [8, 8, 4]
    wanted = [" ".join(caption(Scenes(0, "validation")[number]).words) for number in range(20)]
    assert [texts[0] for batch in batches for texts in batch.references] == wanted
    assert sum(len(batch.pixels) for batch in data.validation_batches(max_tokens=BUDGET, most=5)) == 5
    assert data.batches_per_epoch(max_tokens=BUDGET, seed=1) is None


def test_the_second_sum_by_hand():
    weights = torch.tensor([[[[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]]])  # one picture, three words, two cells
    said = torch.tensor([[True, True, False]])
    assert doubly_stochastic_loss(weights, said).item() == pytest.approx((1 - 1.5) ** 2 + (1 - 0.5) ** 2)
    both = torch.cat([weights, weights.flip(-1)], dim=1)  # the mean over heads
    assert doubly_stochastic_loss(both, said).item() == pytest.approx(0.5)
    assert doubly_stochastic_loss(both.repeat(3, 1, 1, 1), said.repeat(3, 1)).item() == pytest.approx(
        1.5
    )  # the sum over pictures


@pytest.mark.parametrize("decoder", ["lstm", "transformer"])
def test_the_loss_is_cross_entropy_and_while_training_the_second_sum_too(tokenizer, decoder):
    model = model_of(tokenizer, decoder=decoder)
    (_, batch), *_ = taken(scenes(tokenizer), 1)
    logits, weights = model.forward_with_attention(normalize(batch.pixels), batch.target_in)
    plain = F.cross_entropy(
        logits.transpose(1, 2), batch.target_out, ignore_index=tokenizer.pad_id, reduction="sum"
    ).item()
    task = CaptionTraining(tokenizer, CaptioningConfig(doubly_stochastic=0.3))
    assert task.loss(model.eval(), batch).item() == pytest.approx(plain, rel=1e-5)
    said = batch.target_out != tokenizer.pad_id
    assert task.loss(model.train(), batch).item() == pytest.approx(
        plain + 0.3 * doubly_stochastic_loss(weights, said).item(), rel=1e-5
    )


def test_measures_are_of_what_the_model_writes(tokenizer):
    data = scenes(tokenizer)
    task = CaptionTraining(tokenizer, data=data)
    batches = list(data.validation_batches(max_tokens=BUDGET))
    truths = iter([texts[0] for batch in batches for texts in batch.references])

    def knowing(model, pixels, longest):
        assert pixels.shape[1:] == (3, 64, 64)
        return [[SimpleNamespace(tokens=tokenizer.encode(next(truths)))] for _ in longest]

    assert task.metrics(None, 0.0, batches, knowing) == pytest.approx({"exact_match": 1.0, "bleu4": 100, "cider": 10})
    guessed = task.metrics(model_of(tokenizer).eval(), 0.0, batches[:1], generator(Greedy()))
    assert guessed["exact_match"] == 0.0


def test_scores_of_captions():
    found = score_captions(["a red star", "a ring"], [["a red star", "one star"], ["a blue ring"]])
    assert found["exact_match"] == 0.5


def test_labels_are_smoothed_while_training_only(tokenizer):
    model = model_of(tokenizer)
    (_, batch), *_ = taken(scenes(tokenizer), 1)
    plain, smoothed = CaptionTraining(tokenizer), CaptionTraining(tokenizer, CaptioningConfig(label_smoothing=0.2))
    assert_close(plain.loss(model.eval(), batch), smoothed.loss(model, batch))
    assert plain.loss(model.train(), batch) != smoothed.loss(model, batch)
