"""The pages of docs/lectures are run: their code works, their outputs are real, their commands parse.

The ```python blocks of a page run in order, in one namespace, in an empty folder. What a block prints must be what
stands in the ```text block right behind it; a block with none must print nothing. (Blanks at the ends of lines and
empty lines at either end do not count.) Each `regard …` line of a ```sh block must be a command with options that there
are, and a recipe with settings that there are. What is wrong is told with the page's own line.
"""

import io
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import typer

from regard import recipes
from regard.cli import app
from regard.cli.app import split
from regard.config import override
from regard.tasks.recipe import Given

PAGES = sorted(Path(__file__).parents[2].glob("docs/lectures/*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    kind: str
    line: int  # of its first line in the page
    content: str
    behind: "Block | None"  # what follows it with nothing between


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    following, begins = None, len(page)
    for match in reversed(list(FENCE.finditer(page))):
        behind = following if not page[match.end() : begins].strip() else None
        line = page.count("\n", 0, match.start(2)) + 1
        following, begins = Block(match[1], line, match[2], behind), match.start()
        found.append(following)
    assert page.count("\n```") == 2 * len(found), "a fence that is not closed, or indented"
    return found[::-1]


def run_page(name: str, page: str) -> None:
    """Run all python blocks of a page; a failure names the page and the line."""
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks_of(page):
        if block.kind == "python":
            printed = run_block(name, block, namespace)
            shown = block.behind if block.behind and block.behind.kind == "text" else None
            compare(name, printed, shown, block.line)


def run_block(name: str, block: Block, namespace: dict[str, object]) -> str:
    """Run one block; what it printed."""
    code = compile("\n" * (block.line - 1) + block.content, name, "exec")  # so that its lines are the page's
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(code, namespace)
    except Exception as error:
        line, trace = block.line, error.__traceback__
        while trace is not None:  # the innermost line that stands in this block
            if trace.tb_frame.f_code.co_filename == name and block.line <= trace.tb_lineno:
                line = trace.tb_lineno
            trace = trace.tb_next
        source = block.content.splitlines()[line - block.line].strip()
        raise AssertionError(f"{name}:{line}: {type(error).__name__} at `{source}` {error}") from error
    return printed.getvalue()


def compare(name: str, printed: str, shown: Block | None, line: int) -> None:
    """What was printed and what the page shows, line by line."""
    real = [each.rstrip() for each in printed.strip().splitlines()]
    told = [each.rstrip() for each in shown.content.strip().splitlines()] if shown else []
    first = shown.line if shown else line
    for number in range(max(len(real), len(told))):
        one, other = (lines[number] if number < len(lines) else None for lines in (real, told))
        assert one == other, f"{name}:{first + number}: printed {one!r}, the page shows {other!r}"


def check_commands(name: str, page: str) -> int:
    """Hold the commands of a page's sh blocks against the real ones; how many there are."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    seen = 0
    for block in blocks_of(page):
        for number, line in enumerate(block.content.splitlines() if block.kind == "sh" else []):
            words = shlex.split(re.split(r" [|<>] ", line)[0], comments=True)
            if words[:1] != ["regard"]:
                continue
            seen += 1
            try:
                assert words[1] in commands, f"no command is called {words[1]}"
                given = commands[words[1]].make_context(words[1], words[2:]).params  # parses, runs nothing
                if words[1] == "train":
                    paths, settings = split(given["arguments"] or [])
                    override(recipes.find(given["recipe"]).settings(Given(paths)), settings)
                if words[1] == "recipes" and given["name"]:
                    recipes.find(given["name"])
            except Exception as error:
                raise AssertionError(f"{name}:{block.line + number}: `{line}`: {error}") from error
    return seen


@pytest.fixture
def _as_a_student(tmp_path, monkeypatch):
    """An empty folder, one thread, a fixed seed; the default precision is put back."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(before)


@pytest.mark.usefixtures("_as_a_student")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_runs_and_prints_what_it_shows(path):
    assert torch.get_num_threads() == 1
    run_page(f"docs/lectures/{path.name}", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_commands_of_the_page_are_there(path):
    assert check_commands(f"docs/lectures/{path.name}", path.read_text(encoding="utf-8")) > 0


def test_there_are_pages():
    assert "build-a-gpt" in [path.stem for path in PAGES]


# ------------------------------------------------ a page that is wrong is found


PAGE = """# Title

```python
def half(number):
    return number / 2
```

Words between.

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
regard run runs/x "a text" --samples 10 | head -3   # ten
regard train gpt novel.txt -o runs/x training.steps=5
ls
```
"""


def test_a_right_page_passes():
    run_page("page.md", PAGE)
    assert check_commands("page.md", PAGE) == 2


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
def test_wrong_code_or_output_is_told_with_its_line(right, wrong, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        run_page("page.md", PAGE.replace(right, wrong))


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("--samples", "--smaples", "page.md:22: `regard run"),
        ("regard run", "regard rnu", "no command is called rnu"),
        ("train gpt", "train gtp", "page.md:23: "),
        ("training.steps=5", "training.stpes=5", "did you mean training.steps"),
        ("10 |", "ten |", "page.md:22: "),
    ],
)
def test_a_wrong_command_is_told_with_its_line(right, wrong, message):
    with pytest.raises(AssertionError, match=re.escape(message)):
        check_commands("page.md", PAGE.replace(right, wrong))


def test_an_open_fence_is_found():
    with pytest.raises(AssertionError, match="not closed"):
        blocks_of("Words\n\n```python\nx = 1\n")
