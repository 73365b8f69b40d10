"""The lesson of a language model: plain cross-entropy, and what it means a byte."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.data.chunking import TextChunk
from regard.data.stores.token_stream import TokenStream
from regard.tasks.language_modeling.dataset import LanguageText
from regard.tasks.language_modeling.task import LanguageModelTraining, loss_metrics
from regard.tokenizers.text import TextTokenizer
from regard.training.validation import metrics, validation_loss
from tests.contracts.examples import CAUSAL_LM, named

TEXTS = ["It was the best of times. ", "ñ — the worst.", "Then nothing happened for a while. " * 3, "The end"]


@pytest.fixture(params=[False, True], ids=["joined", "apart"])
def task(request, tmp_path):
    tokenizer = TextTokenizer.characters(TEXTS)
    assert tokenizer.vocab_size < 40  # the examples' vocabulary
    streams = [
        TokenStream.build(
            [TextChunk(text) for text in texts],
            tokenizer.encode_batch,
            tokenizer.eos_id,
            tmp_path / name,
            vocab_size=tokenizer.vocab_size,
        )
        for name, texts in (("training", TEXTS * 3), ("validation", TEXTS))
    ]
    return LanguageModelTraining(LanguageText(*streams, context=20, separate_documents=request.param))


@pytest.mark.parametrize("example", CAUSAL_LM, ids=named)
def test_the_loss_is_plain_cross_entropy_summed_over_what_is_asked(task, example):
    model = example.loud_model()
    _, training = next(task.training_batches(max_tokens=100, seed=3, start=DataPosition(0, 0)))
    *_, validation = task.validation_batches(max_tokens=100)  # the last one: padded
    assert (validation.targets == -100).any()
    for batch in (training, validation):
        logits = model(batch.ids, batch.document_ids)
        wanted = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=-100, reduction="sum")
        loss = task.loss(model, batch)
        assert_close(loss, wanted)
        by_loss = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        by_wanted = torch.autograd.grad(wanted, list(model.parameters()), allow_unused=True)
        for one, other in zip(by_loss, by_wanted, strict=True):
            assert_close(one, other, rtol=1e-4, atol=1e-4)
        assert batch.tokens == (batch.targets != -100).sum()


def test_the_held_out_loss_is_a_mean_over_every_token_but_the_first(task):
    model = CAUSAL_LM[0].loud_model()
    for max_tokens in (20, 60, 1000):  # however many windows stand side by side
        batches = list(task.validation_batches(max_tokens=max_tokens))
        loss = validation_loss(model, task, batches)
        asked = sum(batch.tokens for batch in batches)
        begins = task.data.validation.documents - 1 if task.data.separate_documents else 0
        assert asked == len(task.data.validation) - 1 - begins
        if max_tokens == 20:
            first = loss
        assert loss == pytest.approx(first, rel=1e-5)


def test_measures_are_the_loss_in_other_units(task):
    found = metrics(CAUSAL_LM[0].model(), task, 2.0, [])
    bytes_, tokens = len("".join(TEXTS).encode()), len(task.data.validation)
    assert tokens == len("".join(TEXTS)) + len(TEXTS)  # a character a token, and the ends
    assert found == pytest.approx({"perplexity": math.exp(2), "bits_per_byte": 2 / math.log(2) * tokens / bytes_})


def test_bits_a_byte_do_not_fall_where_an_evaluation_looks_at_less(task):
    part = LanguageModelTraining(replace(task.data, validation_tokens=30))
    whole, less = (metrics(CAUSAL_LM[0].model(), one, 2.0, []) for one in (task, part))
    assert less["bits_per_byte"] == pytest.approx(whole["bits_per_byte"])


def test_loss_metrics():
    """A coin a token, four tokens on two bytes: two bits a byte."""
    assert loss_metrics(math.log(2), tokens=4, text_bytes=2) == pytest.approx({"perplexity": 2, "bits_per_byte": 2})
    assert math.isfinite(loss_metrics(1e9, tokens=4, text_bytes=2)["perplexity"])  # a run that left the road


def test_it_is_called_language():
    assert LanguageModelTraining.name == "language-modeling"
