"""The tokenizer of a run: made once, and kept in its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self, TypeVar

from regard.files import write_file


class Kept(Protocol):
    """A tokenizer as files."""

    @classmethod
    def load_saved(cls, folder: Path) -> Self: ...

    def to_files(self) -> dict[str, bytes]: ...


Words = TypeVar("Words", bound=Kept)


def kept_or_made(kind: type[Words], file: Path, make: Callable[[], Words]) -> Words:
    """The tokenizer that the run has kept, or a new one, kept from now on."""
    if file.exists():
        return kind.load_saved(file.parent)
    tokenizer = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(tokenizer.to_files().items(), reverse=True):  # tokenizer.json last: it decides above
        write_file(file.with_name(name), content)
    return tokenizer
