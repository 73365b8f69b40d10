"""In place of the tokenizer of a folder that has none: the model can be used with ids, and text is an error."""

from pathlib import Path
from typing import Any

from regard.errors import FolderError


class MissingTokenizer:
    """Has the special ids that the folder's config.json says; whatever needs a tokenizer raises `error`."""

    def __init__(self, error: FolderError, vocab_size: int, **ids: int | None) -> None:
        self.error = error
        self.vocab_size = vocab_size
        self.ids = ids

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("error", "vocab_size", "ids"):  # copied or pickled, not yet made
            raise AttributeError(name)
        if name in self.ids:
            return self.ids[name]
        raise FolderError(f"{self.error}. The model opens without it, for ids: pipeline.model(ids)")


def has_tokenizer(folder: Path, *wanted: str) -> bool:
    """Whether a folder has one of these files."""
    return any((folder / name).is_file() for name in wanted)
