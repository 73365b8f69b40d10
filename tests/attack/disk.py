"""A disk that fails: counts the operations on files, and lets one of them, or all from one on, raise an OSError."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SHORT = "short write"  # half of the data is written, and no error: the caller must write the rest
KINDS = ("ENOSPC", "EIO", "EROFS", SHORT)
LASTING = ("EROFS",)  # a disk that is mounted read-only stays so
OPERATIONS = ("open", "fsync", "rename", "replace", "mkdir", "unlink", "remove", "rmdir", "link", "truncate")


@dataclass
class Disk:
    """Fails at the operation of this number, counted from 0; without a kind it only counts."""

    kind: str = ""
    fatal: int = -1
    operations: list[str] = field(default_factory=list)  # by name, as they came
    log: int | None = None  # a file descriptor to write the names to

    def fails_at(self, operation: str) -> bool:
        """Count an operation. Whether it must fail."""
        number = len(self.operations)
        self.operations.append(operation)
        if self.log is not None:
            os.write(self.log, f"{operation}\n".encode())
        return bool(self.kind) and (number == self.fatal or (self.kind in LASTING and number > self.fatal))

    def error(self, path: Any = None) -> OSError:
        number = getattr(errno, self.kind)
        return OSError(number, os.strerror(number), path)

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Every operation of this process goes through this disk."""
        real = {name: getattr(os, name) for name in OPERATIONS}
        opening = io.open
        try:
            self.mount()
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)
            io.open = builtins.open = opening

    def mount(self) -> None:
        """The same for good."""
        for name in OPERATIONS:
            setattr(os, name, self._failing(name, getattr(os, name)))
        io.open = builtins.open = self._opening(io.open)

    def _failing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **named: Any) -> Any:
            if self.fails_at(name) and self.kind != SHORT:
                raise self.error(None if isinstance(arguments[0], int) else arguments[0])
            return None if name == "fsync" else real(*arguments, **named)  # a power failure is not tried

        return operation

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """`open`, whose files write through this disk. Reading is left alone."""

        def opened(path: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, *rest: Any) -> Any:
            if isinstance(path, int) or not set(mode) & set("wax") or "+" in mode:
                return real(path, mode, buffering, encoding, *rest)
            if self.fails_at("open") and self.kind != SHORT:
                raise self.error(path)
            file = io.BufferedWriter(_File(self, path, mode.replace("b", "").replace("t", "")))
            return file if "b" in mode else io.TextIOWrapper(file, encoding or "utf-8")

        return opened


class _File(io.FileIO):
    """A file on a disk that fails; a write that fails has written half."""

    def __init__(self, disk: Disk, path: Any, mode: str) -> None:
        super().__init__(path, mode)
        self._disk = disk

    def write(self, data: Any) -> int:
        if not self._disk.fails_at("write"):
            return super().write(data)
        written = super().write(bytes(data)[: len(data) // 2])
        if self._disk.kind != SHORT:
            raise self._disk.error()
        return written
