"""Run many rows of ids through an encoder: batches by length, outputs in the order of the rows, one vector per row.

Where the encoder takes unpadded (varlen) batches, nothing is padded. Elsewhere a row costs as much as the longest of
its batch, and a padding mask costs more than none: rows are sorted, and rows of one length share a batch. On a CPU each
core works on a batch of its own, so that no core waits for another inside a layer.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.huggingface.folder import Pooling
from regard.layers.varlen import unpadded_is_faster
from regard.runtime import runtime_of
from regard.tokenizers.wordpiece import Encoding

MAX_BATCH_TOKENS = 512  # larger batches do not fit in the processor's cache
MIN_BATCH_TOKENS = 128  # a smaller batch takes shorter rows in, and pads them


def batches_by_length(lengths: Sequence[int], max_tokens: int = MAX_BATCH_TOKENS) -> Iterator[list[int]]:
    """The numbers of all rows, the longest first, in batches of at most `max_tokens`, padding included.

    A longer row is a batch of its own. Rows of different lengths share a batch only while it is small.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if batch:
            longest = lengths[batch[0]]
            tokens = longest * len(batch)
            if tokens + longest > max_tokens or (tokens >= MIN_BATCH_TOKENS and lengths[row] < longest):
                yield batch
                batch = []
        batch.append(row)
    if batch:
        yield batch


def balanced_batches(lengths: Sequence[int], max_tokens: int = MAX_BATCH_TOKENS, cores: int = 1) -> list[list[int]]:
    """The numbers of all rows in unpadded batches of about equal size, the same number of batches for each core.

    A batch has about `max_tokens` or fewer where rows are short. The next longest row goes to the smallest batch.
    """
    count = min(len(lengths), math.ceil(sum(lengths) / max_tokens / cores) * cores)
    batches: list[list[int]] = [[] for _ in range(count)]
    sizes = [(0, number) for number in range(count)]  # a heap
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        size, number = sizes[0]
        batches[number].append(row)
        heapq.heapreplace(sizes, (size + lengths[row], number))
    return batches


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Ids (B, T), short rows padded."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])


def outputs_of(model: nn.Module, rows: Sequence[Encoding], compute: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
    """`compute(ids, segment_ids)` for each row, without its padding: (…) of a whole row (B, C), else (T, …)."""
    pad_id: int = model.config.special_ids.pad_id  # type: ignore[union-attr, assignment]
    found: dict[int, Tensor] = {}
    runtime = runtime_of(model)
    with torch.inference_mode():
        for batch in batches_by_length([len(row.ids) for row in rows]):
            ids = runtime.move(pad_rows([rows[number].ids for number in batch], pad_id))
            segment_ids = runtime.move(pad_rows([rows[number].segment_ids for number in batch], 0))
            outputs = compute(ids, segment_ids)
            whole = outputs.dim() == 2  # (B, C), else (B, T, …)
            for index, number in enumerate(batch):
                found[number] = outputs[index] if whole else outputs[index, : len(rows[number].ids)]
    return [found[number] for number in range(len(rows))]


def embed_rows(model: Any, rows: Sequence[Sequence[int]], pooling: Pooling) -> Tensor:
    """One vector per row of ids, special tokens included: (N, D), on the CPU, in the order of the rows.

    `model` is any kind of BERT; the hidden states of its encoder are pooled.
    """
    pad_id, width = model.config.special_ids.pad_id, model.config.width
    device = next(model.parameters()).device
    found = torch.empty(len(rows), width)

    def embed_padded(batch: list[int]) -> None:
        with torch.inference_mode():
            ids = pad_rows([rows[row] for row in batch], pad_id).to(device)
            found[batch] = pool(model.encode(ids).hidden, ids != pad_id, pooling).float().cpu()

    def embed_unpadded(batch: list[int]) -> None:
        with torch.inference_mode():
            texts = [rows[row] for row in batch]
            hidden = model.encoder.encode_varlen(texts).split([len(text) for text in texts])
            found[batch] = torch.cat([pool(one[None], all_real(one), pooling) for one in hidden])

    def all_real(hidden: Tensor) -> Tensor:
        return torch.ones(1, len(hidden), dtype=torch.bool)

    lengths = [len(row) for row in rows]
    with torch.inference_mode():
        unpadded = unpadded_is_faster(model.encoder, width // model.config.heads)
    cores = torch.get_num_threads()
    batches = balanced_batches(lengths, cores=cores) if unpadded else list(batches_by_length(lengths))
    embed = embed_unpadded if unpadded else embed_padded
    if device.type != "cpu" or len(batches) == 1:
        for batch in batches:
            embed(batch)
    else:
        with one_thread_per_core() as pool_of_threads:
            list(pool_of_threads.map(embed, batches))  # raises what one of them raised
    return found


@contextmanager
def one_thread_per_core() -> Iterator[ThreadPoolExecutor]:
    """As many workers as torch has threads, and in each of them one torch thread; restored afterwards."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool_of_threads:
            yield pool_of_threads
    finally:
        torch.set_num_threads(threads)


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """(B, D) of hidden states (B, T, D) where the mask (B, T) is True."""
    if pooling.mode == "cls":
        vectors = hidden[:, 0]
    elif pooling.mode == "max":
        vectors = hidden.masked_fill(~mask[..., None], -torch.inf).amax(1)
    else:
        shares = mask / mask.sum(1, keepdim=True)  # (B, T)
        vectors = (shares[:, None] @ hidden)[:, 0]
    return F.normalize(vectors, dim=-1) if pooling.normalized else vectors
