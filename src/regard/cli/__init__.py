"""The commands: parse, call one function, print.

Results go to standard output, progress and notes to standard error. Exit codes: 0 success, 2 a mistake of the user
(one line), 1 a bug of ours.
"""

import os
import sys
import traceback
from typing import NoReturn

import typer
from typer.exceptions import TyperException

# Each registers its commands, and the help lists them in this order.
from regard.cli import train  # isort: skip
from regard.cli import run  # isort: skip
from regard.cli import evaluate  # isort: skip
from regard.cli import show  # isort: skip
from regard.cli import trace  # isort: skip
from regard.cli import serve  # isort: skip
from regard.cli.serving import page  # isort: skip
from regard.cli.inputs import data  # isort: skip
from regard.cli import check  # isort: skip
from regard.cli import compare  # isort: skip
from regard.cli import embeddings  # isort: skip
from regard.cli import scenes  # isort: skip
from regard.cli import export  # isort: skip
from regard.cli import info  # isort: skip
from regard.cli import recipes  # isort: skip
from regard.cli import new  # isort: skip
from regard.cli import exercise  # isort: skip
from regard.cli.app import app
from regard.cli.wrong_options import explain
from regard.errors import ConfigError, RegardError
from regard.extensions import place_of
from regard.progress import error_stream, note_failure, silence_other_ranks
from regard.renamed import COMMANDS

__all__ = [
    "app",
    "check",
    "compare",
    "data",
    "embeddings",
    "evaluate",
    "exercise",
    "export",
    "info",
    "main",
    "new",
    "page",
    "recipes",
    "run",
    "scenes",
    "serve",
    "show",
    "trace",
    "train",
]


def main() -> NoReturn:
    """Run a command; every error becomes one line on standard error and an exit code."""
    # How long torch's threads spin before they sleep; read when torch is loaded. With the default a small training
    # step beside one busy program took ten times as long (3.1 against 0.27 s at 1000); on an idle machine, the same.
    # Decoding is many small products in a row: its threads must not fall asleep between them.
    os.environ.setdefault("GOMP_SPINCOUNT", "30000" if "run" in sys.argv[1:2] else "3000")
    silence_other_ranks()
    try:
        _check_renamed(sys.argv[1:2])
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except TyperException as error:  # a wrong option or argument
        message = error.format_message().rstrip(" .")  # empty if the help was shown instead
        code = _fail(explain(error) or f"{message}. See `{_command_of(error)} --help`.", 2) if message else 0
    except RegardError as error:
        code = _fail("" if error.is_of_another_rank else str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("interrupted", 130)
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # a full disk, a file without read permission and so on
        code = _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 2)
    except Exception as error:
        if place := place_of(error):  # of a file of the user's
            code = _fail(f"{place}: {type(error).__name__}: {error}; --debug shows all", 2)
        else:
            code = _fail(f"a bug in regard: {type(error).__name__}: {error}; --debug shows where", 1)
    sys.exit(code)


def _command_of(error: TyperException) -> str:
    """The command whose help explains a wrong option or argument."""
    context = getattr(error, "ctx", None)
    return f"regard {context.info_name}" if context and context.parent else "regard"


def _check_renamed(commands: list[str]) -> None:
    """ConfigError for the old name of a command."""
    for old in commands:
        if old in COMMANDS:
            raise ConfigError(f"regard {old} is now regard {COMMANDS[old]}")


def _fail(message: str, code: int) -> int:
    if os.environ.get("REGARD_DEBUG"):
        traceback.print_exc(file=error_stream())
    note_failure(" ".join(message.split()), code)
    return code
