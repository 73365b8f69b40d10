"""`regard exercise`: write the skeleton of an exercise, or judge an answer."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, app
from regard.errors import InputError
from regard.printing import print_json, show

SECONDS, MEGABYTES, MAX_BYTES = 20.0, 8192, 1 << 20  # of an answer in its child process


@app.command()
def exercise(
    name: Annotated[str, typer.Argument(help="Which; without a name they are listed.")] = "",
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file of the answer.", show_default="NAME.py")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge the file instead of writing it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an exercise of the lectures as a file with a blank, or judge what you filled in.

    Answers are judged by numbers and laws: any code that computes the right thing is right. A typical mistake is named.
    Your file runs in a child process with bounds on time and memory.

    Examples: `regard exercise attention`, `regard exercise attention --check`
    """
    from regard.exercises import EXERCISES, find

    if not name:
        _list(as_json)
        return
    found = find(name)
    path = file or Path(f"{name.replace('-', '_')}.py")
    if check:
        passed, message = _judge(name, path)
        if as_json:
            print_json({"exercise": name, "file": str(path), "passed": passed, "message": message})
        else:
            show(f"{name}: {'passed, ' if passed else ''}{message}")
            following = list(EXERCISES)[list(EXERCISES).index(name) + 1 :][:1]
            if passed and following:
                show(f"Next: regard exercise {following[0]}")
        if not passed:
            raise typer.Exit(1)
        return
    if path.exists():
        raise InputError(f"{path} exists; give another -o, or judge it: regard exercise {name} --check -o {path}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first")
    from regard.files import write_file

    write_file(path, found.skeleton.encode())
    if as_json:
        print_json({"exercise": name, "file": str(path), "task": found.task})
        return
    show(f"{found.task}\n\n{path}: written. Fill in {found.signature}, then: regard exercise {name} --check")


def _list(as_json: bool) -> None:
    from regard.exercises import EXERCISES, find
    from regard.printing import show_table

    rows = [(name, find(name)) for name in EXERCISES]
    if as_json:
        print_json([{"exercise": name, "task": one.task, "page": one.page} for name, one in rows])
        return
    show_table([["exercise", "page of the lectures", "what"], *[[n, one.page, one.signature] for n, one in rows]])
    show("\nregard exercise NAME writes its file")


def _judge(name: str, path: Path) -> tuple[bool, str]:
    """Run the judge in a child process. InputError: there is no file."""
    from regard import exercises
    from regard.sandbox import LimitError, Worker

    if not path.is_file():
        raise InputError(f"{path}: there is no such file; `regard exercise {name}` writes it")
    worker = Worker(
        Path(exercises.__file__).with_name("worker.py"), seconds=SECONDS, megabytes=MEGABYTES, max_bytes=MAX_BYTES
    )
    try:
        answer = worker.ask({"exercise": name, "path": str(path.absolute())})
    except LimitError as error:
        return False, f"the answer {error}: is there an endless loop?"
    finally:
        worker.close()
    return bool(answer["passed"]), str(answer["message"])
