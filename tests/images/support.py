"""What tests of images share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from runtime.images import ids
from tests.cli.process import LONGEST_SECONDS, called
from tests.packing.layout import Entry, Packed, layer_of

ROOT = Path(__file__).resolve().parents[2]
SMALL = Packed((layer_of([Entry("hello", b"hello\n", mode=0o644)]),), {"Cmd": ["/hello"]})


def available() -> str:
    return ids.available()


def quiet(_text: str) -> None:
    """Steps that nobody reads."""


def tstorm(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return called(*arguments, cwd=cwd, timeout=LONGEST_SECONDS)


def files(root: Path) -> list[str]:
    """Every path below it, sorted."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def has_tools() -> bool:
    return all(shutil.which(name) for name in ("skopeo", "umoci"))
