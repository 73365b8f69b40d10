"""A trace: the inner values of one pass of a model by name, with the tokens and axes they belong to, in one file.

The file is a safetensors file. Each value is a tensor under the path of its tap, without the batch axis: attention
weights are (heads, queries, keys), hidden states (positions, width). The metadata has one key, "regard", whose JSON is
a `TraceInfo`. A picture the model was shown is the tensor "image", uint8 (height, width, 3).
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor, nn

from regard.config import Config
from regard.errors import InputError
from regard.files import write_file
from regard.layers.attention import AttentionTaps

FORMAT = 1
SUFFIX = ".safetensors"
IMAGE = "image"


class Axis(Config):
    """What the positions of one axis are: tokens of a text, cells of a grid, or regions of an image."""

    tokens: tuple[str, ...] = Field(description="a label for each position")
    text: str = Field("", description="the text that the tokens are of")
    spans: tuple[tuple[int, int] | None, ...] = Field((), description="the bytes of each token in the text, UTF-8")
    segment_ids: tuple[int, ...] = Field((), description="of a pair, 0 the first text, 1 the second")
    next_tokens: tuple[str, ...] = Field((), description="of a decoder, the token chosen at each position")
    num_prompt: int = Field(0, ge=0, description="of a language model, the tokens that were given")
    grid: tuple[int, int] | None = Field(None, description="rows and columns, where the positions are cells")
    boxes: tuple[tuple[float, float, float, float], ...] = Field(
        (), description="left, top, right and bottom of each region, as shares of the image"
    )

    @property
    def generated(self) -> tuple[str, ...]:
        """The labels of a decoder's positions as queries: the token that each one chose."""
        return self.next_tokens or self.tokens


class AttentionInfo(Config):
    """One attention of the model: its path, and the axes of its queries and keys."""

    path: str
    queries: str
    keys: str


class ModuleInfo(Config):
    """One module of the model, for the block diagram."""

    path: str
    kind: str = Field(description="the name of its class")
    parameters: int = Field(ge=0, description="with those of its parts")
    shape: tuple[int, ...] = Field((), description="of its weight, if it has one")


class TraceInfo(Config):
    """What a trace says beside its tensors."""

    format: int = FORMAT
    kind: str
    task: str
    interface: str
    config: dict[str, Any]
    axes: dict[str, Axis]
    attentions: tuple[AttentionInfo, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    answer: Any = Field(None, description="what the model answered, as `regard run --json` prints it")
    strategy: str = Field("", description="how the text was decoded")
    interventions: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """The inner values of one pass, by path, and what they are of."""

    info: TraceInfo
    values: Mapping[str, np.ndarray] = field(default_factory=dict)

    def value(self, path: str) -> np.ndarray:
        """One value; InputError if this trace does not have it."""
        if path not in self.values:
            raise InputError(f"this trace has no {path}; it has {', '.join(sorted(self.values)[:8]) or 'no values'}, …")
        return self.values[path]

    @property
    def image(self) -> np.ndarray | None:
        return self.values.get(IMAGE)

    def attentions(self, pattern: str = "*") -> list[AttentionInfo]:
        """The attentions whose weights this trace has."""
        return [
            one
            for one in self.info.attentions
            if fnmatchcase(one.path, pattern) and tap_of(one.path, "weights") in self.values
        ]

    def weights(self, attention: AttentionInfo) -> np.ndarray:
        """The attention weights (heads, queries, keys), in single precision; InputError for another shape."""
        weights = self.value(tap_of(attention.path, "weights")).astype(np.float32)
        if weights.ndim != 3:
            path = tap_of(attention.path, "weights")
            raise InputError(f"{path} of this trace has {weights.ndim} axes; wanted heads, queries and keys")
        return weights

    def save(self, path: Path) -> None:
        """Write the file; an old one is replaced whole or not at all."""
        check_trace_path(path)
        values = {name: np.ascontiguousarray(value) for name, value in self.values.items()}
        write_file(path, save(values, {"regard": self.info.model_dump_json()}))

    @classmethod
    def open(cls, path: Path) -> "Trace":
        """Read a file that `save` wrote; InputError for any other."""
        try:
            with safe_open(path, "np") as file:
                metadata = file.metadata() or {}
                info = TraceInfo.model_validate_json(metadata.get("regard", ""))
                return cls(info, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except (SafetensorError, OSError, ValidationError, TypeError, ValueError) as error:
            reason = f"{error}".splitlines()[0]
            raise InputError(f"{path} is not a trace that `regard trace` wrote: {reason}") from error


def check_trace_path(path: Path) -> None:
    """InputError if no trace can be written there; called before any work is done."""
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path}: a trace ends in {SUFFIX}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")


def is_trace(path: Path) -> bool:
    return path.suffix.lower() == SUFFIX and path.is_file()


def tap_of(attention: str, name: str) -> str:
    """The path of a tap of an attention, which may be the model itself."""
    return f"{attention}.{name}" if attention else name


def attentions_of(model: nn.Module) -> list[AttentionInfo]:
    """Every attention of a model, in its order, with the axes that the model states."""
    found = []
    for path, module in model.named_modules():
        if isinstance(module, AttentionTaps):
            for pattern, (queries, keys) in model.attention_axes.items():  # type: ignore[union-attr, operator]
                if fnmatchcase(path, pattern):
                    found.append(AttentionInfo(path=path, queries=queries, keys=keys))
                    break
            else:
                raise AssertionError(f"attention_axes of {type(model).__name__} says nothing of {path}")
    return found


def modules_of(model: nn.Module) -> tuple[ModuleInfo, ...]:
    """The modules of a model that have parameters, or fixed numbers such as sinusoidal positions, in its order."""
    found = []
    for path, module in model.named_modules():
        count = sum(parameter.numel() for parameter in module.parameters())
        weight = getattr(module, "weight", None)
        if count or any(True for _ in module.buffers()):
            shape = tuple(weight.shape) if isinstance(weight, Tensor) else ()
            found.append(ModuleInfo(path=path, kind=type(module).__name__, parameters=count, shape=shape))
    return tuple(found)


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in ("regard", "torch")}}


# ------------------------------------------------ from captured values


def joined(path: str, values: Sequence[Tensor]) -> np.ndarray:
    """The values of one point as one array without the batch axis.

    A recurrent model reaches a point once a token: its calls are joined in their order. Keys and values are the same
    at every call.
    """
    name = path.rpartition(".")[2]
    if len(values) == 1 or name in ("keys", "values"):
        value = values[0]
    elif values[0].dim() >= 3:
        value = torch.cat(list(values), dim=-2)
    else:
        value = torch.stack(list(values), dim=1)
    if value.shape[0] != 1:
        raise InputError(f"{path} has {value.shape[0]} rows; a trace is of one input")
    array: np.ndarray = value[0].to(torch.float32).cpu().numpy()
    return array


def byte_spans(text: str, labels: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """Where each token stands in its text, as UTF-8 bytes; None for special tokens and where the text was changed."""
    spans: list[tuple[int, int] | None] = []
    folded, start = text.casefold(), 0
    exact = len(folded) == len(text)  # else lower case moves characters
    for label in labels:
        letters = label.removeprefix("·").removeprefix("▁")
        letters = " " if letters == "␣" else letters
        at = (folded if exact else text).find(letters.casefold() if exact else letters, start) if letters else -1
        if at < 0 or text[start:at].strip():  # not here, or something was skipped
            spans.append(None)
            continue
        start = at + len(letters)
        spans.append((len(text[:at].encode()), len(text[:start].encode())))
    return tuple(spans)
