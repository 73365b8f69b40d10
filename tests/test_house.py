"""The house keeps its order: imports point down, the public names are pinned, nothing heavy is loaded early."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import regard

ROOT = Path(regard.__file__).parent
# From the ground up; what stands on one line are siblings that do not know each other.
FLOORS = [
    ["errors", "renamed"],
    ["config", "files", "ops", "runtime", "sandbox", "size_limits"],
    ["extensions", "processes", "settings"],
    ["layers", "tokenizers", "images", "synthetic", "data", "metrics"],
    ["models"],
    ["checkpoint"],
    ["generation", "inspection", "huggingface"],
    ["training"],
    ["tasks"],
    ["recipes"],
    ["progress"],
    ["experiments", "exercises"],
    ["printing", "templates"],
    ["demo"],
    ["server"],
    ["cli"],
    ["__main__"],
]
FLOOR = {name: height for height, names in enumerate(FLOORS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The parts of regard a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "regard":
            assert node.level == 0
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("regard.")}
    return {name for name in found if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    here = part_of(path)
    if here == "__init__":
        assert imports(path) == set(), "the front door loads nothing"
        return
    for other in imports(path) - {here}:
        assert FLOOR[other] < FLOOR[here], f"{path.relative_to(ROOT)} imports regard.{other}, which is not below {here}"


def test_a_model_never_imports_a_model():
    for path in (ROOT / "models").glob("*.py"):
        if path.stem in ("__init__", "base"):
            continue
        named = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("regard.models")
        }
        assert named <= {"regard.models.base"}


def test_a_task_never_imports_a_task():
    packages = {path.name for path in (ROOT / "tasks").iterdir() if (path / "__init__.py").is_file()}
    packages -= {"encoders"}  # no task: what every task of an encoder shares
    for path in (ROOT / "tasks").rglob("*.py"):
        here = path.relative_to(ROOT / "tasks").parts[0]
        named = {
            node.module.split(".")[2]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("regard.tasks.")
        }
        # What stands beside the packages serves all of them, and knows them by regard.tasks.TASKS alone.
        assert named & packages <= {here}, f"{path.relative_to(ROOT)} imports {named & packages - {here}}"


def test_every_part_has_a_floor():
    assert {part_of(path) for path in FILES} - {"__init__"} <= set(FLOOR)


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_importing_regard_loads_neither_torch_nor_anything_heavy():
    assert not {"torch", "numpy", "pydantic", "typer", "rich"} & modules_after("import regard")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["run", "--help"], ["evaluate", "--help"], ["recipes"]]
)
def test_help_and_lists_answer_without_torch(arguments):
    code = f"""
sys.argv = ["regard", *{arguments!r}]
from regard.cli import main
try:
    main()
except SystemExit as leaving:
    assert not leaving.code
"""
    assert "torch" not in modules_after(code)


def test_the_public_names_are_these():
    assert sorted(regard.__all__) == ["Beam", "Greedy", "RegardError", "Sample", "__version__", "capture", "load"]
    for name in regard.__all__:
        assert getattr(regard, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        regard.nothing  # noqa: B018


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]


def is_command(function: ast.FunctionDef) -> bool:
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_no_file_is_long_and_no_folder_crowded():
    assert {
        str(path.relative_to(ROOT)) for path in FILES if path.read_text(encoding="utf-8").count("\n") > 400
    } == set()
    folders = {path.parent for path in FILES}
    assert {str(one) for one in folders if sum(1 for path in one.iterdir() if path.is_file()) > 20} == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_long_and_no_signature_wide(path):
    most = 80 if part_of(path) == "cli" else 60
    for function in functions(path):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= most, f"{function.name} has {lines} lines"
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        if not is_command(function) and names[:1] != ["ctx"]:  # autograd wants each tensor as an argument of its own
            assert len([name for name in names if name not in ("self", "cls")]) <= 10, f"{function.name}: {names}"


def test_standard_output_is_written_in_one_place():
    """Text of a model must not reach a terminal with its control characters: `regard.printing.show` escapes them."""
    allowed = {"printing.py", "progress.py", "cli/run.py", "tokenizers/workers/chat_template.py"}
    allowed |= {"tokenizers/workers/try_tokenizer.py"}
    printing = {
        path.relative_to(ROOT).as_posix()
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == allowed


def test_no_test_depends_on_how_fast_the_machine_is():
    """A bound on time only ends what hangs: it is the general one or longer. Time on the clock is not compared."""
    root = Path(__file__).parents[1]
    (general,) = re.findall(r"(?m)^timeout = (\d+)", (root / "pyproject.toml").read_text(encoding="utf-8"))
    for path in (root / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert all(int(seconds) >= int(general) for seconds in re.findall(r"mark\.timeout\((\d+)", text)), path
        assert not re.search(r"assert .*(perf_counter|monotonic|time\.time)\(", text), path
