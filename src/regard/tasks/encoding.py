"""Many rows through an encoder at once, and one vector a row.

Where the encoder reads texts behind each other, nothing is padded. Elsewhere a row costs as much as the longest of its
batch, and a mask costs more than none: rows are sorted, and those of one length go together. On a CPU each core has a
batch of its own: no core waits for another inside a layer.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.huggingface.folder import Pooling
from regard.layers.varlen import unpadded_is_faster

TOKENS = 512  # of a batch: more leave the processor's cache
FEW = 128  # a batch below this takes shorter rows in, and pads them


def batches_by_length(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[list[int]]:
    """The numbers of all rows, the longest first, in batches of at most `tokens` places, padding counted.

    A row longer than that is a batch of its own. Rows of different length share a batch only where it is small.
    """
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if batch:
            longest = lengths[batch[0]]
            places = longest * len(batch)
            if places + longest > tokens or (places >= FEW and lengths[row] < longest):
                yield batch
                batch = []
        batch.append(row)
    if batch:
        yield batch


def batches_of_texts(lengths: Sequence[int], tokens: int = TOKENS, cores: int = 1) -> list[list[int]]:
    """The numbers of all rows in batches of about equal size, `tokens` words or less where rows are short, as many for
    each core: the next longest row goes to the batch that has the fewest words.
    """
    count = min(len(lengths), math.ceil(sum(lengths) / tokens / cores) * cores)
    batches: list[list[int]] = [[] for _ in range(count)]
    hidden = [(0, number) for number in range(count)]  # a heap
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        size, number = hidden[0]
        batches[number].append(row)
        heapq.heapreplace(hidden, (size + lengths[row], number))
    return batches


def side_by_side(rows: Sequence[Sequence[int]], padding: int) -> Tensor:
    """Ids (B, T), short rows filled up."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])


def embed_rows(model: Any, rows: Sequence[Sequence[int]], pooling: Pooling) -> Tensor:
    """One vector a row of ids, symbols included: (N, D), on the CPU, in the order of the rows.

    `model` is any kind of BERT: what is pooled are the words its encoder leaves.
    """
    padding, width = model.config.special_ids.pad_id, model.config.width
    device = next(model.parameters()).device
    found = torch.empty(len(rows), width)

    def embed_padded(batch: list[int]) -> None:
        with torch.inference_mode():
            ids = side_by_side([rows[row] for row in batch], padding).to(device)
            found[batch] = pooled(model.read(ids).hidden, ids != padding, pooling).float().cpu()

    def embed_unpadded(batch: list[int]) -> None:
        with torch.inference_mode():
            texts = [rows[row] for row in batch]
            hidden = model.encoder.encode_varlen(texts).split([len(text) for text in texts])
            found[batch] = torch.cat([pooled(one[None], real_in(one), pooling) for one in hidden])

    def real_in(hidden: Tensor) -> Tensor:
        return torch.ones(1, len(hidden), dtype=torch.bool)

    lengths = [len(row) for row in rows]
    with torch.inference_mode():
        unpadded = unpadded_is_faster(model.encoder, width // model.config.heads)
    cores = torch.get_num_threads()
    batches = batches_of_texts(lengths, cores=cores) if unpadded else list(batches_by_length(lengths))
    embed = embed_unpadded if unpadded else embed_padded
    if device.type != "cpu" or len(batches) == 1:
        for batch in batches:
            embed(batch)
    else:
        with a_core_each() as pool:
            list(pool.map(embed, batches))  # what one of them raises comes out here
    return found


@contextmanager
def a_core_each() -> Iterator[ThreadPoolExecutor]:
    """As many workers as torch has threads, in each of which torch has one; afterwards it has them all again."""
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)


def pooled(hidden: Tensor, real: Tensor, pooling: Pooling) -> Tensor:
    """(B, D) of words (B, T, D), of which only the `real` (B, T) count."""
    if pooling.how == "first":
        found = hidden[:, 0]
    elif pooling.how == "max":
        found = hidden.masked_fill(~real[..., None], -torch.inf).amax(1)
    else:
        shares = real / real.sum(1, keepdim=True)  # (B, T)
        found = (shares[:, None] @ hidden)[:, 0]
    return F.normalize(found, dim=-1) if pooling.normalized else found
