"""The task's loss: smoothing, and the model's own words among the true ones."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.data.batches import collate_padded
from regard.tasks.translation.task import TranslationConfig, TranslationTraining

PADDING, BEGIN, END, WORDS = 0, 1, 2, 10


class Tokens:
    pad_id, bos_id, eos_id = PADDING, BEGIN, END


class Parrot(nn.Module):
    """Would always write word 7; remembers what it was given."""

    def __init__(self):
        super().__init__()
        self.given = []
        self.bias = nn.Parameter(torch.zeros(WORDS))

    def forward(self, source, target):
        self.given.append(target)
        logits = torch.zeros(*target.shape, WORDS)
        logits[..., 7] = 1.0
        logits[..., [PADDING, END]] = 9.0  # never to be put in
        return logits + self.bias


@pytest.fixture
def batch():
    return collate_padded([([3, 4], [5, 6, 8, 9]), ([3], [4])] * 200, range(400), BEGIN, END, PADDING)


def task(scheduled_sampling):
    return TranslationTraining(Tokens(), TranslationConfig(label_smoothing=0.0, scheduled_sampling=scheduled_sampling))


def test_about_the_share_of_words_is_the_models_own_and_never_begin_or_padding(batch):
    torch.manual_seed(0)
    model = Parrot().train()
    task(0.3).loss(model, batch).backward()
    first, second = model.given
    assert torch.equal(first, batch.target_in)
    words = (batch.target_in != PADDING) & (batch.target_in != BEGIN)
    changed = second != first
    assert changed.sum() / words.sum() == pytest.approx(0.3, abs=0.05)
    assert not changed[~words].any()
    assert (second[changed] == 7).all()


def test_without_a_share_and_in_evaluation_one_pass_with_the_true_words(batch):
    for model, share in ((Parrot().train(), 0.0), (Parrot().eval(), 0.5)):
        task(share).loss(model, batch)
        assert len(model.given) == 1
        assert torch.equal(model.given[0], batch.target_in)


def test_the_loss_is_summed_over_real_tokens(batch):
    model = Parrot().eval()
    logits = model(batch.source, batch.target_in)
    real = batch.target_out != PADDING
    wanted = -logits.log_softmax(-1).gather(2, batch.target_out[..., None])[..., 0][real].sum()
    assert_close(task(0.0).loss(model, batch), wanted)
