"""The kernels are compiled once a machine; where they cannot be, there is a reason, and everything runs without."""

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


def test_a_damaged_library_is_made_anew(tmp_path, monkeypatch):
    if compiled.library() is None:
        return
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = compiled._place()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a library")
    compiled._load.cache_clear()
    try:
        assert compiled.why_not() is None
        assert compiled.library() is not None
    finally:
        compiled._load.cache_clear()


def test_every_function_is_described(tmp_path):
    if compiled.library() is None:
        return
    for name in compiled.SIGNATURES:
        assert getattr(compiled.library(), name).argtypes is not None
