"""All ops of regard.ops with their uses; an op without any is named."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import regard.ops
from regard.ops.packed import packed_is_supported
from regard.ops.quantized import int8_is_supported
from tests.ops.misuse.attention import ATTENTION
from tests.ops.misuse.elementwise import ELEMENTWISE
from tests.ops.misuse.judging import Use, uses_of
from tests.ops.misuse.packed import PACKED
from tests.ops.misuse.products import PRODUCTS
from tests.ops.misuse.quantized import INT8
from tests.ops.misuse.recurrent import RECURRENT
from tests.ops.misuse.vocabulary import LOSSES, SHORTLIST, TOPK

OPS = [*ELEMENTWISE, *ATTENTION, *PRODUCTS, *INT8, *PACKED, *LOSSES, *TOPK, *SHORTLIST, *RECURRENT]
# Modules that choose, build, load, ask or take memory, and compute nothing; programs, which are tried in
# tests/generation/test_engine.py; and the step of attention inside AttendingScan, which checks what it gets.
NO_OPS = ("additive_attention", "building", "dispatch", "lazy_memory", "library", "precision", "program")
# They ask about a tensor and read none of its numbers.
QUESTIONS = {"varlen_is_fast", "reads_cache_rows", "int8_is_supported", "max_activation", "has_contiguous_columns"}
QUESTIONS |= {"packed_is_supported", "num_bytes", "Layout", "BlockType"}
# They say of which rows of a batch the others draw random numbers; torch draws them.
QUESTIONS |= {"Rows", "rows_of_batch", "rand"}

NEED_INT8 = {"quantize_rows", "linear_int8", "CInt8", "Int8Rows", "padded_columns"}  # they have no torch form
# What the ops are compared with.
PLAIN_FORMS = {"linear_cross_entropy_in_torch", "argmax_in_torch", "unpack", "round_activations"}
PLAIN_FORMS |= {"linear_packed_written_out"}


def public_ops() -> set[str]:
    """The names of all functions and classes that the modules of regard.ops define and do not hide."""
    found = set()
    for module in pkgutil.iter_modules(regard.ops.__path__, "regard.ops."):
        if module.name.rpartition(".")[2] not in NO_OPS:
            for name, value in vars(importlib.import_module(module.name)).items():
                is_defined = inspect.isroutine(value) or inspect.isclass(value)
                if is_defined and not name.startswith("_") and value.__module__ == module.name:
                    found.add(name)
    return found


def missing_ops() -> set[str]:
    """Public ops without a use."""
    return public_ops() - QUESTIONS - PLAIN_FORMS - {op.name.split()[0] for op in OPS}


def all_uses() -> Iterator[Use]:
    """Every right use and every misuse that this processor has kernels for."""
    for op in OPS:
        name = op.name.split()[0]
        if (int8_is_supported() or name not in NEED_INT8) and (packed_is_supported() or op not in PACKED):
            yield from uses_of(op)
