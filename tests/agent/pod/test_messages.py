"""What a supervisor and its coordinator send each other: what is made is understood, the rest is
refused with a word about what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.agent.pod import pod_messages
from runtime.agent.pod.pod_messages import (
    EngineFacts,
    NodeFacts,
    StartReply,
    StartRequest,
)
from runtime.errors import RunError

FACTS = NodeFacts(
    node="n0",
    digest="ab" * 32,
    version="0.1.0",
    kernel={"netem": "No such file or directory"},
    user=EngineFacts("", "packet", "bpf", "fifo"),
    boot_id="b",
    uname="Linux 6.1",
    cgroup="hybrid",
    running=False,
)


def wired(value: object) -> Any:
    return json.loads(json.dumps(value))


def test_answers_are_understood() -> None:
    assert pod_messages.facts(wired(pod_messages.record(FACTS)), "n0") == FACTS
    assert pod_messages.begun(wired(pod_messages.record(StartReply(7, 8))), "n0") == StartReply(
        7, 8
    )
    assert pod_messages.left({"left": "eth0 of x"}, "n0") == "eth0 of x"
    asked = wired(pod_messages.begin("kernel", resume=True, share=3))
    assert pod_messages.beginning(asked) == StartRequest("kernel", True, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": {"netem": 1}}, "kernel.netem must be a text"),
        ({"user": {"why": ""}}, "user.ports is missing"),
        ({"running": 1}, "running must be true or false"),
        ({"node": None}, "node must be a text"),
    ],
)
def test_wrong_facts_name_node_and_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=f"^facts of n7: {words}"):
        pod_messages.facts({**pod_messages.record(FACTS), **change}, "n7")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"datapath": "auto"}, "datapath is 'auto'"),
        ({"datapath": ["user"]}, "datapath is"),
        ({"resume": 0}, "resume is 0"),
        ({"share": 0}, "share is 0"),
        ({"share": True}, "share is True"),
    ],
)
def test_a_wrong_begin_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        pod_messages.beginning({**pod_messages.begin("user", resume=False), **change})


@pytest.mark.parametrize(
    "message",
    [
        {"say": "ended", "what": "agent", "status": -9, "again": True},
        {"say": "started", "what": "agent", "pid": 12},
        {"say": "notice", "text": "x"},
    ],
)
def test_what_supervisors_say_is_checked(message: dict[str, Any]) -> None:
    assert pod_messages.fault(message) == ""
    for name in message.keys() - {"say"}:
        assert f"wrong '{name}'" in pod_messages.fault({**message, name: None})
        missing = {key: value for key, value in message.items() if key != name}
        assert f"wrong '{name}'" in pod_messages.fault(missing)
    assert "wrong 'more'" in pod_messages.fault({**message, "more": 1})
    assert "no message of a supervisor" in pod_messages.fault({**message, "say": ["ended"]})
