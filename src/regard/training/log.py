"""The log of a run: metrics.jsonl, one line a report, and the same for TensorBoard."""

import json
import math
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from regard.files import write_file

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"


class Log:
    """Appends to the metrics of a run. A resumed run first deletes the lines after its checkpoint."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / METRICS
        _delete_after(self.path, step)
        self._file = self.path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder / TENSORBOARD), purge_step=step + 1 if step else None)

    def write(self, step: int, values: dict[str, Any]) -> None:
        self._file.write(
            json.dumps({"step": step} | {name: _json_value(value) for name, value in values.items()}) + "\n"
        )
        self._file.flush()
        for name, value in values.items():
            if isinstance(value, int | float):
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        self._file.close()
        self._board.close()


def _json_value(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are written as strings."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _delete_after(path: Path, step: int) -> None:
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError):
            continue  # a partial line of a run that was killed while writing
    write_file(path, "".join(f"{line}\n" for line in kept).encode())
