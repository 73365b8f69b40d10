"""The C files beside this one, compiled for this machine on first use and kept in the user's cache.

Where that cannot be done, `library()` is None and `why_not()` says why: everything then runs on torch alone, slower.
REGARD_KERNELS=off asks for that.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

SOURCES = Path(__file__).parent
FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-strict-aliasing", "-fopenmp", "-fPIC", "-shared"]
NOT_WANTED = "REGARD_KERNELS=off"
NUMBER, POINTER, FLOAT, COUNT = ctypes.c_long, ctypes.c_void_p, ctypes.c_float, ctypes.c_int
# function -> (what it returns, what it takes), as the C files have it
SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "linear": (COUNT, [POINTER] * 4 + [NUMBER] * 4 + [COUNT] * 2),
    "round_rows": (None, [POINTER] + [NUMBER] * 3 + [POINTER] * 5 + [COUNT]),
    "likeliest": (COUNT, [POINTER] * 9 + [NUMBER] * 4 + [FLOAT, POINTER, COUNT]),
    "linear_int8": (COUNT, [POINTER] * 5 + [NUMBER] * 3 + [FLOAT, COUNT]),
    "int8_is_here": (COUNT, []),
    "activate": (None, [POINTER] * 2 + [NUMBER, COUNT, COUNT]),
    "activation_gradient": (None, [POINTER] * 3 + [NUMBER, COUNT, COUNT]),
    "attend": (COUNT, [POINTER] * 6 + [NUMBER] * 16 + [FLOAT, COUNT]),
    "attend_blocks": (COUNT, [POINTER] * 5 + [NUMBER] * 10 + [FLOAT, COUNT]),
    "norm_of_sum": (None, [POINTER] * 5 + [NUMBER] * 2 + [FLOAT, COUNT]),
    "log_totals": (None, [POINTER] + [NUMBER] * 3 + [POINTER, COUNT]),
    "cross_entropy": (None, [POINTER] + [NUMBER] * 2 + [POINTER, FLOAT, POINTER, COUNT]),
    "dropout": (None, [POINTER] * 2 + [NUMBER] + [ctypes.c_uint32] * 3 + [FLOAT, COUNT]),
    "top": (None, [POINTER] + [NUMBER] * 4 + [POINTER, POINTER, COUNT]),
}


def library() -> ctypes.CDLL | None:
    """The compiled kernels, or None."""
    return _load()[0]


def why_not() -> str | None:
    """Why there are no kernels; None: there are."""
    return _load()[1]


@cache
def _load() -> tuple[ctypes.CDLL | None, str | None]:
    if os.environ.get("REGARD_KERNELS", "").lower() in ("off", "0", "no"):
        return None, NOT_WANTED
    if platform.system() != "Linux":  # elsewhere torch's threads and the compiler's are of different kinds
        return None, f"the kernels are written for Linux, this is {platform.system()}"
    if platform.machine() == "x86_64" and "avx2" not in _processor():
        return None, "this processor has no AVX2"
    try:
        path = _place()
        if not path.exists():
            _compile(path)
        _check_owner(path)
        try:
            return _opened(path), None
        except (OSError, AttributeError):  # cut short, or not ours: made anew
            _compile(path)
            return _opened(path), None
    except (OSError, RuntimeError, AttributeError, ValueError, subprocess.SubprocessError) as error:
        return None, _reason(error)


def _check_owner(path: Path) -> None:
    """Nobody but this user can have written the library."""
    for place in (path.parent, path):
        found = place.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise PermissionError(
                f"{place} is not this user's alone to write, so it is not loaded; mend owner and mode"
            )


def _opened(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = (error.stderr or "").strip().splitlines()
        wrong = [line for line in said if "error" in line] or said or [f"exit code {error.returncode}"]
        return f"the C compiler failed: {wrong[0]}"
    return " ".join(str(error).split())


def _place() -> Path:
    """Where the library of these sources, this processor and this torch lies."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():
        root = Path.home() / ".cache"
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]")))
    made_for = f"{platform.machine()} {_processor()} {torch.__version__} {FLAGS}".encode()
    return root / "regard" / f"kernels-{hashlib.sha256(content + made_for).hexdigest()[:16]}.so"


def _processor() -> str:
    """What this processor can do: a library made for another one may not run here."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _compile(path: Path) -> None:
    """Compile into a temporary file beside it, then rename: two processes may do it at once."""
    # gcc first: its threads are torch's own, those of clang come beside them.
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if not compiler:
        raise FileNotFoundError("there is no C compiler (gcc, cc or clang) here")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        sources = sorted(str(source) for source in SOURCES.glob("*.c"))
        subprocess.run(
            [*shlex.split(compiler), *FLAGS, "-o", str(made), *sources, "-lm"],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        made.chmod(0o700)
        made.rename(path)
