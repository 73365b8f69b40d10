"""Commands under torchrun, as a user starts them."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def torchrun(processes: int, *arguments: object, cwd: Path, more: Sequence[str] = ()) -> subprocess.Popen:
    """`python -m` these arguments in so many processes; a free port of 127.0.0.1."""
    here = ["--standalone", "--local-addr=127.0.0.1", f"--nproc-per-node={processes}"]
    words = [*here, *more, "-m", *map(str, arguments)]
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *words],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen) -> tuple[int, str, list[str]]:
    """Exit code, standard output, and our lines of standard error, without those of torchrun."""
    output, errors = process.communicate(timeout=600)
    lines = [line for line in errors.splitlines() if line.startswith(("error:", "note:", "a bug", "stopped", "resum"))]
    return process.returncode, output, lines
