"""Add what a long run of the fuzzer found to the corpus: the shortest inputs that reach new lines of regard.

python -m tests.attack fuzz --minutes 10 --inputs FOLDER
python -m tests.attack.keep FOLDER
"""

import base64
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import regard
from tests.attack.fuzz import CORPUS, corpus, file_name
from tests.attack.targets import TARGETS, Target

SOURCE = str(Path(regard.__file__).parent)
MOST = 18  # new inputs of a target
MAX_BYTES = 3_000


def reached(target: Target, data: bytes) -> set[tuple[str, int]]:
    """The lines of regard that run when a target reads these bytes."""
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        target.survives(data)
    finally:
        sys.settrace(None)
    return lines


def chosen(target: Target, old: list[bytes], new: list[bytes]) -> list[bytes]:
    """The old inputs, and of the new ones those that reach what none before them reached."""
    seen = {line for data in old for line in reached(target, data)}
    kept = list(old)
    for data in sorted(new, key=len):
        if len(data) <= MAX_BYTES and len(kept) < len(old) + MOST and (lines := reached(target, data)) - seen:
            kept.append(data)
            seen |= lines
    return kept


def main(folder: Path) -> None:
    for name, target in TARGETS.items():
        found = sorted((folder / name).glob("*"))
        kept = chosen(target, corpus(name), [path.read_bytes() for path in found])
        texts = [base64.b64encode(data).decode() for data in sorted(set(kept), key=lambda data: (len(data), data))]
        (CORPUS / file_name(name)).write_text(json.dumps(texts, indent=0) + "\n", "utf-8")
        sys.stdout.write(f"{name}: {len(texts)} inputs\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
