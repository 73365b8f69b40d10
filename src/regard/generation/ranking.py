"""The best of long rows of logits, and their totals, fast in either layout.

A step's logits (B, V) may lie in memory row by row, or, as a product W xᵀ leaves them, column by column. Each function
here gives what its one-line form gives, and works through memory in the order in which it lies, a piece at a time; rows
by a kernel of our own, where it is to be had.
"""

import torch
from torch import Tensor

from regard import kernels

PIECE = 1024  # words of a piece that stays in the processor's cache
FEW = 64  # so many are best found by our own kernel
CHUNK = 128  # words of which only the best is looked at first


def log_total(logits: Tensor) -> Tensor:
    """`logits.logsumexp(-1)`."""
    if _for_kernels(logits):
        return kernels.log_totals(logits)
    if lies_in_columns(logits):
        return torch.stack([piece.logsumexp(0) for piece in logits.t().split(PIECE)]).logsumexp(0)
    return torch.cat([rows.logsumexp(-1) for rows in logits.split(8)])


def likeliest(logits: Tensor) -> Tensor:
    """`logits.argmax(-1)`."""
    if _for_kernels(logits):
        return kernels.top(logits, 1)[1][:, 0]
    if not lies_in_columns(logits):
        return logits.argmax(-1)
    columns = logits.t()  # (V, B)
    best = torch.stack([piece.amax(0) for piece in columns.split(PIECE)]).argmax(0)  # (B,) the piece it stands in
    places = torch.arange(PIECE, device=logits.device)[:, None] + best * PIECE
    inside = columns.gather(0, places.clamp(max=len(columns) - 1))  # the last piece may be shorter
    return best * PIECE + inside.argmax(0)


def top(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`logits.topk(count)`: the best stand in the chunks with the highest maxima."""
    if count <= FEW and _for_kernels(logits):
        return kernels.top(logits, count)
    words = logits.shape[-1]
    if words < 4 * CHUNK * count or words % CHUNK:
        return logits.topk(count, dim=-1)
    if lies_in_columns(logits):
        highest = logits.t().unflatten(0, (-1, CHUNK)).amax(1).t()  # (B, V / CHUNK)
    else:
        highest = logits.unflatten(-1, (-1, CHUNK)).amax(-1)
    which = highest.topk(count, dim=-1).indices  # (B, count)
    places = (which[..., None] * CHUNK + torch.arange(CHUNK, device=logits.device)).flatten(1)  # (B, count · CHUNK)
    best, place = logits.gather(1, places).topk(count, dim=-1)
    return best, places.gather(1, place)


def _for_kernels(logits: Tensor) -> bool:
    return logits.stride(1) == 1 and kernels.fits(logits)


def lies_in_columns(logits: Tensor) -> bool:
    """The numbers of one word, of all rows, lie side by side."""
    return logits.shape[0] > 1 and logits.stride(0) == 1
