"""Write a model folder in another format."""

from pathlib import Path

from torch import nn

from regard import huggingface
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.tasks.loading import load_with_task

FORMATS = ("huggingface",)


def export_folder(folder: Path, output: Path, to: str) -> list[str]:
    """Write `folder` as `output`, completely or not at all; returns the names of the files."""
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: wanted one of {', '.join(FORMATS)}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists and is not empty; give a new folder")
    task, pipeline = load_with_task(folder)
    _check_finite(pipeline.model, folder)
    files = huggingface.files(pipeline.kind, pipeline.model, pipeline.tokenizer, **task.export_settings(pipeline))
    write_folder(output.absolute(), files)
    return list(files)


def _check_finite(model: nn.Module, folder: Path) -> None:
    """FolderError for a weight that is NaN or infinite: another library would not say whose fault it is."""
    for name, weight in model.state_dict().items():
        if weight.is_floating_point() and not weight.isfinite().all():
            raise FolderError(
                f"{folder}: weight {name} is not finite: its training diverged, or it is damaged; "
                "export another checkpoint"
            )
