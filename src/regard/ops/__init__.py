"""Operations: each file states one operation's contract and has its torch form, its C form and the choice between them.

This is the only folder that knows the C files (csrc/). An op checks its inputs and takes the C form where that covers
them; everything else (other dtypes and devices, gradients, tracing, disabled kernels) goes through torch. Callers
never ask which form runs.
"""

from regard.ops.dispatch import DISABLED_BY_USER, disabled, why_disabled

__all__ = ["DISABLED_BY_USER", "disabled", "why_disabled"]
