"""Whole runs for measurements over local hosts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError


def carry_out(source: Path, out: Path, hosts: int, *more: str) -> Path:
    """Runs an experiment; 0 hosts: hop-exact. The run directory."""
    argv = [sys.executable, "-m", "tstorm", "run", str(source), "--out", str(out), "--quiet"]
    argv += ["--hosts", str(hosts)] if hosts else []
    done = subprocess.run([*argv, *more], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BenchError(f"{source.name} over {hosts} hosts ended with {done.returncode}")
    return out
