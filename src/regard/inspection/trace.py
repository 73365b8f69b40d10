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
from pydantic import Field, ValidationError, model_validator
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor, nn

from regard.config import Config
from regard.errors import InputError
from regard.files import write_file
from regard.layers.attention import AttentionTaps
from regard.models.base import Interface

FORMAT = 1
SUFFIX = ".safetensors"
IMAGE = "image"
MAX_PATH = 1000  # characters; the longest of our models have about fifty
MAX_MODULES = 10_000  # a model of 80 blocks has about 1,200, and 80 attentions
MAX_ATTENTIONS = 1000
FLOATS = ("F32", "F16", "F64")


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

    @model_validator(mode="after")
    def _check_lengths(self) -> "Axis":
        for name in ("spans", "segment_ids", "next_tokens", "boxes"):
            values = getattr(self, name)
            if values and len(values) != len(self.tokens):
                raise ValueError(f"{len(values)} {name} for {len(self.tokens)} tokens")
        if self.grid is not None and (min(self.grid) < 1 or self.grid[0] * self.grid[1] != len(self.tokens)):
            raise ValueError(f"a grid of {self.grid[0]} by {self.grid[1]} for {len(self.tokens)} tokens")
        length = len(self.text.encode())
        if any(span and not 0 <= span[0] <= span[1] <= length for span in self.spans):
            raise ValueError(f"spans outside of the {length} bytes of the text")
        return self

    @property
    def generated(self) -> tuple[str, ...]:
        """The labels of a decoder's positions as queries: the token that each one chose."""
        return self.next_tokens or self.tokens


class AttentionInfo(Config):
    """One attention of the model: its path, and the axes of its queries and keys."""

    path: str = Field(max_length=MAX_PATH)
    queries: str
    keys: str


class Reference(Config):
    """What a pronoun refers to, by a probe that was fitted on this model."""

    token: int = Field(ge=0, description="the position of the pronoun")
    nouns: tuple[str, ...] = Field(description="the nouns it may refer to, in order")
    positions: tuple[int, ...] = Field(description="the first token of each noun")
    shares: tuple[float, ...] = Field(description="the probability of each noun")
    accuracy: float = Field(ge=0, le=1, description="how often the probe is right in held-out stories")


class ModuleInfo(Config):
    """One module of the model, for the block diagram."""

    path: str = Field(max_length=MAX_PATH)
    kind: str = Field(description="the name of its class")
    parameters: int = Field(ge=0, description="with those of its parts")
    shape: tuple[int, ...] = Field((), description="of its weight, if it has one")


class TraceInfo(Config):
    """What a trace says beside its tensors."""

    format: int = FORMAT
    kind: str
    task: str
    interface: Interface
    config: dict[str, Any]
    axes: dict[str, Axis]
    attentions: tuple[AttentionInfo, ...] = Field((), max_length=MAX_ATTENTIONS)
    modules: tuple[ModuleInfo, ...] = Field((), max_length=MAX_MODULES)
    answer: Any = Field(None, description="what the model answered, as `regard run --json` prints it")
    strategy: str = Field("", description="how the text was decoded")
    interventions: tuple[str, ...] = ()
    joined: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="values of several axes, whose positions stand behind each other"
    )
    references: tuple[Reference, ...] = Field((), description="of an encoder with a coreference probe")
    versions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_axes(self) -> "TraceInfo":
        if len({one.path for one in self.attentions}) < len(self.attentions):
            raise ValueError("the same attention twice")
        for one in self.attentions:
            if self.axes and not {one.queries, one.keys} <= self.axes.keys():
                raise ValueError(f"no axes {one.queries} and {one.keys}, which {one.path} attends from and to")
        return self


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
                if "regard" not in metadata:
                    raise InputError(
                        f"{path} has tensors, such as weights, but is not a trace that `regard trace` wrote; "
                        "give the folder of a model, or a trace"
                    )
                info = TraceInfo.model_validate_json(metadata["regard"])
                names = list(file.keys())
                for name in names:
                    _check_type(name, file.get_slice(name))
                trace = cls(info, {name: file.get_tensor(name) for name in names})
                trace._check_weights()
                return trace
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise InputError(f"{path}: the metadata of this trace are damaged: {place}: {first['msg']}") from error
        except (SafetensorError, OSError, TypeError, ValueError) as error:
            reason = f"{error}".splitlines()[0]
            raise InputError(f"{path} is not a trace that `regard trace` wrote: {reason}") from error

    def _check_weights(self) -> None:
        """ValueError unless the weights of each attention are (heads, queries, keys), as long as its axes."""
        for one in self.attentions():
            shape = self.values[path := tap_of(one.path, "weights")].shape
            axes = [self.info.axes[name] for name in (one.queries, one.keys) if name in self.info.axes]
            lengths = [len(axis.tokens) for axis in axes]
            if len(shape) != 3 or not all(shape) or [*shape[1:]] != lengths:
                wanted = " and ".join(map(str, lengths))
                raise ValueError(f"{path} is {shape}, wanted heads, queries and keys, the last two {wanted}")


def _check_type(name: str, tensor: Any) -> None:
    """ValueError for numbers that no trace has."""
    dtype, shape = tensor.get_dtype(), tensor.get_shape()
    if name == IMAGE and (dtype != "U8" or len(shape) != 3 or shape[2] != 3 or not all(shape)):
        raise ValueError(f"the image is {dtype} {shape}, wanted U8 (height, width, 3)")
    if name != IMAGE and dtype not in FLOATS:
        raise ValueError(f"{name} is {dtype}, wanted one of {', '.join(FLOATS)}")


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
