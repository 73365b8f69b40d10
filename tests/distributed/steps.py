"""Run by torchrun: the losses of the first steps of some recipes, of one process and of all together.

python -m tests.distributed.steps OUT.json STEPS CASE… -- NAME=PATH…      (the fixtures with data)
"""

import json
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from regard import processes
from regard.data.batches import DataPosition
from regard.runtime import Runtime, prepare, seed_everything
from regard.training.loop import make_scaler, take_parallel_step
from regard.training.optimizer import make_optimizers
from regard.training.parallel import Parallel
from tests.devices import prepared

ACCUMULATED = 2


def losses(case: prepared.Case, task: Any, model: Any, runtime: Runtime, mode: Any, steps: int) -> list[float]:
    """The losses of so many steps, and then the validation loss."""
    model.train()
    parallel = Parallel(model, task, runtime, mode)
    optimizers = make_optimizers(model, kind="muon", weight_decay=0.01)
    scaler, found = make_scaler(runtime), []
    batches = task.training_batches(max_tokens=case.max_tokens, seed=1, start=DataPosition(0, 0))
    shares = parallel.shares(batches, case.max_tokens)
    for step in range(steps):
        several = [next(shares)[1] for _ in range(ACCUMULATED)]
        seed_everything(1, step)
        found.append(take_parallel_step(parallel, optimizers, several, 1e-3, 1.0, scaler)[0])
    found.append(parallel.validation_loss(task.validation_batches(max_tokens=case.max_tokens)))
    return found


def main() -> None:
    out, steps, *words = sys.argv[1:]
    names, data = words[: words.index("--")], dict(word.split("=", 1) for word in words[words.index("--") + 1 :])
    runtime, found = prepare("cpu"), {}
    made = {}
    for case in (one for one in prepared.CASES if one.name in names):
        with processes.main_first(case.name):
            ready = prepared.prepare(case, Path(out).parent / case.name, [Path(data[case.data])] if case.data else [])
        made[case.name] = (case, ready)
        found[case.name] = {"one": losses(case, ready.task, deepcopy(ready.model), Runtime(), "ddp", int(steps))}
    processes.start(runtime, seconds=600)
    for name, (case, ready) in made.items():
        for mode in ("ddp", "fsdp"):
            found[name][mode] = losses(case, ready.task, deepcopy(ready.model), runtime, mode, int(steps))
    if runtime.is_main:
        Path(out).write_text(json.dumps(found))
    processes.stop()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
