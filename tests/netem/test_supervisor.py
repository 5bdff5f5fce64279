"""Supervisors whose datapath is the kernel's, under a kernel that has netem: the scenes of
tests/agent/pod/scenes.py with tcald and real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.pod.scenes import SCENES
from tests.agent.pod.test_supervisor import played

pytestmark = pytest.mark.netem


# To the datapath these are what other scenes are: a run that goes on, or one that is given up.
SAME = {"nobody_resumes", "a_coordinator_stays_away", "strangers_knock"}


@pytest.mark.parametrize("scene", [name for name in SCENES if name not in SAME])
def test_with_the_kernels_traffic_control(tmp_path: Path, scene: str) -> None:
    played(scene, "kernel", tmp_path, root=True)
