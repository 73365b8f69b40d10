"""The parts of a model for its block diagram, from the modules of a trace: boxes, and stacks of repeated blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from regard.inspection.trace import ModuleInfo, TraceInfo

Side = Literal["left", "right", "both"]


@dataclass(frozen=True)
class Part:
    """One box: a module, or `count` alike ones after each other; `inside` are the parts of one of these."""

    module: ModuleInfo
    name: str
    side: Side
    count: int = 1
    inside: tuple["Part", ...] = ()

    @property
    def parameters(self) -> int:
        return self.count * self.module.parameters


def parts_of(info: TraceInfo) -> list[Part]:
    """The parts of a model in its order: what repeats is a stack, and what contains a stack is opened."""
    return list(_Modules(info).parts(""))


class _Modules:
    """The modules of a model by path."""

    def __init__(self, info: TraceInfo) -> None:
        self.by_path = {one.path: one for one in info.modules}
        self.interface = info.interface
        self.is_pre_norm = info.config.get("norm") == "pre"
        stacks = [one.path for one in info.modules if one.kind == "ModuleList"]
        self.holds_stack = {path[:at] for path in stacks for at, sign in enumerate(path) if sign == "."}
        self.children: dict[str, list[str]] = {}
        for path in self.by_path:
            if path:
                self.children.setdefault(path.rpartition(".")[0], []).append(path)

    def parts(self, path: str) -> Iterator[Part]:
        for child in self.children.get(path, []):
            if self.by_path[child].kind == "ModuleList":
                yield from self._stacks(child)
            elif child in self.holds_stack:
                yield from self.parts(child)
            else:
                yield Part(self.by_path[child], _name(child), self._side(child))

    def _stacks(self, path: str) -> Iterator[Part]:
        """One part for each run of alike blocks; blocks may grow, as those of a convolutional network do."""
        blocks = [self.by_path[child] for child in self.children.get(path, [])]
        for _, alike in groupby(blocks, key=lambda one: (one.kind, one.parameters)):
            run = list(alike)
            inside = tuple(
                Part(self.by_path[child], _name(child), self._side(child))
                for child in self._ordered(self.children.get(run[0].path, []))
            )
            yield Part(run[0], _name(path), self._side(path), len(run), inside)

    def _ordered(self, paths: Sequence[str]) -> list[str]:
        """The parts of a block with each norm beside what it belongs to, before or after it."""
        found = list(paths)
        for path in paths:
            parent, _, name = path.rpartition(".")
            owner = f"{parent}.{name.removeprefix('norm_')}"
            if name.startswith("norm_") and owner in paths and abs(paths.index(path) - paths.index(owner)) > 1:
                found.remove(path)
                found.insert(found.index(owner) + (not self.is_pre_norm), path)
        return found

    def _side(self, path: str) -> Side:
        """Encoder left and decoder right; of two streams, text left and image right; what both share in the middle."""
        first, last = path.partition(".")[0], path.rpartition(".")[2]
        if self.interface == "vision_language":
            if last.startswith("text") or self.by_path[path].kind == "MaskedLMHead":
                return "left"
            return "right" if last.startswith(("region", "image")) else "both"
        if self.interface in ("causal_lm", "encoder"):
            return "left"
        if first == "encoder":
            return "left"
        return "both" if first in ("embedding", "positions", "combine_positions") else "right"


def _name(path: str) -> str:
    """The last name of a path as words, with that of its parent where it says more."""
    *_, parent, name = ("", *path.split("."))
    is_plain = not parent or parent.isdigit() or parent in ("encoder", "decoder")
    return (name if is_plain else f"{parent} {name}").replace("_", " ")
