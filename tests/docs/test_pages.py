"""The documentation is tested: lectures run and print what they show, commands parse, links and files exist.

The ```python blocks of a lecture run in order, in one namespace, in an empty folder. The output of a block must equal
the ```text block that follows it immediately; a block without one must print nothing. (Trailing spaces, and empty lines
at either end, are ignored.) On every page, each `regard …` of a ```sh block, of indented code or of a table must be an
existing command with existing options, recipes and settings. Errors name the line of the page.
"""

import re
import shlex
from pathlib import Path

import pytest
import torch
import typer

from docs.site.pages import FENCE, Block, blocks_of, run_page
from regard import recipes
from regard.cli import app
from regard.cli.app import split
from regard.config import override
from regard.extensions import is_code
from regard.tasks.recipe import Recipe, TrainingInputs

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "src" / "regard" / "templates" / "model.py"
MADE = ("docs/_build", "docs/reference/api", "docs/reference/commands.md")  # by `make docs`
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not path.relative_to(ROOT).as_posix().startswith(MADE)
)
LECTURES = sorted(ROOT.glob("docs/lectures/*.md"))
GUIDES = sorted([ROOT / "README.md", ROOT / "docs/first-hour.md", *ROOT.glob("docs/how-to/*.md")])
FILE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|c))`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def check_page(name: str, page: str) -> None:
    """Run all python blocks of a page and compare what they print with what it shows."""
    for block, printed in run_page(name, page):
        compare(name, printed, block.output, block.line)


def compare(name: str, printed: str, shown: Block | None, line: int) -> None:
    """Compare the printed lines with those on the page."""
    real = [each.rstrip() for each in printed.strip().splitlines()]
    expected = [each.rstrip() for each in shown.content.strip().splitlines()] if shown else []
    first = shown.line if shown else line
    for number in range(max(len(real), len(expected))):
        one, other = (lines[number] if number < len(lines) else None for lines in (real, expected))
        assert one == other, f"{name}:{first + number}: printed {one!r}, the page shows {other!r}"


def commands_of(page: str) -> list[tuple[int, str]]:
    """The lines with `regard …` in sh blocks, in indented code and in the cells of tables, with their line numbers."""
    found = []
    for block in blocks_of(page):
        if block.kind == "sh":
            found += list(enumerate(block.content.splitlines(), block.line))
    prose = FENCE.sub(lambda match: "\n" * match[0].count("\n"), page)
    for number, line in enumerate(prose.splitlines(), 1):
        if line.startswith("    "):
            found.append((number, line.strip()))
        elif line.startswith("|"):
            found += [(number, code) for code in re.findall(r"`(regard [^`]+)`", line)]
    return sorted((number, line) for number, line in found if line.startswith("regard "))


def check_commands(name: str, page: str) -> int:
    """Parse the commands of a page; return how many there are."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    found = commands_of(page)
    for number, line in found:
        command, *arguments = shlex.split(re.split(r" [|<>] ", line)[0], comments=True)[1:]
        try:
            assert command in commands, f"no command is called {command}"
            given = commands[command].make_context(command, arguments).params  # parses without running
            if command == "train":
                paths, settings = split(given["arguments"] or [])
                override(recipe_of(given["recipe"]).settings(TrainingInputs(paths)), settings)
                for one in given["grid"] or []:
                    override(recipe_of(given["recipe"]).settings(TrainingInputs(paths)), [one.partition(",")[0]])
            if command == "recipes" and given["name"]:
                recipe_of(given["name"])
        except Exception as error:
            raise AssertionError(f"{name}:{number}: `{line}`: {error}") from error
    return len(found)


def recipe_of(name: str) -> Recipe:
    """The recipe of a command; where the page names a file of the reader's, what `regard new model` writes."""
    return recipes.find(str(TEMPLATE) if is_code(name) else name)


def broken_links(path: Path, page: str) -> list[str]:
    """The links of a page to files that do not exist. Code has brackets too, and is left out."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page))
    return [
        link for link in LINK.findall(prose) if not link.startswith("https://") and not (path.parent / link).exists()
    ]


def missing_files(page: str) -> list[str]:
    """The files in backticks that exist neither in the repository nor in the package; NAME stands for a new one."""
    named = [file for file in FILE.findall(page) if "NAME" not in file]
    return [file for file in named if not (ROOT / file).exists() and not (ROOT / "src/regard" / file).exists()]


@pytest.fixture
def _as_a_student(tmp_path, monkeypatch):
    """An empty folder and a fixed seed; restores the default dtype."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)


@pytest.mark.prove
@pytest.mark.usefixtures("_as_a_student")
@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_the_page_runs_and_prints_what_it_shows(path):
    assert torch.get_num_threads() == 1
    check_page(f"docs/lectures/{path.name}", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_the_page_parse(path):
    seen = check_commands(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    assert seen > 0 or path not in GUIDES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_links_of_the_page_resolve(path):
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_files_that_the_page_names_exist(path):
    assert missing_files(path.read_text(encoding="utf-8")) == []


def test_there_are_pages():
    assert "build-a-gpt" in [path.stem for path in LECTURES]
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "speed.md"} <= {path.name for path in PAGES}


# ------------------------------------------------ errors in a page are found


PAGE = """# Title

```python
def half(number):
    return number / 2
```

Text between.

```python
assert half(4) == 2
print(half(3))
print("a", end="  ")
```

```text
1.5
a
```

```sh
regard run runs/x "a text" --num-samples 10 | head -3   # ten
regard train gpt novel.txt -o runs/x training.steps=5
ls
```

| `regard info runs/x` | what a folder contains |

    regard check runs/x
"""


def test_a_correct_page_passes():
    check_page("page.md", PAGE)
    assert check_commands("page.md", PAGE) == 4


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("== 2", "== 3", "page.md:11: AssertionError at `assert half(4) == 3`"),
        ("number / 2", "numbr / 2", "page.md:11: NameError at `assert half(4) == 2` name 'numbr'"),
        ("1.5", "1.6", "page.md:17: printed '1.5', the page shows '1.6'"),
        ("1.5\na\n", "1.5\na\nb\n", "page.md:19: printed None, the page shows 'b'"),
        ("```text", "```json", "page.md:11: printed '1.5', the page shows None"),
        ("```text", "So:\n\n```text", "page.md:11: printed '1.5', the page shows None"),
    ],
)
def test_wrong_code_or_output_is_reported_with_its_line(right, wrong, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_page("page.md", PAGE.replace(right, wrong))


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("--num-samples", "--smaples", "page.md:22: `regard run"),
        ("regard run", "regard rnu", "no command is called rnu"),
        ("train gpt", "train gtp", "page.md:23: "),
        ("training.steps=5", "training.stpes=5", "did you mean training.steps"),
        ("10 |", "ten |", "page.md:22: "),
        ("regard info", "regard inof", "page.md:27: "),
        ("    regard check", "    regard chekc", "page.md:29: "),
    ],
)
def test_a_wrong_command_is_reported_with_its_line(right, wrong, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_commands("page.md", PAGE.replace(right, wrong))


def test_an_open_fence_is_found():
    with pytest.raises(AssertionError, match="not closed"):
        blocks_of("Text\n\n```python\nx = 1\n")


def test_a_broken_link_is_found():
    page = "[one](README.md) [two](nowhere.md#top) `a[0](b)` [three](https://example.org)\n```python\nf[1](x)\n```\n"
    assert broken_links(ROOT / "CHANGELOG.md", page) == ["nowhere.md"]


def test_a_missing_file_is_found():
    page = "`src/regard/config.py`, `tasks/base.py`, `src/regard/models/NAME.py` and `tasks/nowhere.py`"
    assert missing_files(page) == ["tasks/nowhere.py"]
