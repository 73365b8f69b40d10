"""The offline bundle: its checksums find every fault, and what it installs works without index, compiler or clone."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGING = Path(__file__).parents[2] / "packaging"


def load(name):
    spec = importlib.util.spec_from_file_location(name, PACKAGING / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "bundle"
    (folder / "wheels").mkdir(parents=True)
    (folder / "wheels/regard-0.1.0-py3-none-any.whl").write_bytes(b"a wheel")
    load("bundle").write_files(folder)
    return folder


def test_every_file_is_in_the_checksums(bundle):
    listed = {line.split("  ")[1] for line in (bundle / "SHA256SUMS").read_text().splitlines()}
    files = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert listed == files - {"SHA256SUMS"}
    assert {"install.py", "requirements.lock", "README.txt"} <= listed
    load("install").check(bundle)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda file: file.write_bytes(b"A wheel"), "is damaged: its SHA-256"),
        (lambda file: file.unlink(), "is missing; copy the bundle again"),
    ],
)
def test_a_damaged_bundle_is_refused_in_one_line(bundle, fault, said):
    fault(bundle / "wheels/regard-0.1.0-py3-none-any.whl")
    with pytest.raises(SystemExit, match=said):
        load("install").check(bundle)


def test_a_bundle_for_another_python_is_refused(bundle):
    (bundle / "wheels/torch-2.13.0-cp39-cp39-linux_x86_64.whl").write_bytes(b"torch")
    load("bundle").write_files(bundle)
    with pytest.raises(SystemExit, match="the bundle is for cp39; run it with that version"):
        load("install").check(bundle)


@pytest.mark.prove
def test_what_the_bundle_installs_works_without_index_compiler_and_clone(tmp_path):
    subprocess.run([sys.executable, PACKAGING / "bundle.py", tmp_path / "bundle"], check=True, timeout=1200)
    tools = tmp_path / "tools"  # the only programs there are: no compiler
    tools.mkdir()
    for name in ("env", "uname"):
        (tools / name).symlink_to(shutil.which(name))
    alone = {"PATH": str(tools), "HOME": str(tmp_path), "LANG": "C.UTF-8", "PIP_NO_INDEX": "1"}
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    subprocess.run([python, tmp_path / "bundle/install.py", tmp_path / "env"], check=True, env=alone, cwd=tmp_path)
    regard = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "regard"
    for arguments, wanted in (
        (["--version"], "regard 0.1.0"),
        (["show", "--example", "mask"], "mask"),
        (["demo", "training.steps=5"], "Attention"),
    ):
        done = subprocess.run([regard, *arguments], env=alone, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout
