"""Supervisors whose datapath is the kernel's, under a kernel that has netem: the scenes of
tests/agent/pod/scenes.py with tcald and real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.pod.scenes import SCENES
from tests.agent.pod.test_supervisor import played

pytestmark = pytest.mark.netem


@pytest.mark.parametrize("scene", SCENES)
def test_with_the_kernels_traffic_control(tmp_path: Path, scene: str) -> None:
    played(scene, "kernel", tmp_path, root=True)
