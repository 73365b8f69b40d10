"""Make an offline bundle: everything that a class room without internet needs to install regard.

    make bundle                                into dist/regard-VERSION-cp311-linux_x86_64/
    python install.py                          on the other machine, in that folder; no index, no compiler

The bundle has wheels of regard and of all locked dependencies, their SHA-256, and the installer. It is for the Python
version and the platform that it is made on. Arguments after -- go to pip: -- --index-url URL takes torch, say, from an
index of CPU-only builds.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKSUMS, LOCK, INSTALLER = "SHA256SUMS", "requirements.lock", "install.py"
READ_ME = """regard {version}, for {platform} with Python {python}, without internet.

    python3 {installer}              makes .venv here and installs regard in it (a minute)
    .venv/bin/regard demo           trains a small translator (three minutes)

On Windows: py {installer}, then .venv\\Scripts\\regard demo. {checksums} has the SHA-256 of every file; the installer
checks them first.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the bundle goes; by default into dist/")
    parser.add_argument("pip", nargs="*", help="after --: arguments for pip, such as --index-url URL")
    given = parser.parse_args()
    folder = given.folder or ROOT / "dist" / bundle_name()
    if folder.exists():
        sys.exit(f"error: {folder} exists; remove it, or give another folder")
    make(folder, given.pip)
    size = sum(path.stat().st_size for path in folder.rglob("*"))
    print(f"{folder}: {len(list(folder.glob('wheels/*.whl')))} wheels, {size / 1e6:,.0f} MB")  # noqa: T201


def make(folder: Path, pip: list[str]) -> None:
    """Build the wheels, and write the files beside them; in a temporary folder until all are there."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    wheels = unfinished / "wheels"
    wheels.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(wheels), *pip]
    subprocess.run([*command, "--requirement", str(ROOT / LOCK), str(ROOT)], check=True)
    write_files(unfinished)
    unfinished.rename(folder)


def write_files(folder: Path) -> None:
    """The lock file, the installer, a note and the checksums, beside the wheels."""
    shutil.copy(ROOT / LOCK, folder / LOCK)
    shutil.copy(Path(__file__).with_name(INSTALLER), folder / INSTALLER)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    facts = {"version": version(), "platform": sysconfig.get_platform(), "python": python}
    (folder / "README.txt").write_text(READ_ME.format(**facts, installer=INSTALLER, checksums=CHECKSUMS))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS)
    lines = [f"{digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines))


def bundle_name() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"regard-{version()}-{python}-{sysconfig.get_platform().replace('-', '_')}"


def version() -> str:
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return found


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
