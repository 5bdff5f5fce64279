"""Echoes from inside a network that is not ours."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import pytest

from runtime.agent.pod.pod_echoes import reach
from runtime.agent.process.orders import EchoProbe
from runtime.errors import RunError

pytestmark = [pytest.mark.e2e, pytest.mark.root]
MS = 1_000_000


@pytest.fixture
def network() -> Iterator[int]:
    """A process in a network where nothing but this machine itself is reached."""
    script = "ip link set lo up && ip address add 10.9.8.7/32 dev lo && echo up && exec sleep 1000"
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        yield process.pid
        process.kill()


def test_echoes_come_back_or_do_not(network: int) -> None:
    times = asyncio.run(reach(network, EchoProbe(0, "10.9.8.7", 5, MS, 1000 * MS)))
    assert len(times) == 5
    assert all(0 < time_ns < 1000 * MS for time_ns in times)
    assert asyncio.run(reach(network, EchoProbe(0, "10.9.8.8", 2, MS, 50 * MS))) == []


def test_a_network_that_is_gone(network: int) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
        with pytest.raises(RunError, match=f"the network of process {gone.pid} is gone"):
            asyncio.run(reach(gone.pid, EchoProbe(0, "10.9.8.7", 1, MS, MS)))


def test_a_probe_that_never_ends_is_ended(network: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.agent.pod.pod_echoes.SPARE_SECONDS", -0.19)
    with pytest.raises(RunError, match=r"the echoes to 10.9.8.8 did not end in 0 s"):
        asyncio.run(reach(network, EchoProbe(0, "10.9.8.8", 1, 100 * MS, 100 * MS)))
