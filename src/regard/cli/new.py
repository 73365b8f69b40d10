"""`regard new`: a file of one's own to start from."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.app import AsJson, app
from regard.errors import ConfigError
from regard.printing import print_json, show

KINDS = ("model",)


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="What: model.")],
    file: Annotated[Path, typer.Argument(help="The Python file to write: mine.py.")],
    as_json: AsJson = False,
) -> None:
    """Write a model of your own, a small GPT to change, with its recipe, and a test beside it.

    Example: `regard new model mine.py`
    """
    from regard.files import write_file

    if kind not in KINDS:
        raise ConfigError(f"regard new {kind}: wanted {' or '.join(KINDS)}; for example regard new model mine.py")
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise ConfigError(f"{file}: wanted a Python file whose name can be imported, such as mine.py")
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"{file}: there is no folder {file.parent}; make it first")
    test = file.with_name(f"test_{file.name}")
    for path in (file, test):
        if path.exists():
            raise ConfigError(f"{path} exists; give another name")
    for path, template in ((file, "model.py"), (test, "test_model.py")):
        write_file(path, _text(template, file).encode())
    if as_json:
        print_json({"files": [str(file), str(test)]})
        return
    show(
        f"{file}, {test}: written. Try:\n"
        f"  regard train {file}:recipe novel.txt -o runs/{file.stem}\n"
        f'  regard run runs/{file.stem} "Once upon a time" --trust\n'
        f"  pytest {test}"
    )


def _text(template: str, file: Path) -> str:
    """A template under the name of the user's file."""
    text = (Path(__file__).parents[1] / "templates" / template).read_text(encoding="utf-8")
    for ours, theirs in {"regard.templates.model": file.stem, "mine.py": file.name, "/mine": f"/{file.stem}"}.items():
        text = text.replace(ours, theirs)
    return text
