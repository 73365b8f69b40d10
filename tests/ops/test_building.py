"""Kernels of a wheel: chosen by the processor, built from the same sources, and enough without a compiler."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.ops import building, library
from tests.ops.forms import needs_kernels

ROOT = Path(__file__).parents[2]
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the variants of an x86-64 wheel")


@pytest.fixture
def prebuilt(tmp_path, monkeypatch):
    """A wheel's folder, with an empty file for every variant."""
    monkeypatch.setattr(building, "PREBUILT", tmp_path)
    for variant in building.VARIANTS:
        (tmp_path / building.prebuilt_name(variant)).touch()
    return tmp_path


@X86
@pytest.mark.parametrize(
    ("has", "wanted"),
    [(building.AVX512, "avx512-vnni"), (building.AVX512 - {"avx512_vnni"}, "avx2"), (building.AVX2 - {"fma"}, None)],
)
def test_the_fastest_that_the_processor_has_is_taken(prebuilt, monkeypatch, has, wanted):
    monkeypatch.setattr(building, "processor", lambda: "flags : fpu " + " ".join(has))
    found = building.find_prebuilt()
    assert (found and found[1]) == wanted


def test_a_library_of_other_sources_is_not_taken(prebuilt, monkeypatch, tmp_path_factory):
    sources = tmp_path_factory.mktemp("csrc")
    for path in building.SOURCES.glob("*.[ch]"):
        shutil.copy(path, sources)
    (sources / "step.c").write_text("// another")
    monkeypatch.setattr(building, "SOURCES", sources)
    assert building.find_prebuilt() is None


def test_elsewhere_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "PREBUILT", tmp_path / "prebuilt")
    assert building.find_prebuilt() is None


@needs_kernels
def test_the_origin_is_told(here):
    assert library.origin()
    done = here("info", "--system")
    assert done.returncode == 0, done.stderr
    assert "kernels" in done.stdout
    assert library.origin() in done.stdout
    for words in ((), ("runs/demo", "--system")):
        done = here("info", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


PROGRAM = """
import torch
from regard.ops import library, building, packed
assert "wheel" in library.origin(), (library.why_missing(), library.origin())
weight, hidden = torch.randn(40, 64), torch.randn(3, 64)
for bits in (4, 8):
    matrix = packed.pack(weight, bits)
    torch.testing.assert_close(packed.linear_packed(hidden, matrix), packed.linear_packed_written_out(hidden, matrix))
print(library.origin())
"""


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_a_wheel_needs_no_compiler(tmp_path):
    """Built here, installed beside this environment's libraries, and run where no compiler is on the PATH."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name.endswith(f"-py3-none-linux_{platform.machine()}.whl")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(tmp_path / "site")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "site"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout
    assert not (tmp_path / ".cache").exists()  # nothing was compiled
    command = [sys.executable, "-m", "regard", "info", "--system"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "from the wheel" in done.stdout


@pytest.mark.prove
@X86
def test_every_variant_that_runs_here_gives_the_same_numbers(tmp_path):
    """The kernels of each variant against the torch forms, in the tests of the ops and the engine."""
    has = set(building.processor().split())
    for variant in building.VARIANTS:
        if variant.machine != platform.machine() or not variant.needs <= has:
            continue
        path = tmp_path / building.prebuilt_name(variant)
        building.compile_library(path, variant.flags)
        program = (
            f"from pathlib import Path; from regard.ops import building; building.PREBUILT = Path({str(tmp_path)!r}); "
            "import pytest, sys; from regard.ops import library; print(library.origin()); "
            "sys.exit(pytest.main(['-q', '-x', '-m', 'not prove', '-p', 'no:cacheprovider', "
            "'tests/ops/test_packed.py', 'tests/ops/test_linear.py', 'tests/generation/test_engine.py']))"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, env=os.environ)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert f"for {variant.name}" in done.stdout
        path.unlink()  # the next one
