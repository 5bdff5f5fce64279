"""What tests of images share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from runtime.images import ids
from tests.packing.layout import Entry, Packed, layer_of

ROOT = Path(__file__).resolve().parents[2]
SMALL = Packed((layer_of([Entry("hello", b"hello\n", mode=0o644)]),), {"Cmd": ["/hello"]})


def available() -> str:
    return ids.available()


def quiet(_text: str) -> None:
    """Steps that nobody reads."""


def tstorm(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "tstorm", *map(str, arguments)]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


def files(root: Path) -> list[str]:
    """Every path below it, sorted."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def has_tools() -> bool:
    return all(shutil.which(name) for name in ("skopeo", "umoci"))
