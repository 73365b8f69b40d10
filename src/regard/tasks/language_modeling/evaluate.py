"""Evaluate a language model on text. A few windows of text are in memory at a time."""

import math
import time
from collections.abc import Iterator
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
from regard.errors import ConfigError, DataError
from regard.runtime import runtime_of
from regard.tasks.base import EvaluationRequest
from regard.tasks.language_modeling.pipeline import TextGenerator
from regard.tasks.language_modeling.task import loss_metrics
from regard.tasks.run_settings import TextReadingConfig, override_reading, read_run_settings, validation_of
from regard.tokenizers.text import TextTokenizer

BATCH_SIZE = 8  # windows in a batch
MAX_LOGITS = 2**24  # in memory at a time
MAX_BATCH_TOKENS = 16_384
MAX_WINDOW = 8192  # tokens, where the model's context is longer and data.window is not given


class PerplexityConfig(TextReadingConfig):
    """How text to be scored is read, and in which windows."""

    window: int | None = Field(None, ge=1, description="tokens that the model sees at once; none: its whole context")
    stride: int | None = Field(
        None, ge=1, description="tokens from one window to the next: only these are scored; none: half a window"
    )

    def window_of(self, context: int) -> int:
        """ConfigError: a window that the model does not take, or that text between two windows is in none of."""
        window = min(context, MAX_WINDOW) if self.window is None else self.window
        if window > context:
            raise ConfigError(f"data.window={window}: the model reads {context:,} tokens at once; give at most these")
        if self.stride is not None and self.stride > window:
            raise ConfigError(
                f"data.stride={self.stride} is longer than the window of {window:,} tokens; give at most it"
            )
        return window


def evaluate(pipeline: TextGenerator, request: EvaluationRequest) -> dict[str, Any]:
    """Loss, perplexity and bits per byte on the text of these files, or on the validation text of the folder's run.

    Documents follow one another as in training, with the end token between them; `limit` counts tokens. Text of the
    user's is scored in windows of the model's whole context, each half a window after the one before, so that a token
    has half a context before it (data.window, data.stride); that of the run as in training, without overlap. The run's
    settings say which field of a line is its text, unless the assignments do, and whether documents attend to each
    other.
    """
    bad = BadRows()
    folder, paths = request.folder, request.paths
    run = read_run_settings(folder) if paths else validation_of(folder, "the text to score it on")
    config = TextDataConfig() if run is None else TextDataConfig.model_validate(run.settings["data"])
    if paths or run is None:
        reading = override_reading(PerplexityConfig(field=config.field), request.assignments)
        window = reading.window_of(pipeline.context)
        stride = reading.stride or max(1, window // 2)
        chunks = read_documents(paths, field=reading.field, on_error=reading.on_error, report=bad)
    else:
        chunks = (TextCorpus(run.data, config) if run.data else PythonDocs(config)).validation()
        window = stride = min(pipeline.context, MAX_WINDOW)
    scores = score_text(
        pipeline, chunks, window, stride, limit=request.limit, separate_documents=config.separate_documents
    )
    return scores | ({"bad_lines": bad.summary()} if bad.count else {})


def score_text(
    pipeline: TextGenerator,
    chunks: Iterator[TextChunk],
    window: int | None = None,
    stride: int | None = None,
    *,
    limit: int | None = None,
    separate_documents: bool = False,
) -> dict[str, Any]:
    """The same on chunks of documents. Every token but the first is scored once, and all weigh the same.

    Without a `window` it is the model's context, and without a `stride` windows do not overlap.

    `separate_documents`: attention stays inside a document, and its first token is no target.
    """
    window = window or min(pipeline.context, MAX_WINDOW)
    stride = stride or window
    reader = _Reader(pipeline.tokenizer, chunks, separate_documents)
    total, tokens, spelled, start = 0.0, 0, 0, time.perf_counter()
    for ids, is_target, documents in reader.windows(window, stride, limit):  # (B, T + 1) each
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
        "window": window,
        "stride": stride,
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

    def windows(self, window: int, stride: int, limit: int | None) -> Iterator[Tensor]:
        """(3, B, T + 1): ids, whether each is a target, the number of its document.

        Each window begins `stride` tokens after the one before, and those that both have are targets once. The last may
        be shorter.
        """
        row = torch.empty(3, 0, dtype=torch.int64)
        batch = max(1, min(BATCH_SIZE, MAX_BATCH_TOKENS // window))
        overlap = 0  # targets at the start of the next window that were scored already
        for tokens in self._stream(limit):
            row = torch.cat([row, tokens], dim=1)
            while row.shape[1] > (several := window + (batch - 1) * stride):
                yield _folded(row[:, : several + 1], window, stride, overlap)
                row, overlap = row[:, batch * stride :], window - stride
        if (whole := (row.shape[1] - 1 - window) // stride + 1) > 0:
            yield _folded(row[:, : window + (whole - 1) * stride + 1], window, stride, overlap)
            row, overlap = row[:, whole * stride :], window - stride
        if row.shape[1] - 1 > overlap:
            yield _folded(row, row.shape[1] - 1, stride, overlap)

    def _stream(self, limit: int | None) -> Iterator[Tensor]:
        """The tokens of each chunk, (3, T); with a limit, until so many have been predicted."""
        left: float = math.inf if limit is None else limit + 1
        for tokens in map(self._tokens, self._chunks):
            yield tokens[:, : int(min(left, tokens.shape[1]))]
            left -= tokens.shape[1]
            if left <= 0:
                return

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


def _folded(row: Tensor, window: int, stride: int, overlap: int) -> Tensor:
    """A row (3, N) as windows (3, B, T + 1): the first `overlap` targets of the first do not count again."""
    found = row.unfold(1, window + 1, stride).clone()
    found[1, 1:, : 1 + window - stride] = 0
    found[1, :1, : 1 + overlap] = 0
    return found
