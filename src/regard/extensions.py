"""Models, tasks and recipes from outside regard: of installed packages, and of a Python file of the user's own.

regard's own stand in three literal dicts (MODELS, TASKS, RECIPES). What others add is found here, by the same kind of
name -> "module:attribute":

    installed packages   entry points of the groups regard.models, regard.tasks and regard.recipes
    a file               "mine.py:TinyGPT" is the attribute TinyGPT of mine.py, once that file has been run

A file is run when the user names it (`regard train mine.py:recipe`), or trusts a model folder that has a copy of it
(`--trust`, `regard.load(…, trust=True)`); never because a folder says so. What has been run once is known by its
SHA-256: a folder with the same code opens without being trusted again.
"""

import hashlib
import logging
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal

from regard.errors import ConfigError, FolderError, InputError, RegardError
from regard.files import read_json

Group = Literal["models", "tasks", "recipes"]

SUFFIX = ".py"
CODE = "code"  # in config.json: the name of each file that the model needs -> its SHA-256
LARGEST = 10**6  # bytes of a file of code
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CodeFile:
    """A file of the user's that has been run."""

    path: Path
    content: bytes
    module: ModuleType

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


# What this process has run: by content, and for each name the one that the name stands for now.
_BY_SHA256: dict[str, CodeFile] = {}
_BY_NAME: dict[str, CodeFile] = {}


# ------------------------------------------------ looking up


def locate(group: Group, ours: Mapping[str, str], name: str) -> str | None:
    """The "module:attribute" of a name; None: nothing has it. ConfigError where a package takes a name of ours."""
    file, _, attribute = name.rpartition(":")
    if file in _BY_NAME:
        return f"{_BY_NAME[file].module.__name__}:{attribute}"
    installed = _installed(group)
    if name in ours and name in installed:
        raise ConfigError(
            f"{name} is of regard, and an installed package has it as an entry point of regard.{group} "
            f"({installed[name]}); rename or uninstall that"
        )
    return ours.get(name) or installed.get(name)


def names(group: Group, ours: Mapping[str, str]) -> dict[str, str]:
    """All names of regard and of installed packages -> "module:attribute"."""
    return {**ours, **_installed(group)}


@cache
def _installed(group: Group) -> dict[str, str]:
    return {one.name: one.value for one in entry_points(group=f"regard.{group}")}


def file_of(module: str) -> CodeFile | None:
    """The file that this module was made of, if it is one of the user's."""
    return next((file for file in _BY_SHA256.values() if file.module.__name__ == module), None)


def file_named(name: str) -> CodeFile | None:
    """The file of "mine.py:attribute", if it has been run."""
    return _BY_NAME.get(name.rpartition(":")[0])


def versions(group: Group, name: str) -> dict[str, str]:
    """The installed package that has a name, and its version; empty if no package has it."""
    found = [one.dist for one in entry_points(group=f"regard.{group}", name=name) if one.dist is not None]
    return {dist.name: dist.version for dist in found}


# ------------------------------------------------ a file that the user names


def is_code(name: str) -> bool:
    """Whether this names a Python file or one of its attributes: mine.py, mine.py:recipe."""
    return re.fullmatch(r".+\.py(:\w*)?", name) is not None


def split_name(name: str) -> tuple[Path, str]:
    """The file and the attribute of "path/to/mine.py:recipe"; the attribute may be empty."""
    match = re.fullmatch(r"(.+\.py)(?::(\w*))?", name)
    assert match is not None
    return Path(match[1]), match[2] or ""


