"""`make demo`: compiles and runs examples/demo.tdl, then sets the plan beside what was measured.

Exit code 0 when every phase came out as planned within wide bounds (bench/judge.py), 1 when one did
not, 3 when the run itself failed. `--judge DIRECTORY` looks at a finished run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.judge import judge, table
from compiler.plan.format import PlanError
from runtime.rundir.runfiles import REPORT
from tests.runs.runlog import IncompleteRunError

SOURCE = Path("examples") / "demo.tdl"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__)
    parser.add_argument("--judge", type=Path, metavar="DIRECTORY", help="a finished demo run")
    options = parser.parse_args()
    try:
        directory = options.judge or run()
        rows = judge(directory)
    except (BenchError, IncompleteRunError, PlanError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 3
    print()
    print(table(rows))
    for row in rows:
        for text in row.wrong:
            print(f"demo: far off in '{row.cells[0]}': {text}", file=sys.stderr)
    print(f"\nAll that the run recorded is in {directory}")
    print(f"page: {(directory.resolve() / REPORT).as_uri()}")
    return 1 if any(row.wrong for row in rows) else 0


def run() -> Path:
    """Compiles and runs demo.tdl; the run directory, relative to the source tree."""
    name = f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    plan, directory = Path("build") / f"{name}.plan", Path("runs") / name
    (ROOT / plan.parent).mkdir(exist_ok=True)
    print(f"The network and what happens to it: {SOURCE}", flush=True)
    _tstorm("compile", str(SOURCE), "-o", str(plan))
    _tstorm("run", str(plan), "--out", str(directory))
    return ROOT / directory


def _tstorm(*words: str) -> None:
    print("$ tstorm " + " ".join(words), flush=True)
    done = subprocess.run([sys.executable, "-m", "tstorm", *words], cwd=ROOT, check=False)
    if done.returncode != 0:
        raise BenchError(f"tstorm {words[0]} ended with {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
