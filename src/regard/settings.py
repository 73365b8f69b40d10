"""Every setting described: its key, meaning, type, default and range, read from the fields of the configs.

The meaning of a setting is the `description` of its pydantic field, and stands nowhere else. `regard recipes gpt
--settings` and docs/reference/settings.md are made from here.
"""

import types
import typing
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

from regard.config import Config, format_value

NAMES = {int: "int", float: "float", bool: "bool", str: "text", Path: "path", type(None): "none"}
BOUNDS = {Gt: ("gt", ">"), Ge: ("ge", "≥"), Lt: ("lt", "<"), Le: ("le", "≤")}


@dataclass(frozen=True)
class Setting:
    """One key that takes a value."""

    key: str
    meaning: str
    type: str
    default: str  # as the user writes it after the equals sign
    range: str  # empty: any value of the type

    def as_dict(self) -> dict[str, str]:
        return asdict(self)

    @property
    def type_and_range(self) -> str:
        return f"{self.type} {self.range}".strip()


def settings_of(config: Config, prefix: str = "") -> list[Setting]:
    """All settings of a config and of its sections, in their order."""
    return list(_settings(config, prefix))


def _settings(config: Config, prefix: str) -> Iterator[Setting]:
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, Config):
            yield from _settings(value, f"{prefix}{name}.")
        else:
            yield describe(prefix + name, field, value)


def describe(key: str, field: FieldInfo, value: Any) -> Setting:
    return Setting(key, field.description or "", _type(field.annotation), format_value(value), _range(field))


def _type(annotation: Any) -> str:
    """A type as one reads it: int, "relu | swish", "list of text", "int or none"."""
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " | ".join(format_value(member) for member in members)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(member) for member in members)
    if origin is typing.Annotated:
        return _type(members[0])
    if origin is tuple and Ellipsis not in members:
        return f"{len(members)} × {_type(members[0])}"
    if origin in (list, tuple, set, frozenset):
        return f"list of {_type(members[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return "section"
    return NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _range(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {format_value(getattr(one, name))}"
        for kind, (name, sign) in BOUNDS.items()
        for one in field.metadata
        if isinstance(one, kind)
    ]
    bounds += ["not empty" for one in field.metadata if isinstance(one, MinLen)]
    return ", ".join(bounds)
