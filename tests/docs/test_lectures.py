"""The tables of the lectures: every name of code is there, every test exists, every slide is named."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docs.site.pages import notebook_of
from regard.experiments import ablation
from tests.docs.test_pages import LECTURES, ROOT, check_commands

ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
CODE = re.compile(r"`(regard(?:\.\w+)+(?::\w+)?)`")
TEST = re.compile(r"`(tests/[\w/]+\.py(?:::\w+)?)`")
SLIDE = re.compile(r"\b00[0-4]:\d+")
PAGES = [path for path in LECTURES if path.stem not in ("index", "build-a-gpt")]


def names_of(path: Path) -> set[str]:
    """The classes, functions and assigned names at the top of a file, and the methods of its classes."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


cached_names = cache(names_of)


def missing(page: str) -> list[str]:
    """The names of code and the tests of a page that are not there."""
    found = []
    for name in CODE.findall(page):
        module, _, attribute = name.partition(":")
        path = ROOT / "src" / Path(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not path.is_file() or (attribute and attribute not in cached_names(path)):
            found.append(name)
    for name in TEST.findall(page):
        file, _, test = name.partition("::")
        if not (ROOT / file).is_file() or (test and test not in cached_names(ROOT / file)):
            found.append(name)
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_name_and_every_test_of_a_page_exists(path):
    page = path.read_text(encoding="utf-8")
    assert missing(page) == []
    table = [row for row in ROW.findall(page) if SLIDE.search(row.split("|")[0])]
    assert len(table) >= 6 or path.stem == "coverage"  # whose slides stand in the second column
    for row in table:
        assert TEST.search(row), f"no test in {row}"


def test_a_name_that_is_gone_is_found():
    page = "`regard.layers.attention:attend` `regard.layers.attention:attends` `regard.nowhere:x` `tests/nowhere.py::a`"
    assert missing(page) == ["regard.layers.attention:attends", "regard.nowhere:x", "tests/nowhere.py::a"]
    assert missing("`tests/docs/test_lectures.py::test_nothing`") == ["tests/docs/test_lectures.py::test_nothing"]


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/lectures/index.md").read_text(encoding="utf-8")
    for path in LECTURES:
        assert path.stem == "index" or f"\n{path.stem}\n" in index


def test_the_commands_of_make_lecture_parse():
    target = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nlecture:")[1].split("\nclean:")[0]
    lines = []
    for line in target.splitlines():
        loop = re.match(r"\tfor (\w) in ([\w -]+); do (.*) \|\| exit 1; done", line)
        names = loop[2].split() if loop else [""]
        command = loop[3] if loop else line.strip()
        lines += [command.replace(f"$${loop[1]}" if loop else "$$", name) for name in names]
    commands = [line.replace("$(BIN)/", "").replace("$(TEXT) ", "") for line in lines if "$(BIN)/regard" in line]
    assert check_commands("Makefile", "\n".join(f"    {one}" for one in commands)) == len(commands) > 15


def test_the_timeline_is_in_order():
    index = (ROOT / "docs/lectures/index.md").read_text(encoding="utf-8")
    years = [int(year) for year in re.findall(r"^\| (\d{4}) \|", index, re.MULTILINE)]
    assert years == sorted(years)
    assert {2001, 2015, 2017, 2018} <= set(years)


def test_coverage_has_every_row_with_a_test_and_a_place_and_counts_them():
    page = (ROOT / "docs/lectures/coverage.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in row.split(" | ")] for row in ROW.findall(page)]
    rows = [row for row in cells if row[0].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(1, 153))
    counts: dict[str, int] = {}
    for number, slide, _, test, place, state in rows:
        assert re.search(r"00[0-4]", slide), number
        assert TEST.fullmatch(test), number
        assert place, number
        kind = next(
            kind for kind in ("tested and seen", "recorded run", "partly", "not here") if state.startswith(kind)
        )
        assert kind in ("tested and seen", "recorded run") or ": " in state, f"{number} has no reason"
        counts[kind] = counts.get(kind, 0) + 1
    for kind, count in counts.items():
        assert re.search(rf"\b{count}\s+(?:are|rest|are\s+there|on a|,)?[^.]*\*\*{kind}\*\*", page), (kind, count)


@pytest.mark.prove
@pytest.mark.parametrize("path", [path for path in LECTURES if path.stem not in ("index", "coverage")], ids=str)
def test_the_notebook_of_a_page_runs_in_a_fresh_kernel(path, tmp_path):
    made = notebook_of(path.read_text(encoding="utf-8"))
    notebook = nbformat.from_dict(made)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert ran
    assert all(cell.execution_count for cell in ran)


def test_the_recorded_ablations_are_those_of_the_page():
    recorded = json.loads((ROOT / "docs/pictures/ablations.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/lectures/the-block.md").read_text(encoding="utf-8")
    for name, rows in recorded.items():
        assert [row["variant"] for row in rows] == list(ablation.variants_of(name))
        for row in rows:
            assert f"| {row['variant']} | {row['loss']:.3f} ± {row['loss_deviation']:.3f} |" in page
