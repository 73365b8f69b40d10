"""A model folder written for other programs."""

from pathlib import Path
from typing import Any

from regard import huggingface
from regard.errors import ConfigError
from regard.files import write_folder
from regard.generation import Beam
from regard.tasks.embedding.pipeline import Embedder
from regard.tasks.loading import load
from regard.tasks.translation.pipeline import Translator

FORMATS = ("huggingface",)


def export_folder(folder: Path, output: Path, to: str) -> list[str]:
    """Write `folder` as `output`, whole or not at all; the names of the files."""
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: wanted one of {', '.join(FORMATS)}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists and is not empty; give a new folder")
    model = load(folder)
    files = huggingface.files(model.kind, model.model, model.tokenizer, **_settings(model))
    write_folder(output.absolute(), files)
    return list(files)


def _settings(model: Any) -> dict[str, Any]:
    """What a folder says beside its weights: how a translator searches, how an encoder pools."""
    if isinstance(model, Embedder):  # with a head it is there for something else
        return {"pooling": model.pooling} if model.kind == "bert" else {}
    if not isinstance(model, Translator):
        return {}
    beam = model.strategy if isinstance(model.strategy, Beam) else Beam(1)
    return {
        "beams": beam.num_beams,
        "length_penalty": beam.length_penalty,
        "longest": model.longest,
        "closed": model.closed,
        "renormalized": model.renormalized,
    }
