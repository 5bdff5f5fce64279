"""What a supervisor and its coordinator send each other: what is made is understood, the rest is
refused with a word about what is wrong."""

from __future__ import annotations

import json
from dataclasses import asdict
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
    assert pod_messages.facts(wired(asdict(FACTS)), "n0") == FACTS
    assert pod_messages.begun(wired(asdict(StartReply(7, 8))), "n0") == StartReply(7, 8)
    assert pod_messages.left({"left": "eth0 of x"}, "n0") == "eth0 of x"
    asked = StartRequest("kernel", True, 3)
    assert pod_messages.beginning(wired(asked.to_record())) == asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel": {"netem": 1}}, "kernel.netem must be a text"),
        ({"user": {"ports": ""}}, "user.why is missing"),
        ({"running": 1}, "running must be true or false"),
        ({"node": None}, "node must be a text"),
    ],
)
def test_wrong_facts_name_node_and_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=f"^facts of n7: {words}"):
        pod_messages.facts({**asdict(FACTS), **change}, "n7")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"datapath": "auto"}, "datapath must be user or kernel, not 'auto'"),
        ({"datapath": ["user"]}, "datapath must be user or kernel"),
        ({"resume": 0}, "resume must be true or false, not 0"),
        ({"share": 0}, "share must be a number from 1 to 1000, not 0"),
        ({"share": True}, "share must be a number from 1 to 1000, not True"),
    ],
)
def test_a_wrong_begin_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        pod_messages.beginning({**StartRequest("user", resume=False).to_record(), **change})


@pytest.mark.parametrize(
    "message",
    [
        {"say": "ended", "what": "agent", "status": -9, "again": True},
        {"say": "started", "what": "agent", "pid": 12},
        {"say": "notice", "text": "x"},
    ],
)
def test_what_supervisors_say_is_checked(message: dict[str, Any]) -> None:
    found = {name: value for name, value in message.items() if name != "say"}
    assert asdict(pod_messages.read(message)) == found
    assert pod_messages.write(pod_messages.read(message)) == message
    for name in found:
        assert f"wrong '{name}'" in refusal({**message, name: None})
        missing = {key: value for key, value in message.items() if key != name}
        assert f"wrong '{name}'" in refusal(missing)
    assert "wrong 'more'" in refusal({**message, "more": 1})
    assert "no message of a supervisor" in refusal({**message, "say": ["ended"]})


def refusal(message: dict[str, Any]) -> str:
    with pytest.raises(RunError) as error:
        pod_messages.read(message)
    return error.value.message
