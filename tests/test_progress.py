"""Progress outside a terminal: a line after each evaluation, and one every thirty seconds."""

import pytest

from regard.progress import follow
from regard.training.loop import Report


@pytest.mark.parametrize(
    ("seconds", "evaluated", "written"),
    [
        ([1, 2, 29, 31, 32, 60, 62, 63, 64], (), [4, 7]),
        ([1, 2, 3, 32, 33, 34, 63, 64], (3,), [3, 5, 7]),
        ([100, 200, 300], (), [1, 2, 3]),
    ],
)
def test_a_line_comes_by_time_not_by_steps(capsys, seconds, evaluated, written):
    now = 0.0

    def reports():
        nonlocal now
        validation: dict[str, float] = {}
        for step, second in enumerate(seconds, 1):
            now = second
            validation = {"loss": 1.0} if step in evaluated else validation
            yield Report(step, loss=1.0, steps=9, validation=validation)

    follow(reports(), clock=lambda: now)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"step {step} of 9" for step in written]
