"""What a supervisor (runtime.agent.pod.supervisor) is asked, answers and says; table in
docs/supervisor.md.

Both sides use this: the coordinator checks with it what comes from a node, as from anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from runtime import json_schema
from runtime.errors import RunError
from runtime.json_schema import (
    COUNT,
    FLAG,
    INTEGER,
    TEXT,
    Each,
    Form,
    Shape,
    ValueKind,
)

SUPERVISOR_PORT = 7475  # TCP: the supervisor listens, the coordinator connects

AGENT, DATAPATH = "agent", "datapath"
USER, KERNEL = "user", "kernel"  # kinds of datapath, as in the options of a run
MAX_SHARE = 1000  # pktd's

_PART = ValueKind("agent or datapath", lambda value: value in (AGENT, DATAPATH))
_ENGINE = {"why": TEXT, "ports": TEXT, "stamp": TEXT, "scheduling": TEXT}
_FACTS = Shape(
    {
        "node": TEXT,
        "digest": TEXT,
        "version": TEXT,
        "kernel": Each(TEXT),
        "user": _ENGINE,
        "boot_id": TEXT,
        "uname": TEXT,
        "cgroup": TEXT,
        "running": FLAG,
    }
)
_BEGUN = Shape({"agent_pid": COUNT, "datapath_pid": COUNT})
_ENDED = Shape({"left": TEXT})
_SAYS: dict[str, Form] = {
    "ended": {"what": _PART, "status": INTEGER, "again": FLAG},
    "started": {"what": _PART, "pid": COUNT},
    "notice": {"text": TEXT},
}


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The packet engine on a node, tried at the interface of the agent's own pod.

    why         why it cannot shape there, '' if it can; the rest is '' if it cannot
    ports       tap | packet: how it gets the packets
    stamp       bpf | socket | read: when they are stamped
    scheduling  fifo | other
    """

    why: str
    ports: str = ""
    stamp: str = ""
    scheduling: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node is and can do.

    digest   of the plan that it has
    version  of its programs
    kernel   what the kernel's datapath lacks, and why; empty if it has everything
    cgroup   v1 | v2 | hybrid
    running  whether a run is on: `begin` was asked, and `end` was not
    """

    node: str
    digest: str
    version: str
    kernel: Mapping[str, str]
    user: EngineFacts
    boot_id: str
    uname: str
    cgroup: str
    running: bool


@dataclass(frozen=True, slots=True)
class StartReply:
    """Processes of a run's beginning; the node's numbers."""

    agent_pid: int
    datapath_pid: int


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What `begin` asks for, checked."""

    datapath: str
    resume: bool
    share: int


# -- the coordinator's side -------------------------------------------------------------------


def begin(datapath: str, *, resume: bool, share: int = 1) -> dict[str, object]:
    """The request that starts datapath and agent.

    resume  in the middle of a run, after the container was started again
    share   so many nodes of the run share this one's processors: those with the same `boot_id`
    """
    return {"do": "begin", "datapath": datapath, "resume": resume, "share": share}


def facts(answer: Any, node: str) -> NodeFacts:
    """Out of the answer to `facts`. RunError that names the node."""
    json_schema.check(answer, _FACTS, f"facts of {node}")
    known = {name: answer[name] for name in _FACTS.spec}
    engine = EngineFacts(**{name: answer["user"][name] for name in _ENGINE})
    return NodeFacts(**{**known, "user": engine})


def begun(answer: Any, node: str) -> StartReply:
    """Out of the answer to `begin`. RunError that names the node."""
    json_schema.check(answer, _BEGUN, f"the beginning on {node}")
    return StartReply(answer["agent_pid"], answer["datapath_pid"])


def left(answer: Any, node: str) -> str:
    """Out of the answer to `end`: what could not be removed, '' if nothing is left. RunError."""
    json_schema.check(answer, _ENDED, f"the end on {node}")
    return str(answer["left"])


def fault(message: Mapping[str, Any]) -> str:
    """What is wrong with something that a supervisor says on its own, '' if it is valid."""
    return json_schema.message_fault(message, _SAYS, "a supervisor")


# -- the supervisor's side --------------------------------------------------------------------


def beginning(request: Mapping[str, Any]) -> StartRequest:
    """Out of a `begin`. RunError; KeyError for what is missing."""
    datapath, resume, share = request["datapath"], request["resume"], request["share"]
    if datapath not in (USER, KERNEL):
        raise RunError(f"datapath is {datapath!r:.60}: {USER} or {KERNEL} is expected")
    if type(resume) is not bool:
        raise RunError(f"resume is {resume!r:.60}: true or false is expected")
    if type(share) is not int or not 1 <= share <= MAX_SHARE:
        raise RunError(f"share is {share!r:.60}: a number from 1 to {MAX_SHARE} is expected")
    return StartRequest(datapath, resume, share)


def record(found: NodeFacts | StartReply) -> dict[str, object]:
    """As an answer."""
    return asdict(found)
