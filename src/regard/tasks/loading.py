"""Load a model folder as the pipeline of its task."""

import logging
from pathlib import Path
from typing import Any

import torch

from regard import checkpoint, extensions, huggingface
from regard.errors import ConfigError, FolderError
from regard.layers.low_precision import lower_precision
from regard.layers.quantized import pack_layers, quantize
from regard.ops.packed import packed_is_supported
from regard.runtime import HOST, Runtime, find_device, find_dtype
from regard.tasks import TASKS, find_task, is_task
from regard.tasks.base import Task
from regard.tasks.model_paths import find_model

logger = logging.getLogger(__name__)

PRECISIONS = ("stored", "float32", "int8", "int4")
QUANTIZED = ("int8", "int4")  # by kernels of the CPU


def load(
    folder: str | Path,
    *,
    precision: str = "float32",
    device: str = "cpu",
    dtype: str = "float32",
    trust: bool = False,
) -> Any:
    """Verify and load a model: our folder, Hugging Face's as it is, a .gguf file, or a name on the Hugging Face hub.

    Returns the pipeline of the model's task, with `.model`, `.tokenizer` and `.run(input)`: `Translator`,
    `TextGenerator`, `FillMask`, `Classifier`, `Tagger`, `Embedder`, `Captioner`, `ImageTextMatcher`,
    `VisualQuestionAnswering` or `Pointer`. `precision` is that of the weights: float32; int8 or int4, several times
    faster on a CPU and less exact; or stored, which keeps the quantized blocks of a GGUF file. `device` is where it
    computes: auto, cpu, cuda, cuda:1, mps or xpu; `dtype` float32, bfloat16 or float16. `trust` runs
    the code of a model of somebody's own, which its folder brings; without it such a folder is an error.
    """
    if trust:
        extensions.trust(Path(folder))
    runtime = Runtime(found := find_device(device), find_dtype(dtype, found))
    return load_with_task(folder, precision=precision, runtime=runtime)[1]


def load_with_task(
    folder: str | Path, *, precision: str = "float32", runtime: Runtime | None = None
) -> tuple[Task, Any]:
    """The model's task, and its pipeline as `load` returns it."""
    runtime = runtime or Runtime()
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}, wanted one of {', '.join(PRECISIONS)}")
    on_cpu = runtime.device == HOST and runtime.dtype is torch.float32
    if precision in QUANTIZED and not on_cpu:
        raise ConfigError(
            f"precision {precision} computes on the CPU, beside float32; got device {runtime.device} and dtype "
            f"{runtime.dtype_name}; leave them out, or {precision}"
        )
    path = find_model(folder)
    if huggingface.is_foreign(path):
        foreign = huggingface.load(path, packed=precision == "stored" and on_cpu)
        for note in foreign.notes:
            logger.warning(note)
        task = _task(foreign.task, folder)
        pipeline = task.adopt(foreign)
    else:
        found = checkpoint.load(path)
        _note_changed_code(path)
        task = _task(found.task.get("name"), folder)
        pipeline = task.open(found)
    pipeline.task_name = task.name
    if precision in QUANTIZED:
        _quantize(pipeline.model, precision)
    pipeline.model.to(runtime.device)
    if runtime.dtype is not torch.float32:
        lower_precision(pipeline.model, runtime)
    return task, pipeline


def _quantize(model: Any, precision: str) -> None:
    """Language models decode from packed blocks; other models have int8 with a scale per row."""
    if precision == "int4" or (model.interface == "causal_lm" and packed_is_supported()):
        pack_layers(model, 4 if precision == "int4" else 8)
    else:
        quantize(model)


def _note_changed_code(folder: Path) -> None:
    """A note if the file that this folder's code was copied from has other contents now."""
    settings = folder / checkpoint.SETTINGS
    source = checkpoint.read_settings(settings).get("source") if settings.is_file() else None
    if source is not None and (changed := extensions.changed_since(folder, source)):
        logger.warning(changed)


def _task(name: Any, folder: str | Path) -> Task:
    if not isinstance(name, str) or not is_task(name):
        raise FolderError(f"{folder}: its task is {name!r}, wanted one of {', '.join(TASKS)}")
    return find_task(name)
