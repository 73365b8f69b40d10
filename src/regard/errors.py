"""The exceptions of regard, as one tree. The command line catches RegardError and nothing else.

    RegardError            a mistake of the user or a fault outside regard: one line with the fix
    ├── ConfigError        an unknown key, a wrong value, or values that do not fit together
    ├── DataError          a data file that cannot be read in its format
    │   └── ImageError     a file, or bytes, that cannot be read as an image
    ├── FolderError        a model folder that is missing, damaged or of another kind
    ├── InputError         an input that the model cannot process
    └── TrainingError      a run that cannot continue
        └── DivergedError  a run whose loss, gradients or weights are no longer finite

Its text says what is wrong, what was given, what is wanted and what to do. A bug is an assertion or an ordinary Python
exception, never one of these.
"""


class RegardError(Exception):
    """The root. Its text is one line for the user."""

    exit_code = 2  # of the command line


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


def escape_controls(text: str) -> str:
    """The text with control characters written out (\\x1b), but for newlines and tabs.

    Names of files, weights and keys come from elsewhere; a terminal would obey the escape sequences in them.
    """
    return "".join(
        sign if sign.isprintable() or sign in "\n\t " else sign.encode("unicode_escape").decode() for sign in text
    )
