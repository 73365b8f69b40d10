"""The quick share of `make attack`: some hostile inputs of each kind, a few kills, failing disks and flipped bits."""

import subprocess
import sys
from pathlib import Path


def test_the_quick_share_of_all_attacks_is_survived():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.attack", "--quick"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
