"""The kernels are compiled once a machine; where they cannot be, there is a reason, and everything runs without."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard.ops import building, library
from regard.ops.activation import C_ACTIVATIONS, NO_ACTIVATION
from tests.ops.forms import needs_kernels

PROGRAM = """
import torch
from regard import ops
from regard.layers.linear import Linear
print(ops.why_disabled())
with torch.no_grad():
    print(Linear(8, 4)(torch.ones(20, 8)).shape)
"""


def run(tmp_path, **settings):
    environment = {
        "PATH": "",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(regard.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment | settings, check=True
    )
    return done.stdout.splitlines()


def test_a_machine_without_a_compiler_says_so_and_goes_on(tmp_path):
    said, shape = run(tmp_path)
    assert said.startswith("there is no C compiler")
    assert "20, 4" in shape


@pytest.mark.parametrize("compiler", ["false", "nothing-of-this-name"])
def test_a_compiler_that_fails_is_named_and_leaves_nothing_behind(tmp_path, compiler):
    said, shape = run(tmp_path, CC=compiler, PATH="/usr/bin:/bin")
    assert said not in ("", "None")
    assert "20, 4" in shape
    assert not list((tmp_path / "cache" / "regard").iterdir())


def test_they_can_be_left_out(tmp_path):
    assert run(tmp_path, REGARD_KERNELS="off")[0] == "REGARD_KERNELS=off"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where a library would be put, in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = library._library_path()
    path.parent.mkdir(mode=0o700)
    library._load.cache_clear()
    yield path
    library._load.cache_clear()


@needs_kernels
def test_a_damaged_library_is_made_anew(place):
    place.write_bytes(b"not a library")
    place.chmod(0o700)
    assert library.why_missing() is None
    assert library.library() is not None


@needs_kernels
def test_what_others_may_write_is_not_loaded(place):
    place.write_bytes(b"planted")
    place.chmod(0o777)
    assert library.library() is None
    assert "is writable by other users" in library.why_missing()


@needs_kernels
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_below_a_folder_that_others_may_write_nothing_is_loaded_or_made(place, tmp_path, mode):
    place.write_bytes(b"planted, but with the right owner and mode")
    place.chmod(0o700)
    for folder in (tmp_path, place.parent):
        folder.chmod(mode)
        library._load.cache_clear()
        assert library.library() is None
        assert library.why_missing().startswith(f"{folder} is writable by other users")
        folder.chmod(0o700)
    assert [path.name for path in place.parent.iterdir()] == [place.name]


@needs_kernels
def test_a_link_into_such_a_folder_is_followed(place, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    place.parent.rmdir()
    place.parent.symlink_to(tmp_path / "shared")
    assert "regard is writable by other users" in library.why_missing()
    assert not list((tmp_path / "shared").iterdir())


def test_in_a_sticky_folder_others_cannot_exchange_what_is_ours(tmp_path):
    tmp_path.chmod(0o1777)
    library._check_folders(tmp_path / "regard" / "kernels.so")


@needs_kernels
def test_a_relative_cache_is_none(place, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert library._library_path().is_absolute()


C_TYPES = {
    "int": library.INT,
    "long": library.LONG,
    "float": library.FLOAT,
    "uint32_t": library.UINT32,
    "void": None,
}


def declarations():
    """Every exported function of the C files: its return type and the types of its arguments, one a definition."""
    for path in sorted(building.SOURCES.glob("*.c")):
        source = re.sub(r"//[^\n]*", "", path.read_text())
        for kind, name, arguments in re.findall(
            r"^(int|void|float|long) (\w+)\(([^)]*)\) \{", source, flags=re.MULTILINE
        ):
            given = [" ".join(argument.split()) for argument in arguments.split(",") if argument.strip() != "void"]
            types = [library.POINTER if "*" in one else C_TYPES[one.rsplit(" ", 1)[0]] for one in given]
            yield name, (C_TYPES[kind], types)


def test_the_signatures_are_those_of_the_c_files():
    found = list(declarations())
    assert {name for name, _ in found} == set(library.SIGNATURES)
    for name, signature in found:
        assert signature == library.SIGNATURES[name], name


def test_a_wrong_signature_is_found(monkeypatch):
    """Too few arguments and another type are seen, not only another name."""
    for wrong in ((None, [library.POINTER] * 5), (None, [library.POINTER] * 5 + [library.LONG] * 3 + [library.INT])):
        monkeypatch.setitem(library.SIGNATURES, "add_layer_norm", wrong)
        with pytest.raises(AssertionError):
            test_the_signatures_are_those_of_the_c_files()


def test_the_codes_are_those_of_the_c_files():
    header = "".join(path.read_text() for path in building.SOURCES.glob("*.h"))
    statuses = dict(re.findall(r"(\w+) = (\d+)", re.search(r"enum \{ (OUT_OF_MEMORY.*?) \};", header)[1]))
    assert statuses == {"OUT_OF_MEMORY": str(library.OUT_OF_MEMORY), "OUT_OF_RANGE": str(library.OUT_OF_RANGE)}
    names = re.search(r"enum \{ (GELU.*?) \};", header)[1].lower().split(", ")
    assert names == [*sorted(C_ACTIVATIONS, key=C_ACTIVATIONS.get), "none"]
    assert names.index("none") == NO_ACTIVATION


@pytest.mark.skipif(
    shutil.which("gcc") is None or platform.system() != "Linux", reason="there is no gcc for Linux here"
)
def test_where_there_is_a_compiler_there_are_kernels():
    """Else every test of a C form would be skipped, and a C file that does not compile would not be noticed."""
    assert library.why_missing() in (None, library.DISABLED_BY_USER, "this processor has no AVX2")
