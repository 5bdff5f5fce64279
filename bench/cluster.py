"""`python -m bench.cluster`: an experiment of 1,000 nodes and 5,000 pods on the test cluster, which
is up (tests/cluster/with_cluster.py). Nodes and agents are simulated, everything else is real.

Output: bench/results/cluster.json, and its table in docs/performance.md. Exit code 1 when the run
does not complete or misses a target.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from bench import RESULTS, ROOT
from bench.machine import describe
from bench.tables import Record, Table
from tests.cluster import scale
from tests.cluster.support import Cluster

START_SECONDS, MEMORY_MIB = 60.0, 500.0
TABLES = (
    Table(
        {
            "Nodes, pods": "{hosts}, {instances}",
            "objects": "{objects}, {applied_mb} MB",
            "applied": "{applied_s} s",
            "pods run": "{pods_s} s",
            "preflight to start": "{start_s} s",
            "memory": "{peak_mib:.0f} MiB",
            "sent / received": "{sent_mb} / {received_mb} MB",
            "deleted": "{deleted_s} s",
        }
    ),
)


def missed(row: Record) -> list[str]:
    """Which targets it does not meet."""
    found = []
    if row["outcome"] != "completed":
        found.append(f"the run is {row['outcome']}: {row['message']}")
    elif row["start_s"] > START_SECONDS:
        found.append(f"{row['start_s']} s to the start instead of {START_SECONDS:g}")
    if row["peak_mib"] > MEMORY_MIB:
        found.append(f"{row['peak_mib']} MiB instead of {MEMORY_MIB:g}")
    return found


def main() -> int:
    from bench.report import update  # which takes TABLES from here

    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    options = parser.parse_args()
    machine = describe()
    command = [str(ROOT / "tests/cluster/cluster"), "kubeconfig"]
    kubeconfig = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    cluster = Cluster(Path(kubeconfig.strip()))
    row = scale.measure(cluster, f"bench-{os.getpid()}", options.nodes, options.pods)
    document = {"format": 1, "machine": machine, "quick": False, "results": {"cluster": [row]}}
    path = RESULTS / "cluster.json"
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    update(RESULTS)
    for text in (found := missed(row)):
        print(f"missed: {text}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
