"""Evaluate a language model on text. A few windows of text are in memory at a time."""

import math
import time
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batches import IGNORE_INDEX
from regard.data.chunking import TextChunk
from regard.data.readers.bad_rows import BadRows
from regard.data.readers.documents import read_documents
from regard.data.readers.python_docs import PythonDocs
from regard.data.text_corpus import TextCorpus, TextDataConfig
from regard.errors import DataError
from regard.runtime import runtime_of
from regard.tasks.base import EvaluationRequest
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.language_modeling.task import loss_metrics
from regard.tasks.run_settings import TextReadingConfig, override_reading, read_run_settings, validation_of
from regard.tokenizers.text import TextTokenizer

BATCH_SIZE = 8  # windows in a batch
MAX_LOGITS = 2**24  # in memory at a time
MAX_WINDOW = 2048  # tokens, where the model's context is longer


def evaluate(pipeline: TextGenerator, request: EvaluationRequest) -> dict[str, Any]:
    """Loss, perplexity and bits per byte on the text of these files, or on the validation text of the folder's run.

    Documents follow one another as in training, with the end token between them, in windows of the model's context, at
    most 2,048 tokens; `limit` counts tokens. The run's settings say which field of a line is its text, unless the
    assignments do, and whether documents attend to each other.
    """
    bad = BadRows()
    folder, paths = request.folder, request.paths
    run = read_run_settings(folder) if paths else validation_of(folder, "the text to score it on")
    config = TextDataConfig() if run is None else TextDataConfig.model_validate(run.settings["data"])
    if paths or run is None:
        reading = override_reading(TextReadingConfig(field=config.field), request.assignments)
        chunks = read_documents(paths, field=reading.field, on_error=reading.on_error, report=bad)
    else:
        chunks = (TextCorpus(run.data, config) if run.data else PythonDocs(config)).validation()
    scores = score_text(pipeline, chunks, limit=request.limit, separate_documents=config.separate_documents)
    return scores | ({"bad_lines": bad.summary()} if bad.count else {})


def score_text(
    pipeline: TextGenerator, chunks: Iterator[TextChunk], *, limit: int | None = None, separate_documents: bool = False
) -> dict[str, Any]:
    """The same on chunks of documents.

    `separate_documents`: attention stays inside a document, and its first token is no target.
    """
    reader = _Reader(pipeline.tokenizer, chunks, separate_documents)
    context = min(pipeline.context, MAX_WINDOW)
    total, tokens, spelled, start = 0.0, 0, 0, time.perf_counter()
    for window in reader.windows(context, math.inf if limit is None else limit):
        ids, is_target, documents = window  # (B, T + 1) each
        document_ids = documents[:, :-1] - documents[:, :1] + 1 if separate_documents else None
        targets = ids[:, 1:].masked_fill(is_target[:, 1:] == 0, IGNORE_INDEX)
        total += _cross_entropy(pipeline.model, ids[:, :-1], targets, document_ids)
        scored = targets[targets != IGNORE_INDEX]
        tokens += len(scored)
        spelled += reader.spelled(scored)
    if not tokens:
        raise DataError("one token of text or none; wanted at least two, so that one can be predicted")
    # Exact where tokens decode to the text as it is; else estimated by the share of it that these tokens decode to.
    text_bytes = round(reader.bytes * spelled / reader.spelled_bytes) if spelled else 0
    other = loss_metrics(total / tokens, tokens=tokens, text_bytes=max(1, text_bytes))
    if not text_bytes:
        del other["bits_per_byte"]  # only end tokens were predicted
    return {
        "tokens": tokens,
        "bytes": text_bytes,
        "context": context,
        "loss": total / tokens,
        **other,
        "tokens_per_second": tokens / (time.perf_counter() - start),
    }


@torch.inference_mode()
def _cross_entropy(model: Any, ids: Tensor, targets: Tensor, document_ids: Tensor | None) -> float:
    """Summed cross-entropy of the targets (B, T), a part of the logits at a time."""
    move = runtime_of(model).move
    documents = None if document_ids is None else move(document_ids)
    hidden, truth = model.hidden_states(move(ids), documents).flatten(0, 1), move(targets.flatten())
    rows = max(1, MAX_LOGITS // model.config.vocab_size)
    pairs = zip(hidden.split(rows), truth.split(rows), strict=True)
    return sum(
        F.cross_entropy(model.logits(some).float(), wanted, ignore_index=IGNORE_INDEX, reduction="sum").item()
        for some, wanted in pairs
    )


class _Reader:
    """Text as windows of tokens, with counts of what was read."""

    def __init__(self, tokenizer: TextTokenizer, chunks: Iterator[TextChunk], separate_documents: bool) -> None:
        self._tokenizer = tokenizer
        self._leading = tokenizer.prepended_bos_id
        self._chunks = chunks
        self._separate_documents = separate_documents
        self._lengths = torch.tensor([len(tokenizer.token_bytes.of(number)) for number in range(tokenizer.vocab_size)])
        self._document, self._begins = 0, True
        self.bytes = self.spelled_bytes = 0

    def spelled(self, ids: Tensor) -> int:
        """The number of bytes that these tokens decode to."""
        return int(self._lengths[ids].sum())

    def windows(self, context: int, limit: float) -> Iterator[Tensor]:
        """(3, B, T + 1): ids, whether each may be a target, the number of its document.

        Each window begins with the last token of the one before; the last may be shorter.
        """
        row = torch.empty(3, 0, dtype=torch.int64)
        for chunk in self._chunks:
            row = torch.cat([row, self._tokens(chunk)], dim=1)
            start, several = 0, BATCH_SIZE * context
            while row.shape[1] - start > several and limit >= several:
                yield _folded(row[:, start : start + several + 1], context)
                start, limit = start + several, limit - several
            row = row[:, start:]
            if row.shape[1] > limit:
                break
        row = row[:, : int(min(limit, row.shape[1])) + 1]
        if whole := max(0, row.shape[1] - 1) // context * context:
            yield _folded(row[:, : whole + 1], context)
        if row.shape[1] - whole > 1:
            yield row[:, None, whole:]

    def _tokens(self, chunk: TextChunk) -> Tensor:
        """A chunk as (3, T). The begin token, where the model has one, is never a target."""
        ids = self._tokenizer.encode(chunk.text)
        self.bytes += len(chunk.text.encode())
        self.spelled_bytes += self.spelled(torch.tensor(ids, dtype=torch.int64))
        given = self._begins and (self._leading is not None or self._separate_documents)
        if self._begins and self._leading is not None:
            ids = [self._leading, *ids]
        if chunk.is_last and not chunk.is_truncated and self._tokenizer.eos_id is not None:
            ids.append(self._tokenizer.eos_id)
        found = torch.tensor([ids, [1] * len(ids), [self._document] * len(ids)])
        if given:
            found[1, :1] = 0
        self._begins = chunk.is_last
        self._document += chunk.is_last
        return found


def _folded(row: Tensor, context: int) -> Tensor:
    return row.unfold(1, context + 1, context)
