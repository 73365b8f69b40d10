"""Which kernels of an accelerator do not give the same bits twice.

`runtime.prepare` asks torch for deterministic kernels. Where torch has none it takes the other and warns, and a resumed
run then differs in its last bits from one that was not interrupted.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

WARNING = re.compile(r"(\S+) does not have a deterministic implementation")


class NonDeterministic:
    """The kernels that torch warned of, and a note about those that are new."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._known: set[str] = set()
        self._new: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Take the warnings of the block; others are shown as ever."""
        if self.device == "cpu":  # its kernels are deterministic, by test
            yield
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for one in caught:
            if found := WARNING.match(str(one.message)):
                self._new += [] if found[1] in self._known else [found[1]]
                self._known.add(found[1])
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

    def note(self) -> str:
        """What a user should know of the kernels met since the last note; mostly empty."""
        names, self._new = ", ".join(self._new), []
        return names and f"{names} has no deterministic kernel on {self.device}: a resumed run differs in its last bits"
