"""The reference, from the package itself: each command with its options, each module with its docstrings.

The code is read, not imported. The pages are written into docs/reference/commands.md and docs/reference/api/ when the
site is built; the settings have a page of their own, docs/reference/settings.md.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2] / "src" / "regard"
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def write_reference(folder: Path) -> None:
    """Write the pages; a page that has not changed keeps its time, so that Sphinx does not read it again."""
    (folder / "api").mkdir(parents=True, exist_ok=True)
    _write(folder / "commands.md", commands_page())
    packages = sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
    for package in packages:
        _write(folder / "api" / f"{package.name}.md", package_page(package))
    _write(folder / "api" / "regard.md", modules_page("regard", sorted(PACKAGE.glob("*.py"))))
    entries = "\n".join(["regard", *(package.name for package in packages)])
    _write(
        folder / "api" / "index.md",
        f"# Code\n\nThe modules of regard, a page a package.\n\n```{{toctree}}\n{entries}\n```\n",
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# ------------------------------------------------ commands


def commands_page() -> str:
    """Every command: what it does, its arguments and options with their defaults."""
    import typer

    from regard.cli import app

    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    parts = [
        "# Commands\n\nWhat `regard COMMAND --help` says. Settings (`key=value`) are in [settings](settings.md).\n"
    ]
    for name, command in commands.items():
        if command.hidden:
            continue
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        table = "\n".join(["| | meaning | default |", "|---|---|---|", *rows]) if rows else ""
        parts.append(f"## regard {name}\n\n{as_markdown(command.help or '', keep_markdown=True)}\n\n{table}\n")
    return "\n".join(parts)


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    shown = parameter.show_default if isinstance(parameter.show_default, str) else ""
    default = parameter.default
    if not shown and default not in (None, False, (), [], "") and not callable(default):
        shown = str(getattr(default, "value", default))
    meaning = (parameter.help or "").replace("|", "\\|").replace("\n", " ")
    return f"| {names} | {escaped(meaning)} | {escaped(shown)} |"


# ------------------------------------------------ modules


def package_page(package: Path) -> str:
    return modules_page(f"regard.{package.name}", sorted(package.rglob("*.py")))


def modules_page(title: str, files: list[Path]) -> str:
    """The modules of a package: docstrings, public classes and functions with their signatures."""
    parts = [f"# {title}\n"]
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = ".".join(["regard", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        described = [*_described(tree)]
        if not (ast.get_docstring(tree) or described) or "workers" in path.parts:
            continue
        parts.append(f"## {name}\n\n{as_markdown(ast.get_docstring(tree) or '')}\n")
        parts += described
    return "\n".join(parts)


def _described(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_") and ast.get_docstring(node):
            yield f"**`{_signature(node)}`**\n\n{as_markdown(ast.get_docstring(node) or '')}\n"
            if isinstance(node, ast.ClassDef):
                yield from _methods(node)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        is_public = isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_")
        if is_public and (text := ast.get_docstring(each)):  # type: ignore[arg-type]
            yield f"- **`{_signature(each)}`** " + as_markdown(text).replace("\n", "\n  ") + "\n"  # type: ignore[arg-type]


def _signature(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    arguments = ast.unparse(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returns}".replace("`", "'")


def as_markdown(text: str, *, keep_markdown: bool = False) -> str:
    """A docstring as Markdown: indented paragraphs are code, and no sign outside backticks has a meaning."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        if lines and all(line.startswith("    ") for line in lines):
            parts.append("```text\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            plain = paragraph.replace("\x08", "").strip()
            parts.append(plain if keep_markdown else escaped(plain))
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """Text whose signs mean nothing to Markdown; what is in backticks stays."""
    spans = re.split(r"(`[^`]*`)", text)
    return "".join(
        one
        if one.startswith("`") and one.endswith("`") and len(one) > 1
        else re.sub(r"([\\*_#\[\]<>{}$~|+-])", r"\\\1", one)
        for one in spans
    )
