"""The net of test_models.py and test_tasks.py catches what it is for: one broken line of a layer, a loss, a search."""

import pytest
import torch

from regard.generation import Beam, beam, generate
from regard.layers import masks
from regard.runtime import Runtime
from regard.tasks.language_modeling.task import LanguageModelTraining
from regard.training.loop import take_step
from tests.contracts.examples import SEQ2SEQ, example_of
from tests.devices.accelerator import DEVICE, HostSyncError, MixedDevicesError, accelerator
from tests.devices.drive import inputs, limits, outputs, prompts
from tests.devices.host_syncs import HOST_SYNCS
from tests.devices.prepared import CASES, prepare

THERE = Runtime(DEVICE)


def test_positions_of_a_layer_made_on_the_host(monkeypatch):
    position_ids = masks.position_ids
    monkeypatch.setattr(masks, "position_ids", lambda documents: position_ids(torch.ones(documents.shape).long()))
    example = example_of("gpt")
    model = example.model()
    with accelerator():
        model.to(DEVICE)
        given = inputs(example, THERE)
        with pytest.raises(MixedDevicesError, match=r"embedding.* host, \(3, 6\), at layers/.*\.py:\d+"):
            outputs(model, given)


def test_weights_of_a_loss_made_on_the_host(monkeypatch, story, tmp_path):
    found = prepare(next(case for case in CASES if case.name == "gpt"), tmp_path, [story])
    whole = LanguageModelTraining.loss
    batch = found.batch()
    weights = torch.ones(batch.ids.shape)
    monkeypatch.setattr(
        LanguageModelTraining, "loss", lambda self, model, batch: (whole(self, model, batch) * weights).mean()
    )
    with accelerator():
        found.model.to(DEVICE)
        batch = THERE.move(batch)
        with pytest.raises(MixedDevicesError, match=r"mul.* training/parallel\.py:\d+"):
            take_step(found.model, found.task, [], [batch], 0.1, 1.0, THERE)


def test_a_loss_that_is_read_on_the_way(monkeypatch, story, tmp_path):
    found = prepare(next(case for case in CASES if case.name == "gpt"), tmp_path, [story])
    whole = LanguageModelTraining.loss

    def broken(self, model, batch):
        loss = whole(self, model, batch)
        return loss if loss > 0 else loss * 0

    monkeypatch.setattr(LanguageModelTraining, "loss", broken)
    allowed = {place: why for place, why in HOST_SYNCS.items() if place != ("training/loop.py", "take_step")}
    with accelerator(allowed):
        found.model.to(DEVICE)
        batch = THERE.move(found.batch())
        with pytest.raises(HostSyncError, match=r"_local_scalar_dense.* training/parallel\.py:\d+"):
            take_step(found.model, found.task, [], [batch], 0.1, 1.0, THERE)


def test_ends_of_a_beam_search_made_on_the_host(monkeypatch):
    first_running = beam._first_running
    monkeypatch.setattr(
        beam, "_first_running", lambda tokens, ends, count: first_running(tokens, torch.tensor([2]), count)
    )
    model = SEQ2SEQ[0].model()
    with accelerator():
        model.to(DEVICE)
        source = prompts(SEQ2SEQ[0], THERE)
        with pytest.raises(MixedDevicesError, match=r"isin.* generation/beam\.py:\d+"):
            generate(model, source, Beam(3), limits())
