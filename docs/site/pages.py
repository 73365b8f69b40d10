"""Pages that run: the ```python blocks of a page in order, in one namespace; what they print stands in ```text blocks.

    python -m docs.site.pages docs/lectures/build-a-gpt.md     # run, and write the outputs into the page
    python -m docs.site.pages --notebook docs/lectures/*.md    # the same pages as notebooks, into docs/_build/notebooks

A page is plain Markdown. The output of a block is the ```text block that follows it with nothing but empty lines
between; a block without one prints nothing. Trailing spaces, and empty lines at either end, do not count.
"""

import argparse
import io
import json
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTEBOOK = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    line: int  # of its first line in the page
    content: str
    span: tuple[int, int]  # of the block in the page, fences included
    following: "Block | None"  # the next block, if nothing stands between

    @property
    def output(self) -> "Block | None":
        """The block that shows what this one prints."""
        return self.following if self.following and self.following.kind == "text" else None


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    block, start = None, len(page)
    for match in reversed(list(FENCE.finditer(page))):
        following = block if not page[match.end() : start].strip() else None
        line = page.count("\n", 0, match.start(2)) + 1
        block, start = Block(match[1], line, match[2], match.span(), following), match.start()
        found.append(block)
    assert page.count("\n```") == 2 * len(found), "a fence is not closed, or is indented"
    return found[::-1]


def run_block(name: str, block: Block, namespace: dict[str, object]) -> str:
    """Run one block; return what it printed. AssertionError names the line of the page that failed."""
    # The empty lines give tracebacks the page's line numbers.
    code = compile("\n" * (block.line - 1) + block.content, name, "exec")
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(code, namespace)
    except Exception as error:
        line, trace = block.line, error.__traceback__
        while trace is not None:  # the innermost line inside this block
            if trace.tb_frame.f_code.co_filename == name and block.line <= trace.tb_lineno:
                line = trace.tb_lineno
            trace = trace.tb_next
        source = block.content.splitlines()[line - block.line].strip()
        raise AssertionError(f"{name}:{line}: {type(error).__name__} at `{source}` {error}") from error
    return printed.getvalue()


def run_page(name: str, page: str) -> list[tuple[Block, str]]:
    """Run all python blocks of a page; what each printed."""
    namespace: dict[str, object] = {"__name__": "page"}
    return [(block, run_block(name, block, namespace)) for block in blocks_of(page) if block.kind == "python"]


def with_outputs(name: str, page: str) -> str:
    """The page with the outputs of its blocks as they are now."""
    for block, printed in reversed(run_page(name, page)):
        lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
        shown = "\n\n```text\n" + "\n".join(lines) + "\n```" if lines else ""
        end = block.output.span[1] if block.output else block.span[1]
        page = page[: block.span[1]] + shown + page[end:]
    return page


def as_notebook(page: str) -> str:
    """The page in the Markdown of MyST-NB, which runs its python blocks; the outputs on the page are left out."""
    for block in reversed(blocks_of(page)):
        if block.kind == "python":
            start, end = block.span[0], (block.output or block).span[1]
            page = f"{page[:start]}```{{code-cell}} python\n{block.content}```{page[end:]}"
    return NOTEBOOK + page


def notebook_of(page: str) -> dict[str, Any]:
    """The page as a Jupyter notebook (nbformat 4.5) without outputs."""
    sources, position = [], 0
    for block in blocks_of(page):
        if block.kind == "python":
            sources += [("markdown", page[position : block.span[0]]), ("code", block.content)]
            position = (block.output or block).span[1]
    sources = [(kind, text.strip()) for kind, text in (*sources, ("markdown", page[position:])) if text.strip()]
    cells: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(sources):
        cell = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": text}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _refresh(path: Path) -> None:
    import torch

    torch.manual_seed(0)
    before, here = torch.get_default_dtype(), Path.cwd()
    page = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        try:
            page = with_outputs(path.name, page)
        finally:
            os.chdir(here)
            torch.set_default_dtype(before)
    path.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run pages and write their outputs into them, or make notebooks.")
    parser.add_argument("--notebook", action="store_true", help="write docs/_build/notebooks/NAME.ipynb instead")
    parser.add_argument("pages", nargs="+", type=Path)
    arguments = parser.parse_args()
    for path in arguments.pages:
        if arguments.notebook:
            folder = Path(__file__).parents[1] / "_build" / "notebooks"
            folder.mkdir(parents=True, exist_ok=True)
            notebook = json.dumps(notebook_of(path.read_text(encoding="utf-8")), indent=1)
            (folder / f"{path.stem}.ipynb").write_text(notebook, encoding="utf-8")
        else:
            _refresh(path)
        sys.stderr.write(f"{path}\n")


if __name__ == "__main__":
    main()
