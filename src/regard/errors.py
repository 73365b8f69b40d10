"""The exceptions of regard, as one tree. The command line catches RegardError and nothing else.

    RegardError            a mistake of the user or a fault outside regard: one line with the fix
    ├── ConfigError        an unknown key, a wrong value, or values that do not fit together
    ├── DataError          a data file that cannot be read in its format
    │   └── ImageError     a file, or bytes, that cannot be read as an image
    ├── FolderError        a model folder that is missing, damaged or of another kind
    ├── InputError         an input that the model cannot process
    ├── TrainingError      a run that cannot continue
    │   └── DivergedError  a run whose loss, gradients or weights are no longer finite
    └── OtherRankError     another process of this run has failed, and says why

Its text says what is wrong, what was given, what is wanted and what to do. A bug is an assertion or an ordinary Python
exception, never one of these.
"""

import re
import sys


class RegardError(Exception):
    """The root. Its text is one line for the user."""

    exit_code = 2  # of the command line
    is_of_another_rank = False  # of several processes, which prints it


class ConfigError(RegardError):
    """An unknown key, a wrong value, or values that do not fit together."""


class DataError(RegardError):
    """A data file that cannot be read in its format."""


class ImageError(DataError):
    """A file, or bytes, that cannot be read as an image."""


class FolderError(RegardError):
    """A model folder that is missing, damaged or of another kind."""


class InputError(RegardError):
    """An input that the model cannot process."""


class TrainingError(RegardError):
    """A run that cannot continue."""


class DivergedError(TrainingError):
    """A run whose loss, gradients or weights are no longer finite."""

    exit_code = 1  # the command was right, but there is no result


class OtherRankError(RegardError):
    """Another process of this run has failed, and says why."""

    is_of_another_rank = True

    def __init__(self, rank: int, exit_code: int) -> None:
        super().__init__(f"rank {rank} has failed")
        self.exit_code = exit_code


# Control characters but newline and tab, those that turn the direction of writing, and half characters.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """The text with control characters written out (\\x1b), but for newlines and tabs.

    Names of files, weights and keys come from elsewhere; a terminal would obey the escape sequences in them.
    """
    return CONTROLS.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)


def escape_for_output(text: str) -> str:
    """The text for standard output: a terminal gets control characters written out, a pipe or a file the text."""
    return escape_controls(text) if sys.stdout.isatty() else text
