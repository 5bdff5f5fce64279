"""`make fuzz`: every Python fuzzer (tests/fuzz/fuzz_*.py) for FUZZ_SECONDS; the C ones follow.

A fuzzer is a module with `--seconds N` and `--seed N`, which prints the seed of a failure and ends
with 1. The seed here is the clock's, and printed, so that a failure can be made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    seconds = os.environ.get("FUZZ_SECONDS", "20")
    seed = str(time.time_ns() % 2**32)
    failed = []
    for path in sorted((ROOT / "tests" / "fuzz").glob("fuzz_*.py")):
        module = f"tests.fuzz.{path.stem}"
        print(f"\n== {module} --seconds {seconds} --seed {seed}", flush=True)
        command = [sys.executable, "-m", module, "--seconds", seconds, "--seed", seed]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(module)
    print(f"\nfuzz: {'failed: ' + ', '.join(failed) if failed else 'no failure'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
