"""A rank is killed, hangs, or fails; a run is stopped, and resumed with another number of ranks."""

import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from regard.checkpoint import read_tensors
from tests.distributed.torchrun import finished, torchrun

pytestmark = pytest.mark.timeout(3600)

TINY = [
    "data.tokenizer=characters",
    *("model.width=32", "model.heads=2", "model.layers=2", "model.context=32", "model.dropout=0.1"),
    *(
        "training.max_tokens=512",
        "training.minutes=none",
        "training.evaluate_every=1000",
        "training.checkpoint_every=10",
    ),
]


def train(processes, folder, story, *settings, more=()):
    words = ["regard", "train", "gpt", story, "-o", folder, *TINY, *settings]
    return torchrun(processes, *words, cwd=folder.parent, more=more)


def ranks(process):
    """The process ids of the ranks, by rank."""
    found = {}
    for pid in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split():
        environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
        found |= {int(one.removeprefix("RANK=")): int(pid) for one in environment if one.startswith("RANK=")}
    return found


def wait_for(check):
    while not check():
        time.sleep(0.1)


def losses(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.prove
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_killed_ranks_end_with_the_bytes_of_an_undisturbed_run(tmp_path, story, mode):
    settings = ["training.steps=400", f"training.parallel={mode}"]
    assert finished(train(2, tmp_path / "whole", story, *settings))[0] == 0
    folder, kills, draw = tmp_path / "killed", 0, random.Random(1)
    process = train(2, folder, story, *settings, more=["--max-restarts=10"])
    while process.poll() is None and kills < 10:
        before = len(list(folder.glob("checkpoints/step-*"))) and max(
            int(path.name[5:]) for path in folder.glob("checkpoints/step-*")
        )
        reached = f"step-{before + 10}"
        wait_for(lambda: process.poll() is not None or (folder / "checkpoints" / reached).exists())  # noqa: B023
        time.sleep(draw.random())
        if process.poll() is None and len(there := ranks(process)) == 2:
            os.kill(there[draw.randrange(2)], signal.SIGKILL)
            kills += 1
    assert finished(process)[0] == 0
    assert kills >= 5
    assert weights(folder) == weights(tmp_path / "whole")
    assert losses(folder) == losses(tmp_path / "whole")


@pytest.mark.prove
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_ranks_then_one_then_four(tmp_path, story, mode):
    folder = tmp_path / "run"
    for processes, steps in ((2, 10), (1, 20), (4, 30)):
        settings = [f"training.steps={steps}", "training.schedule=constant", f"training.parallel={mode}"]
        assert finished(train(processes, folder, story, *settings))[0] == 0
    alone = tmp_path / "alone"
    for steps in (10, 20, 30):
        assert finished(train(1, alone, story, f"training.steps={steps}", "training.schedule=constant"))[0] == 0
    assert losses(folder) == pytest.approx(losses(alone), abs=1e-5)
    ours, wanted = read_tensors(folder / "model.safetensors"), read_tensors(alone / "model.safetensors")
    assert all((ours[name] - wanted[name]).abs().max() < 1e-3 for name in wanted)


@pytest.mark.prove
def test_a_rank_that_hangs_is_named(tmp_path, story):
    folder = tmp_path / "run"
    process = train(2, folder, story, "training.steps=100000", "training.timeout=15")
    wait_for(lambda: list(folder.glob("checkpoints/step-*")))
    there = ranks(process)
    os.kill(there[1], signal.SIGSTOP)
    code, _, lines = finished_after(process, there[1])
    assert code != 0
    assert re.search("error: rank 1 does not answer: it hangs or has been killed", "\n".join(lines)), lines


def finished_after(process, stopped):
    """torchrun waits for a stopped process half a minute; continue it once the other has spoken."""
    time.sleep(35)
    os.kill(stopped, signal.SIGCONT)
    return finished(process)


@pytest.mark.prove
def test_sigterm_saves_once(tmp_path, story):
    folder = tmp_path / "run"
    process = train(2, folder, story, "training.steps=100000", "training.checkpoint_every=100000")
    wait_for(lambda: (folder / "metrics.jsonl").is_file() and (folder / "metrics.jsonl").stat().st_size)
    process.send_signal(signal.SIGTERM)
    _, _, lines = finished(process)
    assert len(list(folder.glob("checkpoints/step-*"))) == 1
    assert len([line for line in lines if line.startswith("stopped at step")]) == 1, lines


@pytest.mark.prove
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["training.max_tokens=511"], "2 processes do not divide training.max_tokens=511"),
        (["training.max_tokens=32"], "2 processes, but a batch of training.max_tokens=32 has 1 samples"),
        (["training.backend=pigeon"], "training.backend=pigeon: this torch has gloo"),
        (["--device", "cuda"], "--device cuda: there is no cuda device here"),
    ],
)
def test_a_mistake_is_printed_once_and_every_rank_ends_with_2(tmp_path, story, words, message):
    process = train(2, tmp_path / "run", story, *words)
    _, errors = process.communicate(timeout=300)
    assert errors.count(message) == 1
    assert re.findall(r"exitcode +: (-?\d+)", errors) == ["2", "2"], errors[-2000:]
