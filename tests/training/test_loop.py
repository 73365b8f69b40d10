"""The training loop on a tiny regression task: what it saves, skips, stops for and resumes from."""

import fcntl
import json
import math
import os
import signal
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from regard.checkpoint import encode_tensors
from regard.data.batches import DataPosition
from regard.errors import ConfigError, FolderError, TrainingError
from regard.training.config import TrainingConfig
from regard.training.loop import train
from regard.training.run_folder import RunFolder
from regard.training.schedule import is_over
from regard.training.selection import is_better


@dataclass(frozen=True)
class Batch:
    inputs: torch.Tensor
    tokens: int


class Doubling:
    """Learn to double numbers; `spoiled` steps have a loss of NaN."""

    unit = "numbers"
    epoch: int | None = None

    def batches_per_epoch(self, *, max_tokens, seed):
        return self.epoch

    def __init__(self, spoiled=(), worse_from=None):
        self.spoiled = set(spoiled)
        self.worse_from = worse_from
        self.evaluations = 0

    def training_batches(self, *, max_tokens, seed, start):
        index = start.index
        while True:
            generator = torch.Generator().manual_seed(seed * 1000 + index)
            index += 1
            yield DataPosition(0, index), Batch(torch.randn(max_tokens, 4, generator=generator), max_tokens)

    def validation_batches(self, *, max_tokens, most=None):
        yield Batch(torch.ones(2, 4), 2)

    def loss(self, model, batch):
        if not model.training and self.worse_from is not None:
            self.evaluations += 1
            if self.evaluations > self.worse_from:
                return torch.tensor(1000.0 + self.evaluations)
        noisy = nn.functional.dropout(batch.inputs, 0.1, model.training)
        loss = (model(noisy) - 2 * batch.inputs).square().sum()
        return loss * math.nan if model.training and model.steps() in self.spoiled else loss

    def metrics(self, model, loss, batches, generate):
        return {"exact_match": 1.0}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layer = nn.Linear(4, 4)
        self._step = 0

    def forward(self, inputs):
        return self.layer(inputs)

    def steps(self):
        return self._step


def go(folder, task=None, on_report=lambda report, model: None, **settings):
    model = Model()
    config = TrainingConfig(
        **{"steps": 20, "max_tokens": 16, "learning_rate": 0.05, "warmup": 2, "checkpoint_every": 5} | settings
    )
    run = RunFolder(folder)
    reports = []
    with run.locked():
        stream = train(
            model, task or Doubling(), config, run, lambda weights: {"model.safetensors": encode_tensors(weights)}
        )
        for report in stream:
            model._step = report.step + 1
            on_report(report, model)
            reports.append(report)
    return model, reports


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def weights(model):
    return model.layer.weight.detach().clone()


