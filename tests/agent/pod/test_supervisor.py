"""Supervisors with real agents, datapaths and packets, in namespaces: as root, and as an ordinary
user who is root there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.agent.pod.node import ROOT
from tests.agent.pod.scenes import SCENES
from tests.cli.process import ended
from tests.pktd.harness import ENVIRONMENT

pytestmark = pytest.mark.e2e

ORDINARY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SETTINGS = [
    pytest.param(True, id="root", marks=pytest.mark.root),
    pytest.param(False, id="rootless"),
]
SECONDS = 300


def played(scene: str, datapath: str, place: Path, *, root: bool) -> None:
    """A scene in a network namespace of its own."""
    place.chmod(0o777)
    become = [] if root or os.geteuid() != 0 else ORDINARY
    spaces = ["unshare", "-n"] if root else ["unshare", "-Urn"]
    done = ended(
        [*become, *spaces, sys.executable, "-m", "tests.agent.pod.scenes", scene, datapath, place],
        cwd=ROOT,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("root", SETTINGS)
@pytest.mark.parametrize("scene", SCENES)
def test_with_the_engine(tmp_path_factory: pytest.TempPathFactory, scene: str, root: bool) -> None:
    place = tmp_path_factory.mktemp("node")
    for folder in place.parents:
        folder.chmod(0o755)
        if folder.name.startswith("pytest-of-"):
            break
    played(scene, "user", place, root=root)
