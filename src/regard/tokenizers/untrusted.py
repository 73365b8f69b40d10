"""Read a tokenizer.json that somebody else made.

The tokenizer library trusts its file: some settings make it panic, loop or allocate without bound when a text comes. A
file made of the common components with ordinary settings is read as it is. Any other is first tried on a few texts in
a child process with bounds on time and memory (regard.sandbox); what fails there is refused with one line.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers

from regard.errors import FolderError
from regard.sandbox import LimitError, Worker

MAX_SECONDS = 4.0
MAX_MEGABYTES = 768
MAX_BYTES = 1_000_000
MAX_STRIP = 16  # characters a decoder may strip: Llama strips one
COMMON = {
    "normalizer": {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer"},
    "pre_tokenizer": {
        "ByteLevel",
        "Whitespace",
        "WhitespaceSplit",
        "BertPreTokenizer",
        "Metaspace",
        "Digits",
        "Punctuation",
    },
    "post_processor": {"ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing"},
    "decoder": {"ByteLevel", "WordPiece", "Metaspace", "Fuse", "ByteFallback", "BPEDecoder", "Strip"},
}
# The key under which a Sequence of such components lists them.
SEQUENCES = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}


def read_tokenizer(source: Path | str | bytes) -> tokenizers.Tokenizer:
    """The tokenizer of a tokenizer.json, from its path or its bytes. FolderError: it cannot be read, or is refused."""
    name = "the tokenizer" if isinstance(source, bytes) else source
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        text = content.decode()
        common = is_common(json.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(name, error) from error
    if not common:
        _try_out(text, name)
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception for a file it cannot read
        raise _unreadable(name, error) from error


def is_common(content: Any) -> bool:
    """Whether a parsed tokenizer.json consists of common components with ordinary settings."""
    if not isinstance(content, dict) or content.get("truncation") or content.get("padding"):
        return False
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(
        isinstance(token, dict) and _is_name(token.get("content")) for token in added
    ):
        return False
    return _is_common_model(content.get("model")) and all(
        _is_common_part(kind, part) for kind in COMMON for part in _parts(content.get(kind), SEQUENCES[kind])
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_common_model(model: Any) -> bool:
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        return False  # Unigram has a list: tried out
    if model.get("dropout"):
        return False
    unknown = model.get("unk_token")
    named = _is_name(unknown) and unknown in model["vocab"]
    if model.get("type") == "BPE":
        return unknown is None or named
    return model.get("type") == "WordPiece" and named  # without a type the library guesses


def _is_common_part(kind: str, part: Any) -> bool:
    if not isinstance(part, dict) or not _is_name(part.get("type")) or part["type"] not in COMMON[kind]:
        return False
    if part["type"] == "Strip":
        return all(isinstance(part.get(side), int) and part[side] <= MAX_STRIP for side in ("start", "stop"))
    if part["type"] == "TemplateProcessing":
        return _is_common_template(part)
    return True


def _is_common_template(part: dict[str, Any]) -> bool:
    """Whether every special token that a template names is one of those it lists."""
    known, sides = part.get("special_tokens"), [part.get(side) or [] for side in ("single", "pair")]
    if not isinstance(known, dict) or not all(isinstance(side, list) for side in sides):
        return False
    specials = [
        piece["SpecialToken"] for side in sides for piece in side if isinstance(piece, dict) and "SpecialToken" in piece
    ]
    return all(isinstance(one, dict) and _is_name(one.get("id")) and one["id"] in known for one in specials)


def _parts(part: Any, key: str) -> Iterable[Any]:
    """A component, or the components of a sequence; none where there is no component."""
    if part is None:
        return []
    if isinstance(part, dict) and part.get("type") == "Sequence" and isinstance(part.get(key), list):
        return part[key]
    return [part]


def _try_out(text: str, name: object) -> None:
    try:
        failure = _worker().ask(text)["failure"]
    except LimitError as error:
        failure = f"it {error} on a short text"
    if failure:
        raise FolderError(f"{name}: cannot be read as a tokenizer.json ({' '.join(failure.split())}); copy it again")


@cache
def _worker() -> Worker:
    script = Path(__file__).parent / "workers" / "try_tokenizer.py"
    return Worker(script, seconds=MAX_SECONDS, megabytes=MAX_MEGABYTES, max_bytes=MAX_BYTES)


def _unreadable(name: object, error: Exception) -> FolderError:
    reason = " ".join(str(error).split())[:200]
    return FolderError(f"{name}: cannot be read as a tokenizer.json ({reason}); copy it again")
