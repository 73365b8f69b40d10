"""How the C files of csrc/ are compiled. Without torch or regard: the build hook of the wheel loads this file too.

A wheel has a library for each of VARIANTS; elsewhere one is compiled for this very processor on first use.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent / "csrc"
PREBUILT = Path(__file__).parent / "prebuilt"  # in a wheel
FLAGS = ["-O3", "-fno-math-errno", "-fno-strict-aliasing", "-fopenmp", "-fPIC", "-shared"]
NATIVE = ["-march=native"]
TIMEOUT = 900  # seconds; built for the sanitizers it takes minutes


class Variant(NamedTuple):
    """A library in a wheel, and the processors that it runs on."""

    name: str
    machine: str
    needs: frozenset[str]  # of the instruction sets in /proc/cpuinfo
    flags: list[str]


AVX2 = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "movbe", "abm"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512_vnni"}
VARIANTS = (  # the fastest first
    Variant("avx512-vnni", "x86_64", AVX512, ["-march=cascadelake"]),
    Variant("avx2", "x86_64", AVX2, ["-march=haswell"]),
    Variant("armv8", "aarch64", frozenset(), ["-march=armv8-a"]),
)


def processor() -> str:
    """The instruction sets of this processor, as Linux lists them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def sources_digest() -> str:
    """Changes with the C files: a library of other sources is not loaded."""
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]")))
    return hashlib.sha256(content + str(FLAGS).encode()).hexdigest()[:16]


def prebuilt_name(variant: Variant) -> str:
    return f"kernels-{sources_digest()}-{variant.name}.so"


def find_prebuilt() -> tuple[Path, str] | None:
    """The library of this wheel that this processor runs, and the name of its variant."""
    if not PREBUILT.is_dir():
        return None
    has = set(processor().split())
    for variant in VARIANTS:
        path = PREBUILT / prebuilt_name(variant)
        if variant.machine == platform.machine() and variant.needs <= has and path.is_file():
            return path, variant.name
    return None


def compile_library(path: Path, flags: list[str]) -> None:
    """Compile into a temporary directory beside it, then rename: two processes may do it at once."""
    # gcc first: its OpenMP runtime is the one torch uses; clang's would add threads of its own.
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if not compiler:
        raise FileNotFoundError("there is no C compiler (gcc, cc or clang)")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        sources = sorted(str(source) for source in SOURCES.glob("*.c"))
        subprocess.run(
            [*shlex.split(compiler), *FLAGS, *flags, "-o", str(made), *sources, "-lm"],
            check=True,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        made.chmod(0o700)
        made.rename(path)
