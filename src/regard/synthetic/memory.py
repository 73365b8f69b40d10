"""Three tasks that ask for nothing but memory: what was read must be written, however long ago it was.

    copy      a b c d   ->  a b c d
    reverse   a b c d   ->  d c b a
    recall    a b c d   ->  a           the first letter, after a distance

A source begins with its task's sign. Letters are drawn by chance, so nothing but carrying them helps.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

MemoryTask = Literal["copy", "reverse", "recall"]
TASKS: tuple[MemoryTask, ...] = get_args(MemoryTask)
PADDING, BEGIN, END = 0, 1, 2
SIGN = 3  # of the first task; then those of the others, then the letters
LETTERS = 16
VOCABULARY = SIGN + len(TASKS) + LETTERS


def exercise(task: MemoryTask, length: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Sources (rows, 1 + length + 1) with sign and end, and what is to be written, its end included."""
    chance = torch.Generator().manual_seed(seed)
    letters = torch.randint(VOCABULARY - LETTERS, VOCABULARY, (rows, length), generator=chance)
    sign = torch.full((rows, 1), SIGN + TASKS.index(task))
    end = torch.full((rows, 1), END)
    answers = {"copy": letters, "reverse": letters.flip(1), "recall": letters[:, :1]}
    return torch.cat([sign, letters, end], dim=1), torch.cat([answers[task], end], dim=1)
