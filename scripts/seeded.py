"""`make fuzz` and `make trial`: everything of one kind, one after the other.

    seeded.py fuzz|trials [OPTION VALUE]…

Each is a module of tests/fuzz or tests/trials that can be started, with `--seconds N` (a trial also
with `--rounds N`) and `--seed N`; it prints the seed of a failure and ends with 1. What the options
do not say: FUZZ_SECONDS or TRIAL_SECONDS, and a seed that is the clock's, and printed, so that a
failure can be made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = {"fuzz": ("FUZZ_SECONDS", "20"), "trials": ("TRIAL_SECONDS", "600")}
STARTED = 'if __name__ == "__main__":'


def modules(kind: str) -> list[str]:
    paths = sorted((ROOT / "tests" / kind).glob("*.py"))
    return [f"tests.{kind}.{path.stem}" for path in paths if STARTED in path.read_text()]


def main(kind: str, *given: str) -> int:
    options = list(given)
    if not {"--seconds", "--rounds"} & {*given}:
        options += ["--seconds", os.environ.get(*SECONDS[kind])]
    if "--seed" not in given:
        options += ["--seed", str(time.time_ns() % 2**32)]
    failed = []
    for module in modules(kind):
        print(f"\n== {module} {' '.join(options)}", flush=True)
        command = [sys.executable, "-m", module, *options]
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            failed.append(module)
    print(f"\n{kind}: {'failed: ' + ', '.join(failed) if failed else 'no failure'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
