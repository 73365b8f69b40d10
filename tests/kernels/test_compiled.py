"""The kernels are compiled once a machine; where they cannot be, there is a reason, and everything runs without."""

import re
import subprocess
import sys

import pytest

from regard.kernels import compiled

PROGRAM = """
import torch
from regard import kernels
from regard.layers.linear import Linear
print(kernels.here(), kernels.why_not())
with torch.no_grad():
    print(Linear(8, 4)(torch.ones(20, 8)).shape)
"""


def run(tmp_path, **settings):
    environment = {"PATH": "", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment | settings, check=True
    )
    return done.stdout.splitlines()


def test_a_machine_without_a_compiler_says_so_and_goes_on(tmp_path):
    said, shape = run(tmp_path)
    assert said.startswith("False there is no C compiler")
    assert "20, 4" in shape


@pytest.mark.parametrize("compiler", ["false", "nothing-of-this-name"])
def test_a_compiler_that_fails_is_named_and_leaves_nothing_behind(tmp_path, compiler):
    said, shape = run(tmp_path, CC=compiler, PATH="/usr/bin:/bin")
    assert said.startswith("False ")
    assert len(said) > len("False ")
    assert "20, 4" in shape
    assert not list((tmp_path / "cache" / "regard").iterdir())


def test_they_can_be_left_out(tmp_path):
    assert run(tmp_path, REGARD_KERNELS="off")[0] == "False REGARD_KERNELS=off"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where a library would be put, in a cache of its own."""
    if compiled.library() is None:
        pytest.skip(f"no kernels on this machine: {compiled.why_not()}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = compiled._place()
    path.parent.mkdir(mode=0o700)
    compiled._load.cache_clear()
    yield path
    compiled._load.cache_clear()


def test_a_damaged_library_is_made_anew(place):
    place.write_bytes(b"not a library")
    place.chmod(0o700)
    assert compiled.why_not() is None
    assert compiled.library() is not None


def test_what_others_may_write_is_not_loaded(place):
    place.write_bytes(b"planted")
    place.chmod(0o777)
    assert compiled.library() is None
    assert "is not this user's alone to write" in compiled.why_not()


def test_a_relative_cache_is_none(place, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert compiled._place().is_absolute()


def test_every_function_of_the_c_files_is_described():
    sources = "".join(path.read_text() for path in compiled.SOURCES.glob("*.c"))
    functions = set(re.findall(r"^(?:int|void) (\w+)\(", sources, flags=re.MULTILINE))
    assert functions == set(compiled.SIGNATURES)
