"""The commands: parse, call one function, print.

Results go to standard output, progress and notes to standard error. Exit 0: fine. 2: the user's mistake, said in one
line. 1: ours.
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
from regard.cli import measure  # isort: skip
from regard.cli import compare  # isort: skip
from regard.cli import words  # isort: skip
from regard.cli import pictures  # isort: skip
from regard.cli import folders  # isort: skip
from regard.cli.app import app
from regard.errors import RegardError
from regard.progress import note

__all__ = ["app", "compare", "folders", "main", "measure", "pictures", "run", "train", "words"]


def main() -> NoReturn:
    """Run a command; every error leaves as one line and an exit code."""
    # How long torch's threads wait awake for each other; read when torch is loaded. With the default a small
    # training step took ten times as long (3.1 against 0.27 s at 1000) beside one busy program; alone, within noise.
    # Writing is many small products one after the other: there the threads must not fall asleep between them.
    os.environ.setdefault("GOMP_SPINCOUNT", "30000" if "run" in sys.argv[1:2] else "3000")
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except TyperException as error:  # a wrong option or argument
        message = error.format_message()  # empty where the help was shown instead
        code = _fail(f"{message.rstrip(' .')}. See `regard --help`.", 2) if message.strip() else 0
    except RegardError as error:
        code = _fail(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("interrupted", 130)
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:  # the disk is full, a file may not be read, and the like
        code = _fail(f"{error.filename or 'the system'}: {error.strerror or error}", 2)
    except Exception as error:
        code = _fail(f"a fault of regard itself: {type(error).__name__}: {error}; --debug shows where", 1)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    if os.environ.get("REGARD_DEBUG"):
        traceback.print_exc()
    note(f"error: {' '.join(message.split())}")
    return code
