"""Settings: frozen pydantic models, and typed overrides from the command line ("training.steps=200")."""

import difflib
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict

from regard.errors import ConfigError
from regard.renamed import KEYS

NEAREST = 3  # keys that an error names


class Config(BaseModel):
    """The base of every config: frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


F = TypeVar("F", bound=Config)


def absolute_path(path: Path | None) -> Path | None:
    """Validator for files that are opened again later, perhaps from another current folder: make the path absolute."""
    return None if path is None else path.expanduser().resolve()


def override(config: F, assignments: Sequence[str], listed_by: str = "") -> F:
    """A copy of the config with the overrides "section.key=value" applied together.

    They are validated together, so values that depend on each other ("model.width=96 model.heads=6") may come in any
    order. If a key is given twice the last value counts. ConfigError names the first mistake in one line; for an
    unknown key it has the nearest ones, and `listed_by`, the command that lists all.
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        key, text = _parse(assignment)
        section, name = _find(config, key, f"; `{listed_by}` lists all" if listed_by else "")
        _put(changes, key.split("."), _parse_value(_annotation(section, name), text))
    return _rebuild(config, changes, "")


def _parse(assignment: str) -> tuple[str, str]:
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"got {assignment!r}, wanted key=value, for example training.steps=200")
    return key.strip(), text.strip()


def _find(config: Config, key: str, hint: str) -> tuple[Config, str]:
    """The section of a dotted key, and the name of the key in it."""
    *parents, name = key.split(".")
    section: Any = config
    for parent in parents:
        section = getattr(section, parent, None) if parent in type(section).model_fields else None
        if not isinstance(section, Config):
            raise _unknown(config, key, hint)
    if name not in type(section).model_fields:
        raise _unknown(config, key, hint)
    if isinstance(inner := getattr(section, name), Config):
        keys = list(_keys(inner, f"{key}."))
        some = ", ".join(keys[:NEAREST])
        its_keys = f"its keys are {some}" if len(keys) <= NEAREST else f"it has {len(keys)} keys, such as {some}{hint}"
        raise ConfigError(f"{key} is a section and takes no value; {its_keys}")
    return section, name


def _keys(config: Config, prefix: str = "") -> Iterator[str]:
    """All dotted keys that take a value."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, Config):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _unknown(config: Config, key: str, hint: str) -> ConfigError:
    if (now := KEYS.get(key)) is not None and now in _keys(config):
        return ConfigError(f"{key} is now {now}")
    keys = list(_keys(config))
    near = _nearest(keys, key)
    if near:
        return ConfigError(f"unknown key {key}; did you mean {' or '.join(near)}?{hint.removeprefix(';')}")
    some = _nearest(keys, key, at_least=0)
    return ConfigError(f"unknown key {key}; the nearest are {', '.join(some)}{hint}")


def _nearest(keys: list[str], key: str, at_least: float = 0.6) -> list[str]:
    """Up to three similar keys, compared as a whole and by their last part; the most similar first."""
    leaf = key.rpartition(".")[2]
    leaves = {full: full.rpartition(".")[2] for full in keys}
    similarity = {full: max(_similarity(full, key), _similarity(leaves[full], leaf)) for full in keys}
    return [full for full in sorted(keys, key=lambda full: -similarity[full]) if similarity[full] >= at_least][:NEAREST]


def _similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _annotation(section: Config, name: str) -> Any:
    return type(section).model_fields[name].annotation


def _parse_value(annotation: Any, text: str) -> Any:
    """What pydantic does not parse from a string: none, a list, a number among literal choices."""
    members = _members(annotation)
    if type(None) in members and text.lower() in ("none", "null"):
        return None
    if any(typing.get_origin(m) in (list, tuple, set, frozenset) for m in members):
        inner = text.strip("[]()").strip()
        return [item.strip() for item in inner.split(",")] if inner else []
    choices = [c for m in members if typing.get_origin(m) is typing.Literal for c in typing.get_args(m)]
    return next((choice for choice in choices if text in (str(choice), format_value(choice))), text)


def _members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union type; another type as the only member."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _put(changes: dict[str, Any], path: list[str], value: Any) -> None:
    *parents, name = path
    for parent in parents:
        changes = changes.setdefault(parent, {})
    changes[name] = value


def _rebuild(section: F, changes: dict[str, Any], prefix: str) -> F:
    """The section with its changes, inner sections first; every validator runs again."""
    values = {name: getattr(section, name) for name in section.model_fields_set}
    for name, change in changes.items():
        inner = getattr(section, name)
        values[name] = _rebuild(inner, change, f"{prefix}{name}.") if isinstance(inner, Config) else change
    try:
        return type(section).model_validate(values)
    except pydantic.ValidationError as error:
        raise ConfigError(_one_line(section, error, prefix)) from error


def _one_line(section: Config, error: pydantic.ValidationError, prefix: str) -> str:
    """The first mistake as "key: got, wanted, an example"; the message of a validator is kept as it is."""
    first = error.errors()[0]
    key = prefix + str(first["loc"][0]) if first["loc"] else prefix.removesuffix(".")
    message = " ".join(first["msg"].split())
    if first["type"] in ("value_error", "assertion_error"):
        message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return f"{key}: {message}" if key else message
    wanted = message.removeprefix("Input should be ").partition(", unable")[0]
    example = format_value(getattr(section, str(first["loc"][0])))
    return f"{key}: got {first['input']!r}, wanted {wanted}; for example {key}={example}"


def format_value(value: Any) -> str:
    """A value as the user writes it after the equals sign."""
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(format_value(item) for item in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
