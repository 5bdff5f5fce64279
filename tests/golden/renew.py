"""Brings a folder of golden files up to what is wanted, and says what it changed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def renew(folder: Path, suffix: str, wanted: Mapping[str, str]) -> None:
    """`wanted`: texts by name, all with `suffix`. Other files with it are removed."""
    for old in folder.glob(f"*{suffix}"):
        if old.name not in wanted:
            old.unlink()
            sys.stdout.write(f"removed {old.name}\n")
    for name, text in sorted(wanted.items()):
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {name}\n")
