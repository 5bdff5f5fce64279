"""A reader of a page: an ordinary user, as most are, where the machine lets root become one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.reader import ROOT, Reader
from tests.runtime.support import NOBODY, ordinary, state


@pytest.fixture
def reader() -> Iterator[Reader]:
    """In an empty folder; `tstorm` is on the PATH."""
    with tempfile.TemporaryDirectory(prefix="tstorm-page-") as name:
        home = Path(name).resolve()
        home.chmod(0o755)
        folder = home / "work"
        user = ordinary(home) if os.geteuid() == 0 else None
        python, prefix, environment = sys.executable, [], {**os.environ, **state(home)}
        environment["PYTHONPATH"] = str(ROOT)
        if user:
            python, prefix, environment = user.python, user.prefix, dict(user.environment)
        _command(home / "bin" / "tstorm", python)
        folder.mkdir()
        (home / "cwd").write_text(f"{folder}\n", encoding="utf-8")
        for path in (home, folder, home / "cwd") if user else ():
            os.chown(path, NOBODY, NOBODY)
        environment["PATH"] = f"{home / 'bin'}:{environment['PATH']}"
        yield Reader(folder, prefix, {**environment, "HOME": name, "LC_ALL": "C.UTF-8"})
        # What a failed page may have left running.
        subprocess.run([*prefix, home / "bin" / "tstorm", "destroy", "--all"], check=False,
                       env=environment, cwd=home, capture_output=True, timeout=60)  # fmt: skip


@pytest.fixture
def reader_with_examples(reader: Reader) -> Reader:
    """In a copy of the folder `examples`."""
    copied = [*reader.prefix, "cp", "-r", f"{ROOT}/examples/.", "."]
    subprocess.run(copied, cwd=reader.folder, env=reader.environment, check=True)
    return reader


def _command(path: Path, python: str) -> None:
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {python} -m tstorm "$@"\n', encoding="utf-8")
    path.chmod(0o755)
