"""Load the C kernels: those that the wheel brings for this processor, or else compiled for it on first use from csrc/
and kept in the user's cache directory.

Where that fails, `library()` is None and `why_missing()` gives the reason: every op then takes its torch form, which is
slower. REGARD_KERNELS=off does the same on request.
"""

import ctypes
import hashlib
import os
import platform
import stat
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from regard.ops.building import FLAGS, NATIVE, compile_library, find_prebuilt, processor, sources_digest

DISABLED_BY_USER = "REGARD_KERNELS=off"
OUT_OF_MEMORY, OUT_OF_RANGE = 1, 2  # what a function may return, as in csrc/simd.h
LONG, POINTER, FLOAT, INT, UINT32 = ctypes.c_long, ctypes.c_void_p, ctypes.c_float, ctypes.c_int, ctypes.c_uint32
# function -> (return type, argument types), as declared in the C files; a test compares them
SIGNATURES: dict[str, tuple[type | None, list[Any]]] = {
    "activation_backward": (None, [POINTER] * 3 + [LONG, INT, INT]),
    "activation_forward": (None, [POINTER] * 2 + [LONG, INT, INT]),
    "additive_attention": (None, [POINTER] * 7 + [LONG] * 4 + [INT]),
    "additive_attention_back": (None, [POINTER] * 11 + [LONG] * 4 + [INT]),
    "add_layer_norm": (None, [POINTER] * 5 + [LONG] * 2 + [FLOAT, INT]),
    "argmax_shortlist": (INT, [POINTER] * 9 + [LONG] * 4 + [FLOAT, POINTER, INT]),
    "attention_decode": (INT, [POINTER] * 6 + [LONG] * 17 + [FLOAT, INT]),
    "attention_varlen": (INT, [POINTER] * 5 + [LONG] * 10 + [FLOAT, INT]),
    "cross_entropy": (None, [POINTER] + [LONG] * 2 + [POINTER, FLOAT, POINTER, INT]),
    "dropout": (None, [POINTER] * 2 + [LONG] * 2 + [UINT32] * 3 + [FLOAT, INT]),
    "gru_step": (None, [POINTER] * 2 + [LONG] + [POINTER] * 3 + [LONG] * 2 + [INT]),
    "gru_step_back": (None, [POINTER] * 5 + [LONG] + [POINTER] + [LONG] * 2 + [INT]),
    "int8_is_supported": (INT, []),
    "linear": (INT, [POINTER] * 4 + [LONG] * 4 + [INT] * 2),
    "linear_int8": (INT, [POINTER] * 5 + [LONG] * 3 + [FLOAT, INT]),
    "linear_packed": (INT, [POINTER] * 4 + [LONG] * 3 + [INT] * 3),
    "linear_workspace": (LONG, [LONG, LONG, INT]),
    "logsumexp": (None, [POINTER] + [LONG] * 3 + [POINTER, INT]),
    "pack_matrix": (INT, [POINTER, INT, LONG, POINTER] + [LONG] * 2 + [INT] * 3),
    "quantize_rows": (None, [POINTER] + [LONG] * 3 + [POINTER] * 5 + [INT]),
    "run_step": (INT, [POINTER, LONG, POINTER, INT]),
    "topk": (None, [POINTER] + [LONG] * 4 + [POINTER, POINTER, INT]),
    "unpack_rows": (INT, [POINTER] + [LONG] * 2 + [INT] * 2 + [POINTER, LONG, POINTER, INT]),
}


def library() -> ctypes.CDLL | None:
    """The compiled C library, or None."""
    return _load()[0]


def why_missing() -> str | None:
    """Why there is no C library; None if there is one."""
    return _load()[1]


def origin() -> str | None:
    """Where the C library comes from; None if there is none."""
    return _load()[2]


@cache
def _load() -> tuple[ctypes.CDLL | None, str | None, str | None]:
    """The library or the reason why there is none, and where it comes from."""
    if os.environ.get("REGARD_KERNELS", "").lower() in ("off", "0", "no"):
        return None, DISABLED_BY_USER, None
    if platform.system() != "Linux":  # elsewhere torch and the compiler use different OpenMP runtimes
        return None, f"the kernels need Linux, this is {platform.system()}", None
    if platform.machine() == "x86_64" and "avx2" not in processor():
        return None, "this processor has no AVX2", None
    try:
        if found := find_prebuilt():
            return _open(found[0]), None, f"from the wheel, for {found[1]} ({found[0]})"
        path = _library_path()
        _check_folders(path)
        if not path.exists():
            compile_library(path, NATIVE)
        _check_owner(path)
        try:
            library = _open(path)
        except (OSError, AttributeError):  # truncated or of another version: compile it again
            compile_library(path, NATIVE)
            library = _open(path)
        return library, None, f"compiled for this processor ({path})"
    except (OSError, RuntimeError, AttributeError, ValueError, subprocess.SubprocessError) as error:
        return None, _reason(error), None


def _check_folders(path: Path) -> None:
    """Refuse a place below a folder in which another user could exchange it, between this check and the loading.

    In a sticky folder, such as /tmp, others cannot rename what is not theirs.
    """
    for folder in (*path.parents, *path.resolve().parents):
        if folder.exists():
            found = folder.stat()
            shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            if shared or found.st_uid not in (0, os.getuid()):
                raise PermissionError(_writable(folder))


def _check_owner(path: Path) -> None:
    """Refuse a library that another user could have written."""
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(_writable(path))


def _writable(path: Path) -> str:
    return f"{path} is writable by other users, so no library is loaded from there; fix its owner and mode"


def _open(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = (error.stderr or "").strip().splitlines()
        errors = [line for line in lines if "error" in line] or lines or [f"exit code {error.returncode}"]
        return f"the C compiler failed: {errors[0]}"
    return " ".join(str(error).split())


def _library_path() -> Path:
    """The file for these sources, this processor and this torch."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not root.is_absolute():
        root = Path.home() / ".cache"
    target = f"{platform.machine()} {processor()} {torch.__version__} {FLAGS} {NATIVE} {sources_digest()}"
    return root / "regard" / f"kernels-{hashlib.sha256(target.encode()).hexdigest()[:16]}.so"
