"""What can go wrong, as one tree; the command line and the server catch its root and nothing else.

    RegardError            a user's mistake or a fault outside: one line says what, got, wanted, what to do
    ├── ConfigError        a key, a value or a combination of values that cannot be
    ├── DataError          a file of the user's that cannot be read as what it should be
    │   └── ImageError     a file, or bytes, that cannot be read as an image
    ├── FolderError        a model folder that is missing, damaged or of another kind
    ├── InputError         an input the model cannot take
    └── TrainingError      a run that cannot go on
        └── DivergedError  a run whose loss, gradients or weights are not finite any more

A mistake of the programmer is an assertion or an ordinary Python exception, never one of these.
"""


class RegardError(Exception):
    """The root. Its text is one line for the user."""

    exit_code = 2  # of the command line


class ConfigError(RegardError):
    """A key, a value or a combination of values that cannot be."""


class DataError(RegardError):
    """A file of the user's that cannot be read as what it should be."""


class ImageError(DataError):
    """A file, or bytes, that cannot be read as an image."""


class FolderError(RegardError):
    """A model folder that is missing, damaged or of another kind."""


class InputError(RegardError):
    """An input the model cannot take."""


class TrainingError(RegardError):
    """A run that cannot go on."""


class DivergedError(TrainingError):
    """A run whose loss, gradients or weights are not finite any more."""

    exit_code = 1  # no mistake in the command: the result is not there


def escape_controls(text: str) -> str:
    """The text with control characters written out (\\x1b), but for newlines and tabs.

    Names of files, weights and keys come from elsewhere; a terminal would obey the escape sequences in them.
    """
    return "".join(
        sign if sign.isprintable() or sign in "\n\t " else sign.encode("unicode_escape").decode() for sign in text
    )
