"""Batches prepared in advance are those of the task, in their order, and end when nobody wants them."""

import threading
import warnings
from itertools import count, islice

import pytest
import torch

from regard.runtime import Runtime
from regard.training.determinism import NonDeterministic
from regard.training.prefetch import DEPTH, on_device


class Accelerated(Runtime):
    """The CPU, treated like an accelerator."""

    prefetches = True


def batches(log=None, prepared=None):
    for number in count():
        if log is not None:
            log.append((number, threading.current_thread().name))
        if prepared is not None:
            prepared.release()
        yield number, torch.tensor([number])


@pytest.mark.parametrize("runtime", [Runtime(), Accelerated()], ids=["cpu", "accelerator"])
def test_the_order_is_that_of_the_task(runtime):
    found = on_device(batches(), runtime)
    assert [(number, batch.item()) for number, batch in islice(found, 50)] == [(n, n) for n in range(50)]
    found.close()


def test_the_next_ones_are_prepared_by_a_thread_and_no_more_than_those():
    log, prepared = [], threading.Semaphore(0)
    found = on_device(batches(log, prepared), Accelerated())
    assert not log  # nothing is prepared before the first is asked for
    next(found)
    for _ in range(DEPTH + 2):  # the one taken, those in the queue, and one that waits for room
        assert prepared.acquire(timeout=200)
    assert [number for number, _ in log] == list(range(DEPTH + 2))
    assert {name for _, name in log} == {"batches"}
    found.close()
    assert "batches" not in {thread.name for thread in threading.enumerate()}


def test_on_a_cpu_there_is_no_thread():
    log = []
    found = on_device(batches(log), Runtime())
    next(found)
    assert log == [(0, "MainThread")]


@pytest.mark.parametrize("runtime", [Runtime(), Accelerated()], ids=["cpu", "accelerator"])
def test_an_error_of_the_data_is_raised_where_the_batch_is_asked_for(runtime):
    def broken():
        yield 0, torch.ones(1)
        raise ValueError("a bad line")

    found = on_device(broken(), runtime)
    assert next(found)[0] == 0
    with pytest.raises(ValueError, match="a bad line"):
        next(found)


@pytest.mark.parametrize("runtime", [Runtime(), Accelerated()], ids=["cpu", "accelerator"])
def test_data_that_ends_ends(runtime):
    assert len(list(on_device(islice(batches(), 5), runtime))) == 5


def test_a_kernel_without_a_deterministic_form_is_named_once():
    kernels = NonDeterministic("cuda")
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        for _ in range(2):
            with kernels.collected():
                torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
    finally:
        torch.use_deterministic_algorithms(False)
    assert kernels.note() == "put_ has no deterministic kernel on cuda: a resumed run differs in its last bits"
    assert kernels.note() == ""


def test_other_warnings_are_shown():
    with pytest.warns(UserWarning, match="something else"), NonDeterministic("cuda").collected():
        warnings.warn("something else", UserWarning, stacklevel=1)
