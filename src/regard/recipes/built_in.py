"""Data that is made by the program itself."""

from importlib.util import find_spec
from pathlib import Path


def sources(package: str) -> list[Path]:
    """The code of a package: a world is its content, and made anew when it changes."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return sorted(Path(spec.submodule_search_locations[0]).glob("*.py"))
