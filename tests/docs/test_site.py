"""What builds the site: pages as notebooks, outputs written into pages, the reference of commands and code."""

from pathlib import Path

import pytest
import typer

from docs.site import reference
from docs.site.pages import as_notebook, blocks_of, notebook_of, with_outputs
from regard.cli import app
from regard.config import Config

ROOT = Path(__file__).parents[2]
PAGE = """# Title

```python
number = 2
print(number + 1)
```

```text
4
```

```sh
regard recipes
```

```python
assert number == 2
```
"""


def test_a_page_becomes_a_notebook_without_the_outputs_it_shows():
    text = as_notebook(PAGE)
    assert text.count("```{code-cell} python\n") == 2
    assert "```text" not in text
    assert "```sh\nregard recipes\n```" in text
    cells = notebook_of(PAGE)["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code"]
    assert cells[1]["source"] == "number = 2\nprint(number + 1)"


def test_outputs_are_written_into_the_page_and_stay():
    once = with_outputs("page.md", PAGE)
    assert once == PAGE.replace("\n4\n", "\n3\n")
    assert with_outputs("page.md", once) == once
    silent = with_outputs("page.md", PAGE.replace("print(number + 1)", "number += 0"))
    assert "```text" not in silent
    assert blocks_of(silent)[0].output is None


def test_the_page_of_commands_has_every_command_and_option():
    page = reference.commands_page()
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"## regard {name}\n" in page
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert f"`{parameter.opts[0]}`" in page
    assert "| `--seeds` | Runs of each model with different seeds; mean ± deviation. | 1 |" in page


def test_the_pages_of_code_have_the_docstrings(tmp_path):
    reference.write_reference(tmp_path)
    page = (tmp_path / "api" / "regard.md").read_text(encoding="utf-8")
    assert "## regard.config" in page
    assert "**`class Config`**" in page
    assert (Config.__doc__ or "").split()[0] in page
    assert "layers" in (tmp_path / "api" / "index.md").read_text(encoding="utf-8").split()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a * b_c", r"a \* b\_c"),
        ("`a * b`", "`a * b`"),
        ("One.\n\n    regard run x *\n\nTwo.", "One.\n\n```text\nregard run x *\n```\n\nTwo."),
    ],
)
def test_docstrings_keep_their_signs(text, shown):
    assert reference.as_markdown(text) == shown
