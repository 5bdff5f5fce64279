"""What an agent is asked about pods: what makes sense gets through, the rest is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.agent.process.orders import (
    EarlyReply,
    EchoProbe,
    FinishReply,
    PodsOrder,
    PodsReply,
    ReachOrder,
    ReachReply,
)
from runtime.errors import RunError
from runtime.json_schema import decoded, encoded

UID = "0a1b2c3d-0000-4000-8000-00000000000f"


def pods(value: Any, hosts: Any = "") -> PodsOrder:
    return decoded(PodsOrder, {"do": "pods", "pods": value, "hosts": hosts}, "pods")


def test_pods() -> None:
    assert pods([[1, UID], [0, UID]]).pods == {1: UID, 0: UID}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "pods: pods must be a list"),
        ([[1]], r"pods: pods\[0\] must be a list of 2"),
        ([[-2, UID]], r"pods\[0\]\[0\] must be an integer of 0 or more, not -2"),
        ([[1, 7]], r"pods\[0\]\[1\] must be the UID of a pod, not 7"),
        ([[1, UID.upper()]], r"pods\[0\]\[1\] must be the UID of a pod"),
        ([[1, UID + "/.."]], r"pods\[0\]\[1\] must be the UID of a pod"),
    ],
)
def test_wrong_pods(value: Any, says: str) -> None:
    with pytest.raises(RunError, match=says):
        pods(value)


def test_lines_for_hosts_end_with_a_line_feed() -> None:
    assert pods([], "").hosts == ""
    assert pods([], "10.0.0.1 a.0 a\n").hosts == "10.0.0.1 a.0 a\n"
    for wrong in (7, "10.0.0.1 a", "10.0.0.1 ä\n", "a\0b\n", "a\rb\n", "a\n" * (3 << 20)):
        with pytest.raises(RunError, match="pods: hosts must be whole lines"):
            pods([], wrong)


def probes(value: Any) -> tuple[EchoProbe, ...]:
    return decoded(ReachOrder, {"do": "reach", "probes": value}, "reach").probes


def test_probes() -> None:
    assert probes([[1, "fd00::7", 5, 1000, 2000]]) == (EchoProbe(1, "fd00::7", 5, 1000, 2000),)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({0: "b"}, r"probes\[0\]\[0\] must be an integer"),
        ({1: "server"}, r"probes\[0\]\[1\] must be an IPv4 or IPv6 address, not 'server'"),
        ({2: 0}, r"probes\[0\]\[2\] must be an integer from 1 to 1000, not 0"),
        ({3: 0}, r"probes\[0\]\[3\] must be an integer from 1"),
        ({4: 10**11}, r"probes\[0\]\[4\] must be an integer from 1"),
        ({5: 1}, r"probes\[0\] must be a list of 5"),
    ],
)
def test_wrong_probes(change: dict[int, Any], says: str) -> None:
    right: dict[int, Any] = dict(enumerate([1, "10.0.0.1", 5, 1000, 2000]))
    with pytest.raises(RunError, match=says):
        probes([list({**right, **change}.values())])


@pytest.mark.parametrize(
    "reply",
    [
        PodsReply(((3, 1003, 503, "run"),), ((4, "its pod has no process"),)),
        ReachReply(((1, "10.0.0.2", 5, (2000, 2100)),)),
        EarlyReply((1, 2), ((3, "setup ended with 1"),)),
        FinishReply((7,)),
    ],
)
def test_answers_are_read_as_they_were_given(reply: Any) -> None:
    sent = json.loads(json.dumps(encoded(reply)))
    assert decoded(type(reply), sent, "an answer") == reply
