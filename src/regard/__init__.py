"""regard: train, run, measure and look inside sequence models with attention.

    import regard
    translator = regard.load("runs/demo")
    translator.run("we are eating bread").text      # 'estamos comiendo pan'

The names below are loaded when they are first used: importing regard does not import torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "load": "regard.tasks.loading",
    "RegardError": "regard.errors",
    "Greedy": "regard.generation",
    "Sample": "regard.generation",
    "Beam": "regard.generation",
    "capture": "regard.inspection.capture",
}

__all__ = ["Beam", "Greedy", "RegardError", "Sample", "__version__", "capture", "load"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
