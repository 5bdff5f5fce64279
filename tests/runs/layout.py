"""What an experiment of a test is laid out with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def executables(folder: Path, texts: Mapping[str, str]) -> None:
    """Scripts, by name, that a program of a service may be."""
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
