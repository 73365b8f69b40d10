"""Score language models on text: the user's, or what a run held out. A window of text is in memory at a time."""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from regard.checkpoint import SETTINGS
from regard.data.cutting import Piece
from regard.data.documents import read_documents
from regard.data.pairs import BadLines
from regard.data.python_docs import PythonDocs
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.errors import DataError
from regard.files import read_json
from regard.running.writer import Writer
from regard.tasks.language_modeling import surprise

ROWS = 8  # windows side by side
LOGITS = 2**24  # numbers in memory at a time
LONGEST = 2048  # tokens of a window, where the model sees more


def score_text(writer: Writer, folder: Path, paths: Sequence[Path], *, most: int | None = None) -> dict[str, Any]:
    """Loss, perplexity and bits a byte on the text of these files, or on what the folder's run held out.

    Documents follow one another with the end symbol between them, as in training, in windows as long as the model sees;
    of `most` only the first so many tokens.
    """
    bad = BadLines()
    pieces = read_documents(paths, on_error="skip", report=bad) if paths else _heldout(folder)
    return score_pieces(writer, pieces, most=most) | ({"bad_lines": bad.summary()} if bad.count else {})


def score_pieces(writer: Writer, pieces: Iterator[Piece], *, most: int | None = None) -> dict[str, Any]:
    """The same on documents in pieces."""
    reader = _Reader(writer, pieces)
    total, tokens, begun = 0.0, 0, time.perf_counter()
    for window in reader.windows(min(writer.context, LONGEST), math.inf if most is None else most):
        total += _surprise(writer.model, window)
        tokens += window[:, 1:].numel()
    if not tokens:
        raise DataError("one token of text or none; wanted at least two, so that one can be foretold")
    text_bytes = round(reader.bytes * (tokens + 1) / reader.tokens)  # all of them, or the share that was scored
    return {
        "tokens": tokens,
        "bytes": text_bytes,
        "loss": total / tokens,
        **surprise(total / tokens, tokens=tokens, text_bytes=text_bytes),
        "tokens_per_second": tokens / (time.perf_counter() - begun),
    }


@torch.inference_mode()
def _surprise(model: Any, window: torch.Tensor) -> float:
    """Summed cross-entropy of a window (B, T + 1), by the model's own logits, some at a time."""
    words, truth = model.read(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten()
    rows = max(1, LOGITS // model.config.vocabulary)
    pairs = zip(words.split(rows), truth.split(rows), strict=True)
    return sum(F.cross_entropy(model.logits(some), wanted, reduction="sum").item() for some, wanted in pairs)


class _Reader:
    """Text as windows of tokens, and how much was read."""

    def __init__(self, writer: Writer, pieces: Iterator[Piece]) -> None:
        self._tokenizer = writer.tokenizer
        self._pieces = pieces
        self.tokens = self.bytes = 0

    def windows(self, context: int, most: float) -> Iterator[torch.Tensor]:
        """Ids (B, T + 1), each window beginning with the last token of the one before; the last may be shorter."""
        ids: list[int] = []
        for piece in self._pieces:
            new = self._tokenizer.encode(piece.text)
            if piece.last and self._tokenizer.end is not None:
                new.append(self._tokenizer.end)
            ids += new
            self.tokens += len(new)
            self.bytes += len(piece.text.encode())
            start, several = 0, ROWS * context
            while len(ids) - start > several and most >= several:
                yield _folded(ids[start : start + several + 1], context)
                start, most = start + several, most - several
            ids = ids[start:]
            if len(ids) > most:
                break
        ids = ids[: int(min(most, len(ids))) + 1]
        if whole := (len(ids) - 1) // context * context:
            yield _folded(ids[: whole + 1], context)
        if len(ids) - whole > 1:
            yield torch.tensor([ids[whole:]])


def _folded(ids: list[int], context: int) -> torch.Tensor:
    row = torch.tensor(ids)
    return row.unfold(0, context + 1, context)


def _heldout(folder: Path) -> Iterator[Piece]:
    if not (folder / SETTINGS).is_file():
        raise DataError(f"{folder} has no {SETTINGS}, so nothing was held out from it; name the text to score it on")
    settings = read_json(folder / SETTINGS)
    config = TextDataConfig.model_validate(settings["settings"]["data"])
    paths = [Path(path) for path in settings["data"]]
    return (TextCorpus(paths, config) if paths else PythonDocs(config)).heldout()
