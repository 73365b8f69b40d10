"""Coverage-guided fuzzing of the readers with atheris: one process a target, from the kept corpus.

python -m tests.attack.fuzz TARGET FOLDER [libFuzzer's options]   what `fuzz` starts: one target in this process

A finding is an exception that is no RegardError, an input that takes more than SECONDS of processor time (or HANGS on
the clock), or MEGABYTES more than the process had before.
"""

import base64
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SECONDS = 5
HANGS = 60
MEGABYTES = 500
MAX_LENGTH = 4096  # bytes of an input
HEADER = 8  # bytes before the JSON that say how long it is, as safetensors has them
STRANGE: list[Any] = [
    *(None, True, False, "", "a", "\ud800", "\0", "../a", "a" * 300, [], {}, [[]], [None], {"a": {}}, [1, 2, 3, 4]),
    *(0, -1, 1, 2, 3, 7, 0.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**53, 2**63, 2**64, 10**30),
]
STRANGE_KEYS = ["", "a", "\ud800", "type", "id", "content", "name", "size", "a.b", "../a", "a" * 300]
CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fuzzed:
    """How many inputs were tried, and what was found: the last line of the failure, and the input."""

    tried: int
    finding: str = ""
    data: bytes = b""


def why_missing() -> str:
    """Why nothing can be fuzzed here; empty if atheris is installed."""
    return "" if find_spec("atheris") else "atheris is not installed (it has no wheel for every platform)"


def target_names() -> list[str]:
    """The names of the targets, without importing a reader: each is instrumented in the process that fuzzes it."""
    command = [sys.executable, "-c", "from tests.attack.targets import TARGETS; print(*TARGETS, sep='\\n')"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def corpus(target: str) -> list[bytes]:
    """The kept inputs of a target: a list of base64 texts in a JSON file."""
    path = CORPUS / file_name(target)
    return [base64.b64decode(text) for text in json.loads(path.read_text("utf-8"))] if path.exists() else []


def file_name(target: str) -> str:
    """The file of a target's corpus."""
    return re.sub("[^a-z0-9]+", "-", target.lower()) + ".json"


def fuzz(target: str, seconds: float, folder: Path | None = None) -> Fuzzed:
    """Fuzz a target for so long or until a finding; new inputs stay in `folder`, if one is given."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        inputs, artifacts = folder or Path(name, "inputs"), Path(name, "artifacts")
        inputs.mkdir(exist_ok=True, parents=True)
        artifacts.mkdir()
        options = [f"-max_total_time={seconds:.0f}", f"-artifact_prefix={artifacts}/", "-print_final_stats=1"]
        command = [sys.executable, "-m", "tests.attack.fuzz", target, str(inputs), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
        found = [path.read_bytes() for path in sorted(artifacts.iterdir()) if not path.name.startswith("slow")]
    tried = max([int(number) for number in re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)], default=0)
    if done.returncode == 0:
        return Fuzzed(tried)
    return Fuzzed(tried, _failure(done.stdout + done.stderr), found[0] if found else b"")


def _failure(output: str) -> str:
    """The exception, or what libFuzzer says: a timeout, too much memory."""
    raised = re.findall(r"=== Uncaught Python exception: ===\n(.*)", output)
    said = re.findall(r"ERROR: libFuzzer: (.*)", output)
    return (raised or said or output.strip().splitlines()[-1:] or ["it ended without a word"])[0]


def _mutate(start: int, data: bytes, max_length: int, seed: int) -> bytes:
    """Change one value of the JSON in an input; every third time, or where it has none, some bytes."""
    import atheris

    rng = random.Random(seed)
    try:
        if seed % 3 == 0:
            raise ValueError("bytes this time")
        head, end = data[:start], len(data)
        if start == HEADER:
            end = start + int.from_bytes(head, "little")
        text, rest = data[start:end], data[end:]
        changed = json.dumps(mutate_json(json.loads(text), rng)).encode()
    except (ValueError, RecursionError):
        found: bytes = atheris.Mutate(data, max_length)
        return found
    if start == HEADER:
        head = struct.pack("<Q", len(changed))
    return (head + changed + rest)[:max_length]


def mutate_json(value: Any, rng: random.Random) -> Any:
    """The value with one part of it replaced, removed, repeated or renamed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        change = rng.randrange(8)
        if change == 0:
            return {name: part for name, part in value.items() if name != key}
        if change == 1:
            return value | {rng.choice(STRANGE_KEYS): value[key]}
        return value | {key: mutate_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        middle = [[], [value[at]] * 2, [mutate_json(value[at], rng)]][rng.choice((0, 1, 2, 2, 2))]
        return [*value[:at], *middle, *value[at + 1 :]]
    if isinstance(value, int | float) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 2**31, -value, value, 0.5))
    return rng.choice(STRANGE)


def _worker(name: str, folder: Path, options: list[str]) -> None:
    """Fuzz one target in this process; never returns."""
    import atheris

    with atheris.instrument_imports(include=["regard"]):
        from tests.attack.targets import TARGETS

        target = TARGETS[name]
        for number, seed in enumerate([*target.seeds(), *corpus(name)]):
            (folder / f"seed-{number}").write_bytes(seed)
            target.survives(seed)  # imports what is imported late
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    limit = pages * os.sysconf("SC_PAGE_SIZE") // 2**20 + MEGABYTES
    bounds = [f"-timeout={HANGS}", f"-rss_limit_mb={limit}", f"-max_len={MAX_LENGTH}", "-reload=0"]
    mutator = {} if target.json_at is None else {"custom_mutator": partial(_mutate, target.json_at)}

    def survives(data: bytes) -> None:
        started = time.process_time()
        target.survives(data)
        if (seconds := time.process_time() - started) > SECONDS:
            raise TimeoutError(f"took {seconds:.1f} s of processor time")

    atheris.Setup([sys.argv[0], *bounds, *options, str(folder)], survives, **mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    _worker(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
