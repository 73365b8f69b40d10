"""Several processes compute what one does: the same losses, whatever the recipe, with DDP and with FSDP2."""

import json

import pytest

from tests.devices.prepared import CASES
from tests.distributed.torchrun import torchrun

DATA = {"gpt": "story", "classifier": "reviews", "tagger": "people"}


def run(processes, steps, cases, folder, request):
    data = {case.data: request.getfixturevalue(case.data) for case in CASES if case.data and case.name in cases}
    words = [f"{name}={path}" for name, path in data.items()]
    out = folder / "losses.json"
    root = request.config.rootpath
    process = torchrun(processes, "tests.distributed.steps", out, steps, *cases, "--", *words, cwd=root)
    _, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(out.read_text())


def test_two_processes_have_the_losses_of_one(tmp_path, request):
    """A language model, and pretraining with means over masked tokens, regions and matches."""
    found = run(2, 3, ["gpt", "vilbert"], tmp_path, request)
    for losses in found.values():
        assert losses["ddp"] == pytest.approx(losses["one"], abs=1e-5)
        assert losses["fsdp"] == pytest.approx(losses["one"], abs=1e-5)


@pytest.mark.prove
@pytest.mark.parametrize("processes", [2])
def test_every_recipe(tmp_path, request, processes):
    found = run(processes, 20, [case.name for case in CASES], tmp_path, request)
    assert len(found) == len(CASES)
    for losses in found.values():
        assert losses["ddp"] == pytest.approx(losses["one"], abs=1e-5)
        assert losses["fsdp"] == pytest.approx(losses["one"], abs=1e-5)