def run_file(path: Path) -> CodeFile:
    """Run a Python file that the user has named. InputError: there is none, or it fails."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; `regard new model {path}` writes one to start from")
    return _run(path.absolute(), path.read_bytes())


def _run(path: Path, content: bytes) -> CodeFile:
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 not in _BY_SHA256 or _BY_SHA256[sha256].name != path.name:
        module = ModuleType(f"regard_file_{re.sub(r'[^A-Za-z0-9]', '_', path.stem)}_{sha256[:16]}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # pydantic and dataclasses look there
        try:
            exec(compile(content, str(path), "exec"), module.__dict__)
        except RegardError:
            raise
        except Exception as error:  # whatever the user's code raises
            del sys.modules[module.__name__]
            raise InputError(f"{_where(path, error)}: {type(error).__name__}: {_message(error)}") from error
        _BY_SHA256[sha256] = CodeFile(path, content, module)
    _BY_NAME[path.name] = _BY_SHA256[sha256]
    return replace(_BY_SHA256[sha256], path=path)  # the same bytes may stand in several places


def _message(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error}; the file is copied alone into the model folder: import installed packages only"
    return str(error.msg if isinstance(error, SyntaxError) else error)


def _where(path: Path, error: Exception) -> str:
    """The file and the line of it that an error is of."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}"
    return _line(error.__traceback__, {str(path)}) or str(path)


def place_of(error: BaseException) -> str:
    """The innermost line of a user's file in the traceback of an error; empty: it is not of the user's code."""
    return _line(error.__traceback__, {str(file.path) for file in _BY_SHA256.values()})


def _line(trace: TracebackType | None, paths: set[str]) -> str:
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename in paths]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


# ------------------------------------------------ the code of a model folder


def trust(folder: Path) -> None:
    """Run the code that a model folder brings, as the user has asked for it. A folder without code: nothing."""
    for name, sha256 in code_of(folder).items():
        if sha256 in _BY_SHA256:
            continue
        path = folder / name
        content = path.read_bytes() if path.is_file() and path.stat().st_size <= LARGEST else b""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise FolderError(f"{path} has changed since {folder} was saved: it was not run; copy it again")
        logger.warning("running %s (SHA-256 %s…), as you trust it", path, sha256[:12])
        _run(path.absolute(), content)


def require(folder: Path, config: Mapping[str, Any]) -> None:
    """FolderError unless the code that this config.json names has been run; its names then stand for that code."""
    for name, sha256 in _read_code(config, folder).items():
        if sha256 not in _BY_SHA256:
            raise FolderError(
                f"{folder} needs the code of its {name}, which was not run; read {folder / name}, and if you trust it, "
                "add --trust (in Python: regard.load(…, trust=True))"
            )
        _BY_NAME[name] = _BY_SHA256[sha256]


def has_run(folder: Path, config: Mapping[str, Any]) -> bool:
    """Whether all code that a folder needs has been run."""
    return all(sha256 in _BY_SHA256 for sha256 in _read_code(config, folder).values())


def code_of(folder: Path) -> dict[str, str]:
    """The files of code that a model folder names -> their SHA-256."""
    config = folder / "config.json"
    return _read_code(read_json(config), folder) if config.is_file() else {}


def _read_code(config: Mapping[str, Any], folder: Path) -> dict[str, str]:
    code = config.get(CODE, {})
    if not isinstance(code, dict):
        raise FolderError(f"{folder / 'config.json'}: {CODE} is {code!r}, wanted an object: file name -> SHA-256")
    for name, sha256 in code.items():
        if not re.fullmatch(r"[\w-]+\.py", name) or not re.fullmatch(r"[0-9a-f]{64}", str(sha256)):
            raise FolderError(f"{folder / 'config.json'}: {CODE} has {name!r}: {sha256!r}, wanted NAME.py: SHA-256")
    return code


def changed_since(folder: Path, source: Any) -> str:
    """A line for the user if the file that a folder's code was copied from has other contents now; or an empty one."""
    path = Path(str(source))
    saved = code_of(folder).get(path.name)
    if saved is None or not path.is_file() or path.stat().st_size > LARGEST:
        return ""
    if hashlib.sha256(path.read_bytes()).hexdigest() == saved:
        return ""
    return f"{path} has changed since {folder} was trained; what runs is its copy {folder / path.name}"
