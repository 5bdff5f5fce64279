"""An experiment on nodes that are none: its objects applied as they are rendered, its pods watched
with the coordinator's own account, a run led to its end, everything deleted.

FAKE_NODES and FAKE_PODS make it as large as `make bench-cluster` does: 1,000 and 5,000.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.cluster import fakenodes, scale
from tests.cluster.support import Cluster

pytestmark = pytest.mark.cluster

NODES = int(os.environ.get("FAKE_NODES", "5"))
PODS = int(os.environ.get("FAKE_PODS", "25"))


def test_a_run_over_fake_nodes(cluster: Cluster) -> None:
    run = f"fake-{os.getpid()}"
    row = scale.measure(cluster, run, NODES, PODS)
    print(json.dumps(row))
    assert (row["outcome"], row["message"]) == ("completed", "")
    assert row["proven"] == NODES  # the shaping of every node, by simulated echoes
    assert cluster.kubectl("get", "nodes", "-l", f"{fakenodes.LABEL}={run}") == ""
    assert cluster.kubectl("get", "namespace", run, "--ignore-not-found") == ""
