"""Score language models on text: the user's, or what a run held out. A window of text is in memory at a time."""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.data.batches import IGNORE_INDEX
from regard.data.chunking import TextChunk
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.readers.python_docs import PythonDocs
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.errors import DataError
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.language_modeling.task import surprise
from regard.tasks.run_settings import Reading, held_out_of, settings_of, told
from regard.tokenizers.text import TextTokenizer

ROWS = 8  # windows side by side
LOGITS = 2**24  # numbers in memory at a time
LONGEST = 2048  # tokens of a window, where the model sees more


class TextReading(Reading):
    """How text to be scored is read."""

    field: str = Field("text", min_length=1, description="where a JSON line or a Parquet row has its text")


def score_text(
    writer: TextGenerator,
    folder: Path,
    paths: Sequence[Path],
    *,
    most: int | None = None,
    assignments: Sequence[str] = (),
) -> dict[str, Any]:
    """Loss, perplexity and bits a byte on the text of these files, or on what the folder's run held out.

    Documents follow one another as in training, the end symbol between them, in windows as long as the model sees, but
    no longer than 2,048 tokens; of `most` only the first so many tokens. A run's own settings say where a line has its
    text, unless the assignments do, and whether documents see each other.
    """
    bad = BadRows()
    run = settings_of(folder) if paths else held_out_of(folder, "the text to score it on")
    config = TextDataConfig() if run is None else TextDataConfig.model_validate(run.settings["data"])
    if paths or run is None:
        reading = told(TextReading(field=config.field), assignments)
        pieces = read_documents(paths, field=reading.field, on_error=reading.on_error, report=bad)
    else:
        pieces = (TextCorpus(run.data, config) if run.data else PythonDocs(config)).validation()
    scores = score_pieces(writer, pieces, most=most, apart=config.separate_documents)
    return scores | ({"bad_lines": bad.summary()} if bad.count else {})


def score_pieces(
    writer: TextGenerator, pieces: Iterator[TextChunk], *, most: int | None = None, apart: bool = False
) -> dict[str, Any]:
    """The same on documents in pieces; `apart`: attention stays inside each, and its first token is no target."""
    reader = _Reader(writer.tokenizer, pieces, apart)
    context = min(writer.context, LONGEST)
    total, tokens, spelled, begun = 0.0, 0, 0, time.perf_counter()
    for window in reader.windows(context, math.inf if most is None else most):
        ids, asked, documents = window  # (B, T + 1) each
        segment_ids = documents[:, :-1] - documents[:, :1] + 1 if apart else None
        targets = ids[:, 1:].masked_fill(asked[:, 1:] == 0, IGNORE_INDEX)
        total += _surprise(writer.model, ids[:, :-1], targets, segment_ids)
        scored = targets[targets != IGNORE_INDEX]
        tokens += len(scored)
        spelled += reader.spelled(scored)
    if not tokens:
        raise DataError("one token of text or none; wanted at least two, so that one can be foretold")
    # Exact where tokens spell the text as it is; else the share of it that these tokens spell.
    text_bytes = round(reader.bytes * spelled / reader.spelled_bytes) if spelled else 0
    other = surprise(total / tokens, tokens=tokens, text_bytes=max(1, text_bytes))
    if not text_bytes:
        del other["bits_per_byte"]  # nothing but an end was foretold
    return {
        "tokens": tokens,
        "bytes": text_bytes,
        "window": context,
        "loss": total / tokens,
        **other,
        "tokens_per_second": tokens / (time.perf_counter() - begun),
    }


@torch.inference_mode()
def _surprise(model: Any, ids: Tensor, targets: Tensor, segment_ids: Tensor | None) -> float:
    """Summed cross-entropy of the targets (B, T), by the model's own logits, some at a time."""
    words, truth = model.read(ids, segment_ids).flatten(0, 1), targets.flatten()
    rows = max(1, LOGITS // model.config.vocab_size)
    pairs = zip(words.split(rows), truth.split(rows), strict=True)
    return sum(
        F.cross_entropy(model.logits(some), wanted, ignore_index=IGNORE_INDEX, reduction="sum").item()
        for some, wanted in pairs
    )


class _Reader:
    """Text as windows of tokens, and how much was read."""

    def __init__(self, tokenizer: TextTokenizer, pieces: Iterator[TextChunk], apart: bool) -> None:
        self._tokenizer = tokenizer
        self._leading = tokenizer.prepended_bos_id
        self._pieces = pieces
        self._apart = apart
        self._lengths = torch.tensor([len(tokenizer.token_bytes.of(number)) for number in range(tokenizer.vocab_size)])
        self._document, self._begins = 0, True
        self.bytes = self.spelled_bytes = 0

    def spelled(self, ids: Tensor) -> int:
        """The bytes that these tokens spell."""
        return int(self._lengths[ids].sum())

    def windows(self, context: int, most: float) -> Iterator[Tensor]:
        """(3, B, T + 1): ids, whether each may be a target, the number of its document.

        Each window begins with the last token of the one before; the last may be shorter.
        """
        row = torch.empty(3, 0, dtype=torch.int64)
        for piece in self._pieces:
            row = torch.cat([row, self._tokens(piece)], dim=1)
            start, several = 0, ROWS * context
            while row.shape[1] - start > several and most >= several:
                yield _folded(row[:, start : start + several + 1], context)
                start, most = start + several, most - several
            row = row[:, start:]
            if row.shape[1] > most:
                break
        row = row[:, : int(min(most, row.shape[1])) + 1]
        if whole := max(0, row.shape[1] - 1) // context * context:
            yield _folded(row[:, : whole + 1], context)
        if row.shape[1] - whole > 1:
            yield row[:, None, whole:]

    def _tokens(self, piece: TextChunk) -> Tensor:
        """A piece as (3, T). The begin symbol, where the model wants it, is given, never asked for."""
        ids = self._tokenizer.encode(piece.text)
        self.bytes += len(piece.text.encode())
        self.spelled_bytes += self.spelled(torch.tensor(ids, dtype=torch.int64))
        given = self._begins and (self._leading is not None or self._apart)
        if self._begins and self._leading is not None:
            ids = [self._leading, *ids]
        if piece.is_last and not piece.is_truncated and self._tokenizer.eos_id is not None:
            ids.append(self._tokenizer.eos_id)
        found = torch.tensor([ids, [1] * len(ids), [self._document] * len(ids)])
        if given:
            found[1, :1] = 0
        self._begins = piece.is_last
        self._document += piece.is_last
        return found


def _folded(row: Tensor, context: int) -> Tensor:
    return row.unfold(1, context + 1, context)
