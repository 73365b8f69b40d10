"""The lock of a run's folder: a second process is refused, and a system without fcntl has another call."""

import subprocess
import sys

import pytest

from regard.training import locking


def test_a_second_holder_is_refused(tmp_path):
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as other:
        locking.lock_file(one)
        with pytest.raises(OSError):
            locking.lock_file(other)


def test_regard_starts_where_there_is_no_fcntl():
    code = "import sys; sys.modules['fcntl'] = None; import regard.tasks.loading, regard.training.run_folder"
    subprocess.run([sys.executable, "-c", code], check=True)
