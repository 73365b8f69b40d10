"""Three tasks that need only memory: copy, reverse or recall the input over any distance.

    copy      a b c d   ->  a b c d
    reverse   a b c d   ->  d c b a
    recall    a b c d   ->  a           the first letter, after a distance

A source starts with the token of its task. Letters are random, so a model has to store them.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

MemoryTask = Literal["copy", "reverse", "recall"]
TASKS: tuple[MemoryTask, ...] = get_args(MemoryTask)
PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
FIRST_TASK_ID = 3  # then the other tasks, then the letters
NUM_LETTERS = 16
VOCAB_SIZE = FIRST_TASK_ID + len(TASKS) + NUM_LETTERS


def exercise(task: MemoryTask, length: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Sources (rows, 1 + length + 1) with task token and eos, and targets with eos."""
    generator = torch.Generator().manual_seed(seed)
    letters = torch.randint(VOCAB_SIZE - NUM_LETTERS, VOCAB_SIZE, (rows, length), generator=generator)
    task_id = torch.full((rows, 1), FIRST_TASK_ID + TASKS.index(task))
    eos = torch.full((rows, 1), EOS_ID)
    answers = {"copy": letters, "reverse": letters.flip(1), "recall": letters[:, :1]}
    return torch.cat([task_id, letters, eos], dim=1), torch.cat([answers[task], eos], dim=1)
