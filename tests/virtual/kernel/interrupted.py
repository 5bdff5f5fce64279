"""Builds the fake kernel as a process of its own: `interrupted.py DATA SOURCE`, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from runtime.virtual.kernel import kernel_build, kernel_changes
from runtime.virtual.kernel.kernel_build import Steps

if __name__ == "__main__":
    kernel_changes.DATA = Path(sys.argv[1])
    kernel_build.build(Path(sys.argv[2]), Steps(lambda _text: None, lambda _text: None))
