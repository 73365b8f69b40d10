"""Write a model folder in another format."""

from pathlib import Path

from torch import nn

from regard import huggingface
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.huggingface.gguf_export import write_gguf
from regard.tasks.loading import load_with_task

FORMATS = ("huggingface", "gguf")


def export_model(folder: Path, output: Path, to: str | None, precision: str | None) -> list[str]:
    """Write a model in another format, completely or not at all; returns the names of the files.

    Without `to`, the suffix of the output says which: .gguf, or else a Hugging Face folder.
    """
    to = to or ("gguf" if output.suffix == ".gguf" or precision is not None else "huggingface")
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: wanted one of {', '.join(FORMATS)}")
    if to == "gguf":
        return [_export_gguf(folder, output, precision or "float32")]
    if precision is not None:
        raise ConfigError(
            f"--precision {precision} is for --to gguf; a Hugging Face folder has the weights as they are"
        )
    return _export_folder(folder, output)


def _export_folder(folder: Path, output: Path) -> list[str]:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists and is not empty; give a new folder")
    task, pipeline = load_with_task(folder)
    _check_finite(pipeline.model, folder)
    files = huggingface.files(pipeline.kind, pipeline.model, pipeline.tokenizer, **task.export_settings(pipeline))
    write_folder(output.absolute(), files)
    return list(files)


def _export_gguf(folder: Path, output: Path, precision: str) -> str:
    if output.exists():
        raise ConfigError(f"{output} exists; give the name of a new file")
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"there is no folder {output.absolute().parent} for {output.name}; make it first")
    pipeline = load_with_task(folder)[1]
    _check_finite(pipeline.model, folder)
    write_gguf(pipeline.model, pipeline.tokenizer, output.absolute(), precision)
    return output.name


def _check_finite(model: nn.Module, folder: Path) -> None:
    """FolderError for a weight that is NaN or infinite: another library would not say whose fault it is."""
    for name, weight in model.state_dict().items():
        if weight.is_floating_point() and not weight.isfinite().all():
            raise FolderError(
                f"{folder}: weight {name} is not finite: its training diverged, or it is damaged; "
                "export another checkpoint"
            )
