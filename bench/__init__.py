"""Measurements: `python -m bench`, `python -m bench.hosts`; the demonstration, `bench.demo`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
