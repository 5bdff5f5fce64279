"""Builds the fake kernel as a process of its own: `interrupted.py DATA SOURCE`, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from runtime.virtual.kernel import build, changes
from runtime.virtual.kernel.build import Steps

if __name__ == "__main__":
    changes.DATA = Path(sys.argv[1])
    build.build(Path(sys.argv[2]), Steps(lambda _text: None, lambda _text: None))
