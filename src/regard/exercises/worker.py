"""Judges a student's file, a line of JSON each way; run by `regard.sandbox.Worker`, never imported.

The child process bounds endless loops and memory. It is no wall against hostile code: it is the student's own.
"""

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def bound(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the bound on time remains
        return
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def bound_time(seconds: float) -> None:
    """End this process after so many seconds of processor time from now on; 0: no longer."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.setitimer(signal.ITIMER_PROF, seconds)


def judged(name: str, path: str) -> dict[str, Any]:
    from regard.exercises import find
    from regard.exercises.exercise import judge

    exercise = find(name)
    spec = importlib.util.spec_from_file_location("answer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        line = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return {"passed": False, "message": f"the file does not run: {type(error).__name__}{line}: {error}"}
    function = getattr(module, exercise.function, None)
    if not callable(function):
        return {"passed": False, "message": f"there is no function {exercise.function}; keep the name of the skeleton"}
    return vars(judge(exercise, function))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what the student prints must not stand in the answer
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import torch

    torch.set_num_threads(1)
    bound(int(sys.argv[1]))
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        bound_time(float(sys.argv[2]))
        answer = judged(request["exercise"], request["path"])
        bound_time(0)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
