"""A model folder as something that runs: `load` gives an object with `.model`, `.tokenizer` and `.run(input)`."""

import logging
from pathlib import Path

from regard import checkpoint, huggingface
from regard.errors import FolderError
from regard.huggingface.hub import find
from regard.running.translator import Translator

logger = logging.getLogger(__name__)

# The name of a task -> what runs a model trained on it.
RUNNERS = {
    "translation": Translator,
}


def load(folder: str | Path) -> Translator:
    """Verify and load a model folder: ours, a Hugging Face folder as it is, or a name on the Hugging Face hub."""
    path = find(folder)
    if huggingface.is_foreign(path):
        foreign = huggingface.load(path)
        for note in foreign.notes:
            logger.warning(note)
        return RUNNERS[foreign.task].adopt(foreign)
    found = checkpoint.load(path)
    task = found.task.get("name")
    if task not in RUNNERS:
        raise FolderError(f"{folder}: its task is {task!r}, wanted one of {', '.join(RUNNERS)}")
    return RUNNERS[task].open(found)
