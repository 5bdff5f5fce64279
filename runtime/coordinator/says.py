"""What an agent may say on its own: nothing of another type gets further. Agents write it, and
coordinators read it, by the same dataclasses.

An agent knows the run's key and is still only believed as far as it makes sense. Table in
docs/agent.md (messages).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from compiler.plan.event_kinds import PROCESS_KINDS
from runtime.datapath.sampler import PAIR_COLUMNS, PAIR_DIGEST_COLUMNS
from runtime.json_schema import (
    COUNT,
    TEXT,
    Count,
    Row,
    Shape,
    ValueKind,
    as_message,
    message,
    one_of,
)

HOLD_EVENTS = (  # of which a tstorm-hold reports (docs/hold.md)
    "held",
    "setup",
    "set_up",
    "started",
    "ready",
    "not_ready",
    "failed",
    "ended",
    "paused",
    "resumed",
    "left",
    "crashed",
    "ignored",
    "released",
)
REPORTS = (
    *HOLD_EVENTS,
    "gone",  # said by the agent: the process that kept the program has ended
)

FILE_CHANGES = ("written", "moved here", "made")

_DIGEST = ValueKind(
    "a digest",
    lambda value: TEXT.fits(value) and re.fullmatch(r"[0-9a-f]{16}", value, re.ASCII) is not None,
)
_PAIRS = Shape([Row([COUNT] * len(PAIR_COLUMNS))])
_DIGESTS = Shape([Row([*[COUNT] * (len(PAIR_DIGEST_COLUMNS) - 1), _DIGEST])])


@dataclass(frozen=True, slots=True)
class StepApplied:
    """A step has taken effect on its host, at ns since T0 on its own clock, which may show a step a
    little before T0. `late`: only when the agent was back."""

    step: Count
    elapsed_ns: int
    late: bool


@dataclass(frozen=True, slots=True)
class TrafficSample:
    """Counters of pairs that have moved, by sampler.PAIR_COLUMNS, and digests of their paths."""

    elapsed_ns: Count
    pairs: Annotated[Any, ValueKind("rows of counters", _PAIRS.fits)]
    digests: Annotated[Any, ValueKind("digests of paths", _DIGESTS.fits)] = ()


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """What an agent has done to an instance of its host: a `life`. `status`: why not, '' if it
    has."""

    step: Count
    node: Count
    what: Annotated[str, one_of(PROCESS_KINDS, "what happens to an instance")]
    elapsed_ns: int  # since T0
    status: str


@dataclass(frozen=True, slots=True)
class HoldReport:
    """What the tstorm-hold of an instance has reported (docs/hold.md): a `report`. `line` counts
    them, from 0."""

    node: Count
    line: Count
    event: Annotated[str, one_of(REPORTS, "an event of tstorm-hold")]
    elapsed_ns: int  # since T0; below 0 before
    pid: Count = 0
    status: Count = 0
    signal: Count = 0  # that ended the program; 0: it ended with `status`
    program: str = ""
    error: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What has become of a file of an instance that a `when file` waits for (runtime/system/
    inotify.py): a `file`. `path` is the plan's."""

    node: Count
    path: str
    how: Annotated[str, one_of(FILE_CHANGES, "what becomes of a file")]
    elapsed_ns: int  # since T0


@dataclass(frozen=True, slots=True)
class EchoTimes:
    """Of each echo its pair, when it was sent (ns since T0) and its round trip, None if it was
    lost."""

    rows: tuple[tuple[Count, int, Count | None], ...]


@dataclass(frozen=True, slots=True)
class AgentNotice:
    text: str


@dataclass(frozen=True, slots=True)
class AgentFailed:
    """The agent cannot go on."""

    text: str


Message = (
    StepApplied
    | TrafficSample
    | InstanceReport
    | HoldReport
    | FileReport
    | EchoTimes
    | AgentNotice
    | AgentFailed
)
Say = Callable[[Message], None]
_KINDS: dict[str, type] = {
    "applied": StepApplied,
    "sample": TrafficSample,
    "life": InstanceReport,
    "report": HoldReport,
    "file": FileReport,
    "echoes": EchoTimes,
    "notice": AgentNotice,
    "failed": AgentFailed,
}


def write(said: Message) -> dict[str, Any]:
    """As it is sent."""
    return as_message(_KINDS, said)


def read(said: dict[str, Any]) -> Message:
    """RunError that says what is wrong with it."""
    found: Message = message(_KINDS, said, "an agent")
    return found