def test_it_learns_and_writes_metrics_and_tensorboard(folder):
    _, reports = go(folder, steps=200)
    assert reports[-2].loss < reports[0].loss / 10
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 200
    assert {"loss", "learning_rate", "gradient_norm", "tokens_per_second"} <= lines[-1].keys()
    assert any("validation_loss" in line for line in lines)
    assert list((folder / "tensorboard").glob("events*"))


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 13, 19])
def test_an_interrupted_run_resumes_to_the_same_weights(folder, tmp_path, stop):
    whole, _ = go(folder)

    class InterruptedRunError(Exception):
        pass

    def interrupt(report, model):
        if report.step == stop:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        go(tmp_path / "other", on_report=interrupt)
    again, reports = go(tmp_path / "other")
    assert torch.equal(weights(whole), weights(again))
    if stop >= 5:
        assert "resuming from" in reports[0].note
    steps = [json.loads(line)["step"] for line in (tmp_path / "other" / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_another_seed_gives_other_weights(folder, tmp_path):
    assert not torch.equal(weights(go(folder)[0]), weights(go(tmp_path / "other", seed=2)[0]))


def test_epochs_decide_the_number_of_steps(tmp_path):
    """Three epochs of five batches, two batches a step: eight steps, and the schedule ends there."""

    class Counted(Doubling):
        epoch = 5

    passes = {
        "steps": 1000,
        "epochs": 3,
        "gradient_accumulation": 2,
        "schedule": "linear",
        "warmup": 50,
    }  # limited to a tenth of the run: none
    model, reports = go(tmp_path / "a", Counted(), **passes)
    assert [report.steps for report in reports[:-1]] == [8] * 8
    progress = RunFolder(tmp_path / "a").newest_progress()
    same, _ = go(tmp_path / "b", Counted(), steps=8, gradient_accumulation=2, schedule="linear", warmup=0)
    assert torch.equal(weights(model), weights(same))
    assert is_over(progress, TrainingConfig(steps=1000, epochs=3))
    assert not is_over(progress, TrainingConfig(steps=1000, epochs=3.5))  # the run may be lengthened


def test_epochs_of_endless_data_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="training.epochs: .* use training.steps"):
        go(tmp_path, Doubling(), epochs=2)


def test_gradient_accumulation_equals_one_large_batch(tmp_path):
    """Two halves of 16 make the gradient that one of 32 makes, because the loss is a mean over all tokens."""

    class Fixed(Doubling):
        def training_batches(self, *, max_tokens, seed, start):
            index = start.index
            inputs = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
            while True:
                index += 1
                half = index % 2 if max_tokens == 16 else slice(None)
                yield DataPosition(0, index), Batch(inputs.view(2, 16, 4)[half].reshape(-1, 4), max_tokens)

        def loss(self, model, batch):
            return (model(batch.inputs) - 2 * batch.inputs).square().sum()

    halves, _ = go(tmp_path / "a", Fixed(), gradient_accumulation=2, max_tokens=16)
    once, _ = go(tmp_path / "b", Fixed(), max_tokens=32)
    torch.testing.assert_close(weights(halves), weights(once))


def test_checkpoints_are_saved_every_n_steps_and_the_newest_kept(folder):
    go(folder, keep_checkpoints=3)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-10", "step-15", "step-20"]


def test_a_step_with_a_nan_loss_is_skipped_and_logged(folder):
    before = {}

    def watch(report, model):
        before[report.step] = weights(model)

    _, reports = go(folder, Doubling(spoiled=[7, 8]), watch)
    assert torch.equal(before[6], before[8])
    assert not torch.equal(before[8], before[9])
    assert "step 7: loss nan" in next(report.note for report in reports if report.step == 7)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert next(line for line in lines if line.get("skipped"))["loss"] == "nan"


def test_five_skipped_steps_in_a_row_end_the_run_and_name_the_last_good_checkpoint(folder):
    with pytest.raises(
        TrainingError, match=r"step 13: loss nan.*fifth in a row; the last good checkpoint is .*step-10"
    ):
        go(folder, Doubling(spoiled=range(9, 99)))


def test_a_damaged_checkpoint_is_skipped_and_the_final_weights_are_the_same(folder, tmp_path):
    whole, _ = go(tmp_path / "whole")
    go(folder, steps=15)
    data = bytearray((folder / "checkpoints/step-15/optimizer.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "checkpoints/step-15/optimizer.safetensors").write_bytes(data)
    again, reports = go(folder)
    assert "skipped" in reports[0].note
    assert "optimizer.safetensors is damaged" in reports[0].note
    assert "resuming from" in reports[1].note
    assert "step-10" in reports[1].note
    assert torch.equal(weights(whole), weights(again))


def test_a_damaged_checkpoint_is_not_counted_as_one_to_keep(folder):
    go(folder, steps=15)
    for name in ("step-10", "step-15"):
        (folder / "checkpoints" / name / "training.json").write_text("{}")
    go(folder, steps=10, checkpoint_every=2)
    assert [path.name for path in RunFolder(folder).folders()] == ["step-8", "step-10"]


def test_a_folder_that_holds_no_run_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderError, match="is not empty and holds no run"), RunFolder(tmp_path).locked():
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_without_an_intact_checkpoint_the_run_starts_from_scratch(folder):
    go(folder, steps=5)
    (folder / "checkpoints/step-5/training.json").unlink()
    _, reports = go(folder)
    assert [report.note for report in reports[:2]][1] == "no intact checkpoint is left; starting from scratch"
    assert reports[2].step == 1


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (nn.Linear(4, 5), r"layer.bias is \(4,\) there and \(5,\) here"),
        (nn.Linear(4, 4, bias=False), r"layer.bias is \(4,\) there and missing here"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(folder, layer, said):
    go(folder, steps=5)
    model = Model()
    model.layer = layer
    with pytest.raises(TrainingError, match=f"step-5 is of another model: {said}, so the data or the settings have"):
        next(train(model, Doubling(), TrainingConfig(steps=10), RunFolder(folder), dict))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_saves_a_checkpoint_and_the_run_resumes_to_the_same_weights(folder, tmp_path, number):
    whole, _ = go(tmp_path / "whole")
    handler = signal.getsignal(number)

    def stop(report, model):
        if report.step == 7:
            os.kill(os.getpid(), number)

    _, reports = go(folder, on_report=stop)
    assert reports[-1].stopped == number
    assert reports[-1].step == 8
    assert (folder / "checkpoints/step-8").is_dir()
    assert signal.getsignal(number) is handler
    assert torch.equal(weights(go(folder)[0]), weights(whole))


def test_early_stopping_ends_the_run_and_keeps_the_best_weights(folder):
    task = Doubling(worse_from=2)
    kept = {}

    def watch(report, model):
        if not report.note:
            kept[report.step] = weights(model)

    model, reports = go(folder, task, watch, steps=100, evaluate_every=5, patience=3)
    assert reports[-1].step == 25
    assert "kept the weights of step 10, which has the lowest validation loss" in reports[-1].note
    assert torch.equal(weights(model), kept[10])
    assert (folder / "checkpoints/step-10").is_dir()


class Scored(Doubling):
    """The main metric is best at step 15, and the validation loss rises from evaluation to evaluation."""

    main_metric = "f1"
    scores = (0.0, 0.2, 0.7, 0.7, 0.3, 0.1)

    def __init__(self):
        super().__init__(worse_from=0)

    def metrics(self, model, loss, batches, generate):
        return {"f1": self.scores[self.evaluations - 1]}


def test_the_best_metric_decides_which_weights_are_kept_though_its_loss_is_not_the_lowest(folder):
    kept = {}

    def watch(report, model):
        if not report.note:
            kept[report.step] = weights(model)

    model, reports = go(folder, Scored(), watch, steps=30, evaluate_every=5, select="metric")
    assert reports[-1].note == "kept the weights of step 15, which has the best f1: 0.7000, the last has 0.1000"
    assert reports[-1].validation["f1"] == 0.7
    assert torch.equal(weights(model), kept[15])


def test_among_equal_metrics_the_lower_loss_is_better():
    one, other = {"loss": 2.0, "f1": 0.5}, {"loss": 1.0, "f1": 0.5}
    assert is_better(other, one, "f1")
    assert not is_better(one, other, "f1")
    assert not is_better({"loss": 1.0, "f1": math.nan}, one, "f1")
    assert not is_better({"loss": math.nan, "f1": 0.9}, one, "f1")


@pytest.mark.parametrize(("select", "kept"), [("loss", "step 5, which has the lowest"), ("last", "step 30, the last")])
def test_the_lowest_loss_or_the_last_weights_can_be_kept(folder, select, kept):
    _, reports = go(folder, Scored(), steps=30, evaluate_every=5, select=select)
    assert f"kept the weights of {kept}" in reports[-1].note


def test_a_run_that_stops_early_says_where_and_why(folder):
    _, reports = go(folder, Scored(), steps=30, evaluate_every=5, select="metric", patience=2)
    said = "stopped early at step 25 of 30: 2 evaluations without a better f1 (training.patience=2)"
    assert reports[-2].note == said


def test_a_resumed_run_keeps_the_same_weights(folder):
    class InterruptedRunError(Exception):
        pass

    def interrupt(report, model):
        if report.step == 22:
            raise InterruptedRunError

    task = Scored()
    settings = {"steps": 30, "evaluate_every": 5, "select": "metric"}
    with pytest.raises(InterruptedRunError):
        go(folder, task, interrupt, **settings)
    _, reports = go(folder, task, **settings)
    assert "kept the weights of step 15" in reports[-1].note


def test_a_task_without_a_main_metric_says_so(folder):
    with pytest.raises(ConfigError, match="training.select=metric: this task has no main metric; wanted loss or last"):
        go(folder, select="metric")


def test_checkpoint_averaging_is_used_when_its_validation_loss_is_lower(folder):
    kept = {}

    def watch(report, model):
        if not report.note:
            kept[report.step] = weights(model)

    class Noisy(Doubling):
        """Each batch has a noisy target: the weights oscillate, and their mean is better than each of them."""

        def loss(self, model, batch):
            target = 2 * batch.inputs
            if model.training:
                target = target + batch.inputs.flip(1) * torch.randn(1)
            return (model(batch.inputs) - target).square().sum()

    settings = {"steps": 60, "learning_rate": 0.2, "schedule": "constant", "average_checkpoints": 4}
    model, reports = go(folder, Noisy(), watch, **settings)
    assert "kept the mean of 4 checkpoints" in reports[-1].note
    mean = sum(kept[step].double() for step in (45, 50, 55, 60)) / 4
    torch.testing.assert_close(weights(model), mean.float())


def test_a_time_limit_ends_the_run(folder):
    _, reports = go(folder, steps=10**6, minutes=0.01)
    assert 1 <= reports[-1].step < 10**6


def test_two_runs_cannot_train_in_one_folder(folder):
    run = RunFolder(folder)
    with run.locked(), pytest.raises(TrainingError, match="another run is training in"), RunFolder(folder).locked():
        pass


def test_a_lock_file_deleted_while_waiting_is_locked_again(folder, monkeypatch):
    """A run has the lock file open while another, which failed to start, deletes it: it locks the new file."""
    flock = fcntl.flock

    def delete_first(file, operation):
        monkeypatch.undo()
        RunFolder(folder).remove_new_run()
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", delete_first)
    with RunFolder(folder).locked(), pytest.raises(TrainingError, match="another run"), RunFolder(folder).locked():
        pass


def test_a_run_terminated_before_its_first_step_leaves_nothing(folder):
    def fail(*_):
        raise AssertionError("nobody handles SIGTERM")

    before = signal.signal(signal.SIGTERM, fail)
    run = RunFolder(folder)
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text("{}")
    try:
        with pytest.raises(SystemExit) as left, run.locked(), run.removed_on_failure():
            os.kill(os.getpid(), signal.SIGTERM)
        assert left.value.code == 128 + signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is fail
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not folder.exists()
