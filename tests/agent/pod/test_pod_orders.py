"""What an agent is asked about pods: what makes sense gets through, the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.agent.process.orders import (
    EchoProbe,
    OrderError,
    hosts_lines,
    pods,
    probes,
)

UID = "0a1b2c3d-0000-4000-8000-00000000000f"


def test_pods() -> None:
    assert pods([[1, UID], [0, UID]], 2) == {1: UID, 0: UID}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "pods is {}: a list"),
        ([[1]], "an item of pods is .*UID. is expected"),
        ([[2, UID]], "a node of pods is 2: a number from 0 to 1"),
        ([[1, 7]], "a pod's UID is 7: a text"),
        ([[1, UID.upper()]], "the UID of node 1's pod is"),
        ([[1, UID + "/.."]], "the UID of node 1's pod is"),
    ],
)
def test_wrong_pods(value: Any, says: str) -> None:
    with pytest.raises(OrderError, match=says):
        pods(value, 2)


def test_lines_for_hosts_end_with_a_line_feed() -> None:
    assert hosts_lines("") == ""
    assert hosts_lines("10.0.0.1 a.0 a") == "10.0.0.1 a.0 a\n"
    for wrong in (7, "10.0.0.1 ä", "a\0b", "a\rb", "a" * (5 << 20)):
        with pytest.raises(OrderError, match="hosts must be"):
            hosts_lines(wrong)


def test_probes() -> None:
    assert probes([[1, "fd00::7", 5, 1000, 2000]], 2) == [EchoProbe(1, "fd00::7", 5, 1000, 2000)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({0: 2}, "a node of probes is 2"),
        ({1: "server"}, "a probe's address is 'server'"),
        ({2: 0}, "the count of a probe is 0: a number from 1 to 1000"),
        ({3: 0}, "the interval of a probe is 0"),
        ({4: 10**11}, "the timeout of a probe is 1"),
        ({5: 1}, "an item of probes is .* is expected"),
    ],
)
def test_wrong_probes(change: dict[int, Any], says: str) -> None:
    right: dict[int, Any] = dict(enumerate([1, "10.0.0.1", 5, 1000, 2000]))
    with pytest.raises(OrderError, match=says):
        probes([list({**right, **change}.values())], 2)
