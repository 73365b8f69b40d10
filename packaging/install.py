"""Install regard from this bundle, without internet and without a compiler: python3 install.py [FOLDER]

Checks the SHA-256 of every file, makes a virtual environment in FOLDER (by default .venv here), and installs the wheels
of the bundle in it, and nothing else.
"""

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    check(HERE)
    environment = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / ".venv"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    wheels = sorted(str(path) for path in (HERE / "wheels").glob("*.whl"))
    subprocess.run(
        [*pip, "--no-index", "--no-deps", *wheels], check=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull}
    )
    print(f"installed; try: {programs / 'regard'} demo")  # noqa: T201


def check(folder: Path) -> None:
    """Exit with one line if a file is missing, damaged or of another Python."""
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        wanted, name = line.split("  ", 1)
        if not (folder / name).is_file():
            sys.exit(f"error: {name} is missing; copy the bundle again")
        with (folder / name).open("rb") as file:
            digest = hashlib.sha256()
            while part := file.read(1 << 20):
                digest.update(part)
        if digest.hexdigest() != wanted:
            sys.exit(f"error: {name} is damaged: its SHA-256 is not the one in SHA256SUMS; copy the bundle again")
    ours = f"cp{sys.version_info.major}{sys.version_info.minor}"
    made_for = sorted(
        {tag for path in (folder / "wheels").glob("torch-*.whl") for tag in re.findall(r"cp\d+", path.name)}
    )
    if made_for and ours not in made_for:
        sys.exit(f"error: this Python is {ours}, the bundle is for {', '.join(made_for)}; run it with that version")


if __name__ == "__main__":
    main()
