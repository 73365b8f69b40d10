"""The log of a run: metrics.jsonl and TensorBoard's events, also on a disk that fails."""

import errno
import io
import json
import threading
from contextlib import closing

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from regard.errors import FolderError
from regard.training.log import Log


@pytest.fixture
def full_disk(monkeypatch):
    """Let every write to a file whose name has this part fail."""

    def fill(part: str) -> None:
        real = io.open

        class Full(io.FileIO):
            def write(self, data):
                raise OSError(errno.ENOSPC, "No space left on device")

        def opened(path, mode="r", *others, **named):
            if part not in str(path) or "r" in mode:
                return real(path, mode, *others, **named)
            file = io.BufferedWriter(Full(path, mode.replace("b", "")))
            return file if "b" in mode else io.TextIOWrapper(file, encoding="utf-8")

        monkeypatch.setattr(io, "open", opened)
        monkeypatch.setattr("builtins.open", opened)

    return fill


def scalars(folder, name):
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(event.step, round(event.value, 3)) for event in events.Scalars(name)]


def test_tensorboard_has_the_metrics(tmp_path):
    with closing(Log(tmp_path, 0)) as log:
        log.write(10, {"loss": 2.5, "skipped": True})
        log.write(20, {"loss": 1.5})
    assert scalars(tmp_path, "loss") == [(10, 2.5), (20, 1.5)]


def test_a_resumed_run_replaces_the_events_after_its_checkpoint(tmp_path):
    with closing(Log(tmp_path, 0)) as log:
        log.write(10, {"loss": 2.5})
        log.write(20, {"loss": 1.5})
    with closing(Log(tmp_path, 10)) as log:
        log.write(20, {"loss": 1.25})
    assert scalars(tmp_path, "loss") == [(10, 2.5), (20, 1.25)]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 1.25}]


def test_training_goes_on_without_tensorboard_where_its_file_cannot_be_written(tmp_path, full_disk, caplog, capsys):
    full_disk("tfevents")
    threads = threading.active_count()
    with closing(Log(tmp_path, 0)) as log:
        log.write(10, {"loss": 2.5})
        log.write(20, {"loss": 1.5})
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot write {tmp_path}/tensorboard: No space left on device; training goes on without TensorBoard"
    ]
    assert threading.active_count() == threads
    assert "Traceback" not in capsys.readouterr().err


def test_metrics_that_cannot_be_written_are_one_line(tmp_path, full_disk):
    full_disk("metrics.jsonl")
    named = f"cannot write {tmp_path}/metrics.jsonl: No space left on device; "
    with pytest.raises(FolderError, match=named), closing(Log(tmp_path, 0)) as log:
        log.write(10, {"loss": 2.5})


@pytest.mark.parametrize("damage", [b"\xff\n", b"[]\n", b"7\n", b'{"step": "7"}\n', b'{"loss": 1'])
def test_a_damaged_line_of_metrics_is_dropped(tmp_path, damage):
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 10}\n' + damage)
    Log(tmp_path, 10).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b'{"step": 10}\n'
