"""The view `input`: the three embeddings are the model's, and their sum is what its norm reads."""

import numpy as np
import pytest
import torch

from regard.data.masking import MaskingConfig, MaskingVocab, mask_row
from regard.errors import InputError
from regard.inspection.views import choose_view
from regard.inspection.views.base import Choices
from regard.inspection.views.input import SEED, VIEW, input_row
from tests.inspection.views.tiny import Labels, check_inside, matrices, titles, traced

IDS = [1, 9, 3, 2, 30, 31, 12, 2]


@pytest.mark.parametrize("kind", ["bert", "bert-masked-lm", "bert-token-classification"])
def test_the_rows_are_the_embeddings_and_their_sum_is_what_the_norm_reads(kind):
    subject = traced(kind, VIEW, ids=IDS)
    model = subject.pipeline.model
    embedding = model.encoder.embedding
    segments = [0, 0, 0, 1, 1, 1, 1, 1]
    figure = VIEW.draw(subject, Choices())
    found = {name: matrix.values.T for name, matrix in matrices(figure.scene).items()}
    assert np.array_equal(found["token"], embedding.tokens.weight[IDS, :8].detach().numpy())
    assert np.array_equal(found["position"], embedding.positions.weight[:8, :8].detach().numpy())
    assert np.array_equal(found["segment"], embedding.segments.weight[segments, :8].detach().numpy())
    assert np.allclose(found["sum"], found["token"] + found["position"] + found["segment"])
    row = input_row(model, subject.inputs)
    with torch.inference_mode():
        wanted = embedding(torch.tensor([IDS]), torch.tensor([segments]))[0]
        assert torch.allclose(embedding.norm(torch.from_numpy(row.sum)), wanted, atol=1e-5)
    told = titles(figure.scene)
    assert told["norm of sum 4"] == pytest.approx(np.linalg.norm(row.sum[4]), rel=1e-4)
    check_inside(figure)


def test_masking_is_that_of_training():
    subject = traced("bert-masked-lm", VIEW, ids=IDS)
    scene = VIEW.draw(subject, Choices()).scene
    vocab = MaskingVocab.from_tokenizer(Labels())
    ids = np.array(IDS)
    masked = mask_row(ids, vocab.word_ids(ids), MaskingConfig(), vocab, SEED)
    told = [item.title for item in scene.items if ", id " in getattr(item, "title", "")]
    shown = [int(title.rpartition(" ")[2]) for title in told]
    wanted = []
    for given, target in zip(masked.ids.tolist(), masked.targets.tolist(), strict=True):
        wanted += [given] if target < 0 else [given, target]
    assert shown == wanted
    assert len(shown) > len(IDS)  # one token at least is predicted


def test_a_language_model_has_no_such_row():
    with pytest.raises(InputError, match="it has no token, position and segment embeddings"):
        choose_view("input", traced("gpt", VIEW).trace.info)
