"""Folders that were written before format 2 open, compute and print what they did then.

tests/fixtures/format-1 holds one folder of each kind; its make.py wrote them, with expected.json, by the old version.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import checkpoint, renamed
from regard.models import MODELS

FIXTURES = Path(__file__).parent / "fixtures" / "format-1"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
RUNS = [name for name, expected in EXPECTED.items() if "printed" in expected]
KINDS = {  # all that format 1 knew
    "rnn",
    "conv",
    "transformer",
    "gpt",
    "llama",
    "bert",
    "bert-pretraining",
    "bert-words",
    "bert-classifier",
    "bert-tagger",
    "captioner",
    "vilbert",
    "vilbert-pretraining",
    "vilbert-answerer",
    "vilbert-pointer",
    "vilbert-matcher",
}


@pytest.fixture
def fixtures(monkeypatch):
    """The current folder: the runs name their data by relative paths."""
    monkeypatch.chdir(FIXTURES)


def logits(kind: str, model: nn.Module) -> list[float]:
    """Every n-th number of all outputs for a fixed input, as make.py has it."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 20, (2, 7), generator=generator)
    family = kind.partition("-")[0]
    config: Any = model.config
    if family in ("transformer", "rnn", "conv"):
        found = model(ids, ids.flip(1))
    elif family == "captioner":
        found = model(torch.randn(2, 3, config.image_size, config.image_size, generator=generator), ids)
    elif family == "vilbert":
        regions = torch.randn(2, 3, config.vision.features or 3 * config.vision.patch_size**2, generator=generator)
        found = model(ids, torch.zeros_like(ids), regions, torch.rand(2, 3, 5, generator=generator))
    else:
        found = model(ids)
    outputs = [found] if isinstance(found, Tensor) else [one for one in found if one is not None]
    return [number for one in outputs for number in one.flatten()[:: max(1, one.numel() // 8)].tolist()]


# What `regard evaluate` did not report then.
NEW = {"stride", "attention_on_object_by_nouns", "attention_of_best_head_by_nouns"}


def numbers(found: Any, name: str = "") -> list[float]:
    """All numbers in a JSON value, whatever their keys are called; but for speeds."""
    if isinstance(found, dict):
        return [number for key, value in found.items() for number in numbers(value, key)]
    if isinstance(found, list):
        return [number for value in found for number in numbers(value, name)]
    return [found] if isinstance(found, int | float) and "per_second" not in name and name not in NEW else []


def test_there_is_a_folder_of_every_kind_of_format_1():
    assert {expected["kind"] for expected in EXPECTED.values()} == KINDS


@torch.no_grad()
@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_folder_opens_and_gives_the_same_logits(name):
    found = checkpoint.load(FIXTURES / name)
    assert found.kind in MODELS
    assert logits(found.kind, found.model) == pytest.approx(EXPECTED[name]["logits"], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_running_an_old_folder_prints_the_same(name, here, fixtures):
    done = here("run", name, *EXPECTED[name]["inputs"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED[name]["printed"]


@pytest.mark.parametrize("name", RUNS)
def test_evaluating_an_old_run_gives_the_same_numbers(name, here, fixtures):
    done = here("evaluate", name, "--json", "--limit", 40)
    assert done.returncode == 0, done.stderr
    wanted = sorted(numbers(EXPECTED[name]["evaluated"]))
    assert sorted(numbers(json.loads(done.stdout))) == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", EXPECTED)
def test_info_describes_an_old_folder_in_the_names_of_today(name, here, fixtures):
    done = here("info", name, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] in MODELS


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_an_old_run_resumes_to_the_same_weights(tmp_path, here):
    folder = tmp_path / "run"
    shutil.copytree(FIXTURES / "transformer", folder)
    old = json.loads((folder / "run.json").read_text(encoding="utf-8"))["settings"]
    settings = flat(renamed.settings(old)) | {"training.steps": 44}
    done = here("train", "translator", "-o", folder, *(f"{key}={value}" for key, value in settings.items()))
    assert done.returncode == 0, done.stderr
    assert "step-40" in done.stderr
    found = checkpoint.load(folder)
    with torch.no_grad():
        after = logits(found.kind, found.model)
    assert after == pytest.approx(EXPECTED["transformer"]["resumed"], rel=1e-4, abs=1e-5)
    assert after != pytest.approx(EXPECTED["transformer"]["logits"], rel=1e-4, abs=1e-5)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["format"] == checkpoint.FORMAT


def test_no_name_is_renamed_to_itself():
    for names in (renamed.KEYS, renamed.KINDS, renamed.PROGRESS):
        assert not [old for old, new in names.items() if old == new]
