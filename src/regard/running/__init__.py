"""A model folder as something that runs: `load` gives an object with `.model`, `.tokenizer` and `.run(input)`."""

from pathlib import Path

from regard import checkpoint
from regard.errors import FolderError
from regard.running.translator import Translator

# The name of a task -> what runs a model trained on it.
RUNNERS = {
    "translation": Translator,
}


def load(folder: str | Path) -> Translator:
    """Verify and load a model folder."""
    found = checkpoint.load(Path(folder))
    task = found.task.get("name")
    if task not in RUNNERS:
        raise FolderError(f"{folder}: its task is {task!r}, wanted one of {', '.join(RUNNERS)}")
    return RUNNERS[task].open(found)
