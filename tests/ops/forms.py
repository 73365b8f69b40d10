"""What the tests of ops share: inputs, numbers of threads, and the mark of tests that are about the C forms."""

from contextlib import contextmanager

import pytest
import torch

from regard import ops
from regard.ops.quantized import int8_is_supported


def _reason() -> str:
    reason = ops.why_disabled()
    return f"kernels are off ({reason})" if reason == ops.DISABLED_BY_USER else f"no kernels on this machine: {reason}"


needs_kernels = pytest.mark.skipif(ops.why_disabled() is not None, reason=_reason())
needs_int8 = pytest.mark.skipif(
    not int8_is_supported(), reason=_reason() if ops.why_disabled() else "the int8 kernels need AVX2"
)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@contextmanager
def num_threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
