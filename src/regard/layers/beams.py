"""Rows that share a source: beams. What was read is kept once a sentence, what is written once a row."""

import torch
from torch import Tensor


def moved_sentences(rows: Tensor, written: int, read: int) -> Tensor | None:
    """The sentences (N,) that stay when `written` rows over `read` sentences become `rows`; None: each stays in place.

    Rows (N,), or (sentences, beams) whose lines share a source.
    """
    beams = written // read
    sentences = (rows if rows.dim() == 1 else rows[:, 0]) // beams
    return None if torch.equal(sentences, torch.arange(read, device=rows.device)) else sentences
