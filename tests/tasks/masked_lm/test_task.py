"""The lesson of BERT: cross-entropy at the hidden places, and whether one text follows another."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.data.masking import MaskingConfig, MaskingVocab
from regard.data.stores.documents import TokenizedDocuments
from regard.models.base import EncoderIds
from regard.models.bert import BertForMaskedLM, BertForMaskedLMConfig, BertForPreTraining, BertForPreTrainingConfig
from regard.tasks import TASKS
from regard.tasks.masked_lm.dataset import MaskedText
from regard.tasks.masked_lm.task import MaskedLMConfig, MaskedLMTraining
from regard.training.validation import metrics, validation_loss

SIZE = 40
TABLE = MaskingVocab(pad_id=0, unk_id=1, bos_id=2, eos_id=3, mask_id=4, is_continuation=np.zeros(SIZE, bool))
SYMBOLS = EncoderIds(pad_id=0, bos_id=2, eos_id=3, mask_id=4)
SMALL = {
    "special_ids": SYMBOLS,
    "vocab_size": SIZE,
    "context": 32,
    "width": 16,
    "heads": 2,
    "layers": 1,
    "dropout": 0.0,
}


def documents(count: int) -> TokenizedDocuments:
    """Document d says one word over and over: what is hidden can be known."""
    return TokenizedDocuments.of([[[5 + d % 30] * 4] * 8 for d in range(count)])


def task(next_sentence: bool = True) -> MaskedLMTraining:
    return MaskedLMTraining(MaskedText(documents(60), documents(30), 24, TABLE, MaskingConfig(), next_sentence))


def model(next_sentence: bool = True):
    torch.manual_seed(1)
    made = (
        BertForPreTraining(BertForPreTrainingConfig(**SMALL))
        if next_sentence
        else BertForMaskedLM(BertForMaskedLMConfig(**SMALL))
    )
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return made


def first_batch(lesson: MaskedLMTraining):
    return next(lesson.training_batches(max_tokens=300, seed=1, start=DataPosition(0, 0)))[1]


def test_the_loss_is_that_of_the_hidden_words_and_of_the_pairs():
    lesson, reader = task(), model()
    batch = first_batch(lesson)
    said = reader(batch.ids, batch.segment_ids)
    targets = torch.full(batch.ids.shape, -100).flatten()
    targets[batch.positions] = batch.targets
    words = F.cross_entropy(said.tokens.flatten(0, 1), targets, ignore_index=-100)
    pairs = F.cross_entropy(said.next, batch.next)
    assert_close(lesson.loss(reader, batch) / batch.tokens, words + pairs)


def test_a_model_without_a_next_head_learns_hidden_words_alone():
    lesson, reader = task(next_sentence=False), model(next_sentence=False)
    batch = first_batch(lesson)
    wanted = F.cross_entropy(reader(batch.ids).flatten(0, 1)[batch.positions], batch.targets, reduction="sum")
    assert_close(lesson.loss(reader, batch), wanted)
    assert metrics(reader, lesson, 1.0, [batch]).keys() == {"masked_accuracy", "masked_perplexity"}


def test_only_the_hidden_places_get_logits():
    lesson, reader = task(), model()
    batch = first_batch(lesson)
    seen = []
    reader.head.register_forward_hook(lambda _module, _inputs, output: seen.append(output.shape))
    lesson.loss(reader, batch)
    assert seen == [(batch.tokens, SIZE)]


def test_measures_count_what_is_right():
    lesson, reader = task(), model()
    batches = list(lesson.validation_batches(max_tokens=200))
    assert len(batches) > 3
    found = metrics(reader, lesson, 0.0, batches)
    right = asked = judged = pairs = 0
    surprise = 0.0
    with torch.no_grad():
        for batch in batches:
            said = reader(batch.ids, batch.segment_ids)
            words = said.tokens.flatten(0, 1)[batch.positions]
            right += (words.argmax(-1) == batch.targets).sum().item()
            surprise += F.cross_entropy(words, batch.targets, reduction="sum").item()
            judged += (said.next.argmax(-1) == batch.next).sum().item()
            asked, pairs = asked + batch.tokens, pairs + len(batch.ids)
    wanted = {"masked_accuracy": right / asked, "next_sentence_accuracy": judged / pairs}
    wanted["masked_perplexity"] = math.exp(surprise / asked)
    assert found == pytest.approx(wanted, rel=1e-4)
    assert math.isnan(metrics(reader, lesson, 0.0, [])["masked_accuracy"])


def test_the_mean_loss_of_a_token_is_that_of_a_word_and_that_of_a_pair():
    """Whatever the batches: but for their pairs, whose mean is taken in each."""
    lesson, reader = task(next_sentence=False), model(next_sentence=False)
    losses = [
        validation_loss(reader, lesson, lesson.validation_batches(max_tokens=max_tokens)) for max_tokens in (100, 10**6)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert math.exp(losses[0]) == pytest.approx(
        metrics(reader, lesson, 0, lesson.validation_batches(max_tokens=500))["masked_perplexity"], rel=1e-4
    )


def test_hidden_words_that_can_be_known_are_learned():
    lesson = task()
    torch.manual_seed(1)
    reader = BertForPreTraining(BertForPreTrainingConfig(**{**SMALL, "width": 32}))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=5e-3)
    batches = lesson.training_batches(max_tokens=400, seed=1, start=DataPosition(0, 0))
    for _, (_, batch) in zip(range(100), batches, strict=False):
        optimizer.zero_grad()
        (lesson.loss(reader, batch) / batch.tokens).backward()
        optimizer.step()
    found = metrics(reader, lesson, 0.0, lesson.validation_batches(max_tokens=1000))
    assert found["masked_accuracy"] > 0.5, "by chance one in thirty"


def test_names():
    assert MaskedLMTraining.name in TASKS
    assert MaskedLMTraining.name == "masked-lm"
    config = MaskedLMConfig()
    assert (config.next_sentence, config.masking.share) == (True, 0.15)
