"""A model folder as something that runs: `load` gives an object with `.model`, `.tokenizer` and `.run(input)`."""

import logging
from pathlib import Path
from typing import Any

from regard import checkpoint, huggingface
from regard.errors import ConfigError, FolderError
from regard.huggingface.hub import find
from regard.layers.quantized import quantize
from regard.tasks.captioning.pipeline import Captioner
from regard.tasks.classification.pipeline import Classifier
from regard.tasks.embedding.pipeline import Embedder
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.masked_lm.pipeline import FillMask
from regard.tasks.tagging.pipeline import Tagger
from regard.tasks.translation.pipeline import Translator
from regard.tasks.vision_language.pipeline import ImageTextMatcher, Pointer, VisualQuestionAnswering

logger = logging.getLogger(__name__)

# The name of a task -> what runs a model trained on it.
RUNNERS: dict[str, Any] = {
    "translation": Translator,
    "language": TextGenerator,
    "encoding": Embedder,
    "masked": FillMask,
    "classification": Classifier,
    "tagging": Tagger,
    "captioning": Captioner,
    "image-text": ImageTextMatcher,
    "matching": ImageTextMatcher,
    "picture-questions": VisualQuestionAnswering,
    "pointing": Pointer,
}
PRECISIONS = ("float32", "int8")


def load(folder: str | Path, *, precision: str = "float32") -> Any:
    """Verify and load a model: our folder, Hugging Face's as it is, a .gguf file, or a name on the Hugging Face hub.

    Returns the pipeline of the model's task: `Translator`, `TextGenerator`, `FillMask`, `Classifier`, `Tagger`,
    `Embedder`, `Captioner`, `ImageTextMatcher`, `VisualQuestionAnswering` or `Pointer`. With precision "int8" the
    weights of the linear layers are quantized to 8 bits: several times faster on a CPU, slightly less exact.
    """
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}, wanted {' or '.join(PRECISIONS)}")
    runner = _load(folder)
    if precision == "int8":
        quantize(runner.model)
    return runner


def _load(folder: str | Path) -> Any:
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
        return _runner(foreign.task, folder).adopt(foreign)
    found = checkpoint.load(path)
    return _runner(found.task.get("name"), folder).open(found)


def _runner(task: Any, folder: str | Path) -> Any:
    if task not in RUNNERS:
        raise FolderError(f"{folder}: its task is {task!r}, wanted one of {', '.join(RUNNERS)}")
    return RUNNERS[task]
