"""The laws, held against a model folder or against a module of the user's own."""

import runpy
from collections.abc import Iterator
from pathlib import Path

from regard.errors import InputError
from regard.evaluation.laws import Finding, Subject, check
from regard.running import load


def check_model(model: Path) -> Iterator[Finding]:
    """Findings for a model folder, or for a Python file whose `subject()` gives a Subject."""
    return check(_from_file(model) if model.suffix == ".py" else _from_folder(model))


def _from_folder(folder: Path) -> Subject:
    found = load(folder).model
    config = found.config
    return Subject(
        found, vocabulary=config.vocabulary, target_vocabulary=config.target_vocabulary, symbols=config.symbols
    )


def _from_file(path: Path) -> Subject:
    if not path.is_file():
        raise InputError(f"{path} is not a file; wanted a model folder, or a Python file with a function subject()")
    make = runpy.run_path(str(path)).get("subject")
    made = make() if callable(make) else None
    if not isinstance(made, Subject):
        raise InputError(
            f"{path}: wanted a function subject() that gives a Subject of regard.evaluation.laws, "
            f"got {type(made).__name__}"
        )
    return made
