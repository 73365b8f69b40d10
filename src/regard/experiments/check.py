"""Check the laws on a model folder, or on a module of the user's own."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

from regard.errors import InputError, RegardError
from regard.experiments.adapters import ModelAdapter, adapter_of
from regard.experiments.laws import Finding, check
from regard.runtime import Runtime
from regard.tasks.loading import load_with_task


def check_model(model: Path, runtime: Runtime | None = None) -> Iterator[Finding]:
    """Findings for a model folder, or for a Python file whose `adapter()` returns a ModelAdapter."""
    if model.suffix != ".py":
        yield from check(adapter_of(load_with_task(model, runtime=runtime)[1].model))
        return
    try:
        yield from check(_from_file(model))
    except RegardError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise InputError(f"{model}: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> ModelAdapter:
    if not path.is_file():
        raise InputError(f"{path} is not a file; wanted a model folder, or a Python file with a function adapter()")
    sys.path.insert(0, str(path.absolute().parent))  # it may import files next to it
    make = runpy.run_path(str(path)).get("adapter")
    made = make() if callable(make) else None
    if not isinstance(made, ModelAdapter):
        raise InputError(
            f"{path}: wanted a function adapter() that returns a ModelAdapter of regard.experiments.laws, "
            f"got {type(made).__name__}"
        )
    return made
