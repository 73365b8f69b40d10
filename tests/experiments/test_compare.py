"""The ladder as a user climbs it, with very small runs."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from regard.experiments.long_memory import SMALL, accuracy, study
from regard.models import build
from regard.recipes.translator_comparison import SPECS, recipe_of
from regard.tasks.recipe import TrainingInputs

FEW = [
    "training.steps=4",
    "training.max_tokens=512",
    "training.evaluate_examples=4",
    "data.num_pairs=300",
    "data.validation=30",
    "data.max_sentences=2",
]


def parameters(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(config).parameters())


@pytest.mark.parametrize("place", [0, 1], ids=["world", "pairs"])
def test_all_rungs_are_within_a_tenth_in_parameters(place):
    sizes = [parameters((rung.on_synthetic, rung.on_pairs)[place]) for rung in SPECS.values()]
    assert max(sizes) <= 1.1 * min(sizes)


def test_the_small_ones_are_too():
    sizes = [parameters(config) for config in SMALL.values()]
    assert set(SMALL) == set(SPECS)
    assert max(sizes) <= 1.1 * min(sizes)


def test_all_rungs_share_everything_but_the_model():
    for paths in ([], [Path("pairs.tsv")]):
        settings = [recipe_of(name).settings(TrainingInputs(paths)) for name in SPECS]
        alike = {"optimizer": "adamw", "learning_rate": 1.0}
        assert len({repr((one.task, one.data, one.training.model_copy(update=alike))) for one in settings}) == 1


@pytest.fixture(scope="module")
def compared(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "ladder"
    done = command("compare", "--rungs", "rnn,rnn-attention", "--seeds", 2, "--no-memory", *FEW, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_report_is_complete(compared, here):
    folder, done = compared

    def evaluated(folder):
        return [here("evaluate", folder / f"rnn-attention-{seed}", "--json").stdout for seed in (1, 2)]

    assert {path.name for path in folder.glob("*.*")} == {
        "ladder.json",
        "ladder.csv",
        "ladder.txt",
        "ladder.png",
        "ladder.svg",
        "report.html",
    }
    assert "rnn-attention" in done.stdout
    assert "±" in done.stdout
    assert "adamw 0.008" in done.stdout
    assert done.stdout.strip() == (folder / "ladder.txt").read_text().strip()
    result = json.loads((folder / "ladder.json").read_text())
    assert [one["rung"] for one in result["standings"]] == ["rnn", "rnn-attention"]
    without, with_attention = (one["scores"] for one in result["standings"])
    assert "alignment_error_rate" not in without
    assert 0 <= with_attention["alignment_error_rate"] <= 1
    runs = [json.loads(done_alone) for done_alone in evaluated(folder)]
    assert with_attention["loss"] == pytest.approx(sum(run["loss"] for run in runs) / 2)
    assert with_attention["deviation"]["loss"] == pytest.approx(abs(runs[0]["loss"] - runs[1]["loss"]) / 2**0.5)
    rows = list(csv.DictReader((folder / "ladder.csv").read_text().splitlines()))
    assert float(rows[1]["bleu"]) == pytest.approx(with_attention["bleu"])
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    ElementTree.parse(folder / "ladder.svg")


def test_again_it_uses_what_is_trained_and_adds_what_is_not(compared, command):
    folder, _ = compared
    weights = {path: path.read_bytes() for path in folder.glob("*/model.safetensors")}
    assert len(weights) == 4
    done = command("compare", "--rungs", "rnn,rnn-attention,conv", "--no-memory", *FEW, "-o", folder, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is trained already") == 2
    assert all(path.read_bytes() == before for path, before in weights.items())
    assert [one["rung"] for one in json.loads(done.stdout)["standings"]] == ["rnn", "rnn-attention", "conv"]


def test_a_rung_that_was_trained_longer_is_refused(compared, command):
    folder, _ = compared
    fewer = [word.replace("steps=4", "steps=3") for word in FEW]
    done = command("compare", "--rungs", "rnn", "--no-memory", *fewer, "-o", folder)
    assert done.returncode == 2
    assert "rnn-1 has 4 steps, the others get 3" in done.stderr


def test_every_rung_keeps_the_laws_and_says_what_it_lacks(compared, command, here):
    """Trained for four steps only; the laws are about how a model is wired."""
    folder, _ = compared
    for name in ("rnn", "rnn-attention"):
        done = here("check", folder / f"{name}-1")
        assert done.returncode == 0, done.stdout
        assert "it knows the order without positions" in done.stdout
    assert "it has no attention" in here("check", folder / "rnn-1").stdout
    for arguments in (
        ["run", folder / "rnn-1", "we eat bread", "--alignment"],
        ["evaluate", folder / "rnn-1", "--alignments", folder / "x"],
    ):
        done = here(*arguments)
        assert done.returncode == 2
        assert "no attention" in done.stderr
    assert here("run", folder / "rnn-1", "we eat bread", "--json").returncode == 0
    assert "KV cache" in here("cost", folder / "rnn-attention-1", "--batch", 2, "--source", 9, "--target", 7).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rungs", "rnn,lstm"], "no rung is called 'lstm'; there are: rnn, "),
        (["training.seed=3"], "training.seed is the ladder's own"),
        (["training.minutes=3"], "training.minutes would give each rung another number of steps"),
        (["model.width=64"], "too unlike to be compared"),
        (["model.heads=4"], "unknown key"),
        (["nosuch.tsv"], "nosuch.tsv"),
    ],
)
def test_a_mistake_gets_one_line_before_anything_is_trained(here, tmp_path, arguments, message):
    done = here("compare", *arguments, "-o", tmp_path / "x")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("x/*/checkpoints"))


def test_a_study_asks_every_task_over_every_distance():
    found = list(study("transformer", longest=3, steps=3, distances=(1, 3)))
    assert [(one.task, one.distance) for one in found] == [
        (task, distance) for task in ("copy", "reverse", "recall") for distance in (1, 3)
    ]
    assert all(0 <= one.accuracy <= 1 for one in found)


def test_accuracy_is_one_for_a_model_that_copies():
    class Copier:
        """Writes its source, the sign left out."""

        config = SMALL["rnn"]

        def start(self, source):
            return State(source)

        def step(self, tokens, state):
            state.place += 1
            return torch.nn.functional.one_hot(state.source[:, state.place], self.config.vocab_size).float(), state

    class State:
        def __init__(self, source):
            self.source, self.place = source, 0
            self.first = torch.ones(len(source), dtype=torch.long)

        def reorder(self, rows):
            self.source = self.source[rows]

    assert accuracy(Copier(), "copy", 6) == 1.0
    assert accuracy(Copier(), "recall", 6) == 1.0
    assert accuracy(Copier(), "reverse", 6) < 0.3
