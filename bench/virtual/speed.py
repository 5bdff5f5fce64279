"""How much real time experiments take in virtual time, and beside it the same experiments run in
another way in the same minutes: the machine's speed differs too much from hour to hour.

`python -m bench.virtual.speed [--beside COMMAND] [--rounds N] [NAME …]` writes
bench/results/virtual-speed.json. COMMAND is put before `tstorm run EXP …` in real time, for
example a script that starts an unchanged kernel of user-mode Linux in its time-travel mode.
Ways take turns; the best of N rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import RESULTS, machine
from bench.errors import BenchError
from bench.tables import Record, Table
from tests.virtual import repeating
from tests.virtual.catalogue import ALL, CHECKOUT, Experiment

FILE = RESULTS / "virtual-speed.json"
EXPERIMENTS = ("quickstart", "redis", "partition")
TABLES = (
    Table(
        {
            "Experiment": "{experiment}",
            "virtual time": "{virtual_seconds:.1f} s",
            "real time": "{seconds:.1f} s",
            "beside": "{beside_seconds:.1f} s",
            "factor": "{factor:.1f}",
        }
    ),
)


def measure(experiment: Experiment, beside: list[str], rounds: int) -> Record:
    """{experiment, seconds, virtual_seconds} and with `beside` {beside_seconds, factor}."""
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ts-speed-") as name:
        for turn in range(rounds):
            place = Path(name) / str(turn)
            place.mkdir()
            ran = repeating.carry_out(experiment, place)
            if ran.status:
                raise BenchError(f"{experiment.name}: {ran.said}")
            ours.append(ran.seconds)
            took = repeating.virtual_seconds(ran.directory)
            if beside:
                theirs.append(_beside(experiment, beside, place))
    row: Record = {
        "experiment": experiment.name,
        "seconds": round(min(ours), 2),
        "all_seconds": [round(one, 2) for one in ours],
        "virtual_seconds": took,
        "load_1min": Path("/proc/loadavg").read_text().split()[0],
    }
    if theirs:
        row["beside_seconds"] = round(min(theirs), 2)
        row["all_beside_seconds"] = [round(one, 2) for one in theirs]
        row["factor"] = round(min(theirs) / min(ours), 2)
    return row


def _beside(experiment: Experiment, command: list[str], place: Path) -> float:
    out = place / "beside"
    argv = [*command, sys.executable, "-m", "tstorm", "run", str(experiment.staged(place))]
    argv += ["--quiet", "--out", str(out), *experiment.options]
    began = time.perf_counter()
    done = subprocess.run(
        argv,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    if not (out / "summary.json").exists():
        raise BenchError(f"{experiment.name} beside: {done.stdout[-500:]}{done.stderr[-500:]}")
    return took


def _kept(measured: Sequence[str]) -> list[Record]:
    """What the file has of others."""
    rows = json.loads(FILE.read_text())["results"]["speed"] if FILE.exists() else []
    return [row for row in rows if row["experiment"] not in measured]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", default="", metavar="COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*", default=EXPERIMENTS, metavar="NAME")
    asked = parser.parse_args()
    rows = []
    for experiment in (one for one in ALL if one.name in asked.names):
        rows.append(measure(experiment, shlex.split(asked.beside), asked.rounds))
        print(rows[-1], flush=True)
    document = {"machine": machine.describe(), "results": {"speed": _kept(asked.names) + rows}}
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
