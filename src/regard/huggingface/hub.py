"""Names on the Hugging Face hub, such as Helsinki-NLP/opus-mt-en-es: downloaded once, kept in its cache."""

import re
from pathlib import Path

from regard.errors import FolderError
from regard.huggingface.folder import pickle_error

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
TOKENIZER = ["*.json", "*.jinja", "merges.txt", "vocab.txt", "*.spm"]
WANTED = [*TOKENIZER, "*.safetensors"]  # no pickles


def find(folder: str | Path, *, tokenizer_only: bool = False) -> Path:
    """The folder if it exists; a name on the hub is downloaded, with `tokenizer_only` without its weights."""
    path = Path(folder)
    if path.exists() or not NAME.fullmatch(str(folder)) or path.parent.exists() or path.parts[0] == "runs":
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise FolderError(
            f"{folder} is not a folder here; to fetch it from the Hugging Face hub: pip install 'regard[hub]'"
        ) from None
    try:
        found = Path(snapshot_download(str(folder), allow_patterns=TOKENIZER if tokenizer_only else WANTED))
    except Exception as error:  # the library's errors are of many kinds: offline, no such name, not allowed
        reason = " ".join(str(error).split())[:200]
        raise FolderError(
            f"{folder} is not a folder here, and the Hugging Face hub did not give it ({reason}); "
            "check the name and the connection"
        ) from error
    if not tokenizer_only and not any(found.glob("*.safetensors")):
        raise pickle_error(str(folder), found, path.name)
    return found
