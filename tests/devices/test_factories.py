"""Tensors are made on the device of their inputs; what is made on the host on purpose is listed, with the reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from tests.devices.host_data import HOST_DATA, HOST_FILES

SOURCES = Path(regard.__file__).parent
FOLDERS = ("ops", "layers", "models", "generation", "tasks")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (SOURCES / folder).rglob("*.py")
    if str(path.relative_to(SOURCES)) not in HOST_FILES
)
FACTORIES = {
    *("arange", "as_tensor", "empty", "eye", "from_numpy", "full", "linspace", "logspace", "normal", "ones", "rand"),
    *("randint", "randn", "randperm", "range", "tensor", "tril_indices", "triu_indices", "zeros"),
}
MODULE_STATE = ("nn.Parameter", "self.register_buffer")  # moved with the model


def made(path: Path) -> Iterator[tuple[str, str, int]]:
    """Every tensor of this file that is not made on the device of something: file, function, line."""
    yield from _made(ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(SOURCES)), "")


def _made(node: ast.AST, file: str, function: str) -> Iterator[tuple[str, str, int]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called in MODULE_STATE:
            return
        if called.startswith("torch.") and called[6:] in FACTORIES and not _is_on_a_device(node):
            yield file, function, node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _made(child, file, function)


def _is_on_a_device(call: ast.Call) -> bool:
    """Whether `device=` is given, and is that of something: no name of a device."""
    given = [one.value for one in call.keywords if one.arg == "device"]
    return bool(given) and not any(isinstance(one, ast.Constant) for one in given)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_tensors_are_made_on_the_device_of_their_inputs(path):
    for file, function, line in made(path):
        assert (file, function) in HOST_DATA, f"{file}:{line} makes a tensor without a device, in {function}"


def test_what_is_listed_is_there():
    found = {(file, function) for path in FILES for file, function, _ in made(path)}
    assert set(HOST_DATA) <= found


def test_a_tensor_without_a_device_is_found(tmp_path, monkeypatch):
    source = "def f(x):\n    a = torch.zeros(3, device=x.device)\n    return a + torch.arange(3)\n"
    (tmp_path / "layer.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(f"{__name__}.SOURCES", tmp_path)
    assert list(made(tmp_path / "layer.py")) == [("layer.py", "f", 3)]
    (tmp_path / "layer.py").write_text(source.replace("arange(3)", "arange(3, device='cpu')"), encoding="utf-8")
    assert list(made(tmp_path / "layer.py")) == [("layer.py", "f", 3)]
