"""Load a model folder as the pipeline of its task."""

import logging
from pathlib import Path
from typing import Any

from regard import checkpoint, huggingface
from regard.errors import ConfigError, FolderError
from regard.huggingface.hub import find
from regard.layers.quantized import quantize
from regard.tasks import TASKS, find_task
from regard.tasks.base import Task

logger = logging.getLogger(__name__)

PRECISIONS = ("float32", "int8")


def load(folder: str | Path, *, precision: str = "float32") -> Any:
    """Verify and load a model: our folder, Hugging Face's as it is, a .gguf file, or a name on the Hugging Face hub.

    Returns the pipeline of the model's task, with `.model`, `.tokenizer` and `.run(input)`: `Translator`,
    `TextGenerator`, `FillMask`, `Classifier`, `Tagger`, `Embedder`, `Captioner`, `ImageTextMatcher`,
    `VisualQuestionAnswering` or `Pointer`. With precision "int8" the weights of the linear layers are quantized to
    8 bits: several times faster on a CPU, slightly less exact.
    """
    return load_with_task(folder, precision=precision)[1]


def load_with_task(folder: str | Path, *, precision: str = "float32") -> tuple[Task, Any]:
    """The model's task, and its pipeline as `load` returns it."""
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}, wanted {' or '.join(PRECISIONS)}")
    path = find(folder)
    if not path.exists():
        raise FolderError(
            f"there is no folder or file {folder}; wanted a model folder, as `regard train … -o FOLDER` makes it, "
            "a .gguf file, or a name on the Hugging Face hub"
        )
    if huggingface.is_foreign(path):
        foreign = huggingface.load(path)
        for note in foreign.notes:
            logger.warning(note)
        task = _task(foreign.task, folder)
        pipeline = task.adopt(foreign)
    else:
        found = checkpoint.load(path)
        task = _task(found.task.get("name"), folder)
        pipeline = task.open(found)
    pipeline.task_name = task.name
    if precision == "int8":
        quantize(pipeline.model)
    return task, pipeline


def _task(name: Any, folder: str | Path) -> Task:
    if not isinstance(name, str) or name not in TASKS:
        raise FolderError(f"{folder}: its task is {name!r}, wanted one of {', '.join(TASKS)}")
    return find_task(name)
