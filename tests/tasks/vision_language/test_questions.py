"""Questions about pictures: cross-entropy over answers or over regions, and accuracies by kind."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.data.batches import DataPosition
from regard.data.regions import ImageRegions, Regions, normalize_boxes
from regard.data.rows import RowSplits
from regard.tasks import TASKS
from regard.tasks.vision_language.dataset import ImageRows
from regard.tasks.vision_language.questions import GroundingTraining, QuestionTraining, accuracies
from regard.training.validation import metrics
from tests.contracts.examples import VISION_LANGUAGE

ROWS = 40


def rows() -> ImageRows:
    """Row i has i % 5 + 2 words and asks of picture i % 7, which has i % 7 % 3 + 2 regions."""
    rng = np.random.default_rng(0)

    def picture(count: int) -> ImageRegions:
        return ImageRegions(rng.random((count, 10)).astype(np.float32), normalize_boxes(0.1 + rng.random((count, 4))))

    encoded = [SimpleNamespace(ids=[1, *[5 + i % 30] * (i % 5), 2], segment_ids=[0] * (i % 5 + 2)) for i in range(ROWS)]
    return ImageRows(
        encoded,
        np.arange(ROWS) % 2,
        0,
        images=[i % 7 for i in range(ROWS)],
        regions=Regions(picture(p % 3 + 2) for p in range(7)),
        kinds=[("color", "count", "place")[i % 3] for i in range(ROWS)],
    )


@pytest.fixture(params=["vilbert-question-answering", "vilbert-grounding"])
def model(request):
    return next(example for example in VISION_LANGUAGE if example.kind == request.param).loud_model()


def test_a_row_stands_beside_its_picture():
    some = rows()
    batch = some.collate(np.array([3, 9, 20]))
    assert batch.ids[:, 0].tolist() == [1, 1, 1]
    assert batch.regions.shape[:2] == batch.boxes.shape[:2] == (3, 4)
    for place, row in enumerate((3, 9, 20)):
        wanted = some.regions[row % 7]
        assert_close(batch.regions[place, : len(wanted.features)], torch.from_numpy(wanted.features))
        assert batch.boxes[place].any(-1).sum() == len(wanted.features)
    assert batch.tokens == 3


def test_every_row_comes_once_and_the_budget_counts_words_and_regions():
    some = rows()
    plan = some.plan(max_tokens=60, seed=1, epoch=0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(ROWS))
    for indices in plan:
        batch = some.collate(indices)
        assert len(indices) * (batch.ids.shape[1] + batch.boxes.shape[1]) <= 60


def test_the_loss_is_the_cross_entropy_of_the_right_class(model):
    some = rows()
    task = QuestionTraining(RowSplits(some, some), some.kinds)
    batch = next(task.training_batches(max_tokens=80, seed=1, start=DataPosition(0, 0)))[1]
    logits = model(batch.ids, batch.segment_ids, batch.regions, batch.boxes)
    assert_close(task.loss(model, batch), -logits.log_softmax(-1)[range(len(logits)), batch.targets].sum())
    assert_close(task.loss(model, batch), F.cross_entropy(logits, batch.targets) * batch.tokens)


def test_right_answers_are_counted_by_kind(model):
    some = rows()
    task = QuestionTraining(RowSplits(some, some), some.kinds)
    wanted: dict[str, list[bool]] = {}
    for row in range(ROWS):
        batch = some.collate(np.array([row]))
        said = model(batch.ids, batch.segment_ids, batch.regions, batch.boxes).argmax(-1).item()
        wanted.setdefault(some.kinds[row], []).append(said == row % 2)
    found = metrics(model, task, 1.0, task.validation_batches(max_tokens=90))
    assert found == pytest.approx(accuracies(wanted))
    assert set(found) == {"accuracy", "accuracy_color", "accuracy_count", "accuracy_place"}


def test_accuracies_are_of_all_and_of_each():
    assert accuracies({"a": [True, False], "b": [True]}) == {"accuracy": 2 / 3, "accuracy_a": 0.5, "accuracy_b": 1.0}
    assert accuracies({"a": [True, False]}) == {"accuracy": 0.5}
    assert accuracies({}) == {}


def test_the_tasks_are_known_by_their_names():
    assert {QuestionTraining.name, GroundingTraining.name} <= TASKS.keys()
