"""What all tests share: those marked `root`, `e2e` or `netem` are skipped, and say why, where they
must be.

Only the machine's own refusal is a reason: a program of ours that is missing or broken must fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else makes no test wrong: nothing depends on its speed.
settings.register_profile(
    "tstorm", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tstorm")


def _why_no_namespaces() -> str:
    """The kernel's words if it refuses the namespaces a run needs, else ''."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ""
    kinds = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork"]
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    trial = subprocess.run(
        [unshare, *user, *kinds, "true"], capture_output=True, text=True, check=False
    )
    return "" if trial.returncode == 0 else f"namespaces are refused: {trial.stderr.strip()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ordinary = os.geteuid() != 0
    with_netem = [item for item in items if item.get_closest_marker("netem")]
    end_to_end = [item for item in items if item.get_closest_marker("e2e")]
    refused = _why_no_namespaces() if end_to_end else ""
    # With this set they were to be run under such a kernel: then nothing excuses them.
    if with_netem and "TSTORM_TEST_NETEM" not in os.environ:
        for item in with_netem:
            item.add_marker(pytest.mark.skip(reason="needs a kernel with netem: make test-netem"))
    for item in items:
        if ordinary and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
    if refused:
        for item in end_to_end:
            item.add_marker(pytest.mark.skip(reason=refused))
