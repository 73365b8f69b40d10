"""Write a model folder in another format."""

from pathlib import Path

from regard import huggingface
from regard.errors import ConfigError
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
    files = huggingface.files(pipeline.kind, pipeline.model, pipeline.tokenizer, **task.export_settings(pipeline))
    write_folder(output.absolute(), files)
    return list(files)
