"""What a supervisor (runtime.agent.pod.supervisor) is asked, answers and says; table in
docs/supervisor.md.

Both sides use this: the coordinator checks with it what comes from a node, as from anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from runtime.json_schema import Count, ValueKind, as_message, decoded, message, one_of

SUPERVISOR_PORT = 7475  # TCP: the supervisor listens, the coordinator connects

AGENT, DATAPATH = "agent", "datapath"
USER, KERNEL = "user", "kernel"  # kinds of datapath, as in the options of a run
MAX_SHARE = 1000  # pktd's

_Part = Annotated[str, one_of((AGENT, DATAPATH), "agent or datapath")]


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

    agent_pid: Count
    datapath_pid: Count


@dataclass(frozen=True, slots=True)
class EndReply:
    """What could not be removed, '' if nothing is left."""

    left: str


def _is_share(value: object) -> bool:
    return type(value) is int and 1 <= value <= MAX_SHARE


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What `begin` asks for: datapath and agent are started.

    resume  in the middle of a run, after the container was started again
    share   so many nodes of the run share this one's processors: those with the same `boot_id`
    """

    datapath: Annotated[str, one_of((USER, KERNEL), f"{USER} or {KERNEL}")]
    resume: bool
    share: Annotated[int, ValueKind(f"a number from 1 to {MAX_SHARE}", _is_share)] = 1

    def to_record(self) -> dict[str, object]:
        return {"do": "begin", **asdict(self)}


@dataclass(frozen=True, slots=True)
class PartEnded:
    """A part of the run has. `again`: another one is started in its place."""

    what: _Part
    status: int
    again: bool


@dataclass(frozen=True, slots=True)
class PartStarted:
    what: _Part
    pid: Count


@dataclass(frozen=True, slots=True)
class SupervisorNotice:
    text: str


Message = PartEnded | PartStarted | SupervisorNotice
Say = Callable[[Message], None]
_KINDS: dict[str, type] = {"ended": PartEnded, "started": PartStarted, "notice": SupervisorNotice}


def facts(answer: Any, node: str) -> NodeFacts:
    """Out of the answer to `facts`. RunError that names the node."""
    return decoded(NodeFacts, answer, f"facts of {node}")


def begun(answer: Any, node: str) -> StartReply:
    """Out of the answer to `begin`. RunError that names the node."""
    return decoded(StartReply, answer, f"the beginning on {node}")


def left(answer: Any, node: str) -> str:
    """Out of the answer to `end`. RunError that names the node."""
    return decoded(EndReply, answer, f"the end on {node}").left


def write(said: Message) -> dict[str, Any]:
    """As it is sent."""
    return as_message(_KINDS, said)


def read(said: Mapping[str, Any]) -> Message:
    """What a supervisor says on its own. RunError that says what is wrong with it."""
    found: Message = message(_KINDS, said, "a supervisor")
    return found


def beginning(request: Mapping[str, Any]) -> StartRequest:
    """Out of a `begin`. RunError."""
    return decoded(StartRequest, dict(request), "begin")
