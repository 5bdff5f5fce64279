"""The host's files do in a guest what they do on the host."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.virtual.guests import PROGRAMS, guest

pytestmark = pytest.mark.virtual


def test_files_in_use_do_what_they_do_on_the_host(kernel: list[str], tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    command = [sys.executable, str(PROGRAMS / "files.py")]
    done = subprocess.run([*command, tmp_path / "here"], capture_output=True, text=True, check=True)
    script = " ".join([*command, str(tmp_path / "there")])
    with guest([*kernel, "tstorm_seed=00"], script, tmp_path) as it:
        assert it.end().splitlines() == done.stdout.splitlines()
    target = (tmp_path / "there" / "target").stat()
    assert (target.st_mtime, target.st_uid) == (20, (tmp_path / "there").stat().st_uid)
