"""Carries 20 experiments with real programs out in virtual time, three times each: on a quiet
machine, with every processor busy, and started elsewhere with another environment. Their run
directories must be the same to the last byte.

`python -m bench.virtual.proof [NAME …]` writes bench/results/virtual-proof.json and ends with 1 if
runs differ. What it is told to repeat replaces what the file has of it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import RESULTS, machine
from bench.tables import Record, Table
from runtime.virtual.kernel import kernel_cache
from tests.virtual import repeating
from tests.virtual.catalogue import ALL, Experiment
from tstorm.exit_codes import OK, PROGRAMS_FAILED

FILE = RESULTS / "virtual-proof.json"
TABLES = (
    Table(
        {
            "Experiment": "{experiment}",
            "s of virtual time": "{virtual_seconds:.1f}",
            "s of real time: quiet, busy, elsewhere": "{real_seconds}",
            "MB compared": "{megabytes:.2f}",
            "three runs": "{outcome}",
        }
    ),
)


def prove(experiment: Experiment, place: Path) -> Record:
    """{experiment, outcome, …}: what was compared, and the first differences if there are any."""
    if lacking := experiment.lacking():
        return {"experiment": experiment.name, "outcome": f"not run: {lacking}"}
    runs = [repeating.carry_out(experiment, place, how) for how in repeating.EACH]
    # An experiment that shows a failure repeats it.
    if failed := [ran for ran in runs if ran.status not in (OK, PROGRAMS_FAILED)]:
        return {"experiment": experiment.name, "outcome": f"failed: {failed[0].said[-300:]}"}
    found = [one for other in runs[1:] for one in repeating.differences(runs[0], other)]
    sums = {ran.circumstances: repeating.contents(ran.directory) for ran in runs}
    digests = {name: digest for name, (digest, _) in sums.items()}
    same = not found and len(set(digests.values())) == 1
    return {
        "experiment": experiment.name,
        "options": list(experiment.options),
        "outcome": "the same" if same else "differ",
        "differences": [one.to_record() for one in found[:20]],
        "digests": digests,
        "bytes": sums["quiet"][1],
        "megabytes": sums["quiet"][1] / 1e6,
        "virtual_seconds": repeating.virtual_seconds(runs[0].directory),
        "seconds": {ran.circumstances: round(ran.seconds, 2) for ran in runs},
        "real_seconds": ", ".join(f"{ran.seconds:.1f}" for ran in runs),
        "load_1min": Path("/proc/loadavg").read_text().split()[0],
    }


def main(names: list[str]) -> int:
    wanted = [one for one in ALL if not names or one.name in names]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="ts-proof-") as folder:
        for experiment in wanted:
            row = prove(experiment, Path(folder))
            print(f"{experiment.name}: {row['outcome']}", row.get("real_seconds", ""), flush=True)
            for one in row.get("differences", []):
                print("  ", one, flush=True)
            _keep_or_clear(row, Path(folder))
            _write({**_recorded(), experiment.name: row})
            bad += row["outcome"].startswith(("differ", "failed"))
    return 1 if bad else 0


def _keep_or_clear(row: Record, folder: Path) -> None:
    """Runs that differ stay for who looks for the reason."""
    for run in folder.glob(f"**/{row['experiment']}-*/manifest.json"):
        if row["outcome"] == "differ":
            kept = Path(tempfile.gettempdir()) / "ts-differ" / run.parent.name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.move(run.parent, kept)
        else:
            shutil.rmtree(run.parent)


def _recorded() -> dict[str, Any]:
    if not FILE.exists():
        return {}
    rows = json.loads(FILE.read_text())["results"]["proof"]
    return {row["experiment"]: row for row in rows}


def _write(rows: dict[str, Record]) -> None:
    order = [one.name for one in ALL]
    ordered = sorted(rows.values(), key=lambda row: order.index(row["experiment"]))
    kernel = kernel_cache.find()
    document = {
        "machine": {**machine.describe(), "guest": kernel.facts.version if kernel else "named"},
        "results": {"proof": ordered},
    }
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
