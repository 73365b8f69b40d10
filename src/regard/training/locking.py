"""A lock on an open file that ends with the process, however it ends: flock, and on Windows its own call."""

import importlib
from typing import Any, TextIO

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def lock_file(file: TextIO) -> None:
    """Lock an open file for this process alone. OSError: another one holds it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        msvcrt: Any = importlib.import_module("msvcrt")
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
