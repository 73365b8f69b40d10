"""The memory tasks ask for what they say."""

import torch

from regard.synthetic.memory import EOS_ID, NUM_LETTERS, TASKS, VOCAB_SIZE, exercise


def test_each_task_is_its_own_answer():
    for task in TASKS:
        source, answer = exercise(task, 5, 3, seed=1)
        letters = source[:, 1:-1]
        wanted = {"copy": letters, "reverse": letters.flip(1), "recall": letters[:, :1]}[task]
        assert torch.equal(answer[:, :-1], wanted)
        assert (source[:, -1] == EOS_ID).all()
        assert (answer[:, -1] == EOS_ID).all()
        assert letters.min() >= VOCAB_SIZE - NUM_LETTERS
        assert (source[:, 0] == source[0, 0]).all()
    assert len({int(exercise(task, 1, 1, seed=0)[0][0, 0]) for task in TASKS}) == len(TASKS)


def test_the_same_seed_gives_the_same_letters():
    assert torch.equal(exercise("copy", 8, 4, seed=2)[0], exercise("copy", 8, 4, seed=2)[0])
    assert not torch.equal(exercise("copy", 8, 4, seed=2)[0], exercise("copy", 8, 4, seed=3)[0])
