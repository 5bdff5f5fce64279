"""Where a run takes place, as the driver sees it: a backend has the instances and the network that
joins them. The network is one engine that models every link (runtime.backend.onehost.hop_network),
or hosts with an agent and a datapath each (runtime.backend.hosts.agent_network).

The timeline runner says what happens to instances; links and paths are in the plan, which a
network reads by itself. Steps are positions in Schedule.steps. Times are ns, of CLOCK_MONOTONIC or
since T0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from compiler.plan.reader import Plan
from runtime.backend.instance import Incarnation, Instance, ProgramEnd
from runtime.errors import RunError
from runtime.judge.pulse import Pulse
from runtime.options import RunOptions
from runtime.probing.echo_prober import EchoProber
from runtime.probing.prober import Prober
from runtime.rundir.line_files import LineFile
from runtime.schedule import Schedule, Step
from runtime.system.network.netlink import NetlinkRequest


@dataclass(frozen=True, slots=True)
class Change:
    """What a step asks of the network beside what its epoch says."""

    number: int
    step: Step
    bound: Mapping[int, int]  # nodes with a fresh incarnation that is there then: its port
    gone: Collection[int]  # instances that are not there any more
    leaving: Collection[int]  # those of them whose program is to say goodbye first


@dataclass(frozen=True, slots=True)
class Effect:
    """When a step had taken effect everywhere, in ns since T0.

    spread_ns   from the first to the last host, None if one engine does it all
    late        hosts that did it only when they were back
    """

    at_ns: int
    spread_ns: int | None = None
    late: tuple[str, ...] = ()


LINKS_SOCKET = "tstorm-links"  # abstract, where programs ask for links
Held = Mapping[int, frozenset[int]]  # leaving node -> links that `cut` is to take down, if any
OnEffect = Callable[[int, Effect | None], None]  # None: nothing of the network changes in this step
Notice = Callable[[str], None]
Log = Callable[[Mapping[str, object]], None]
OnEnded = Callable[
    [Instance, ProgramEnd, bool, str], None
]  # asked for by the run or not; what may help
OnKilled = Callable[[Instance, str], None]  # all of an instance is dead, unasked: what has died
OnOverdue = Callable[[Instance, int], None]  # it is killed, since it had not ended in so many ns
OnOomKill = Callable[[str, int], None]  # instance, how many of its processes: for its mem=
OnFile = Callable[[str, str, str, int], None]  # instance, path, what became of it, ns since T0
RunProber = Prober | EchoProber
Entrance = tuple[Mapping[str, object], int | None]  # what `enter` answers, and a pidfd to hand over


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a backend, and its network, are told of the run."""

    run_id: str
    directory: Path
    plan: Plan
    schedule: Schedule
    options: RunOptions
    log: IO[bytes]  # what its processes say on stderr
    log_name: str  # where the user finds that
    record: Log  # of events
    notice: Notice  # a message that is to be seen if progress is
    warn: Notice  # a message that is to be seen
    on_effect: OnEffect
    on_ended: OnEnded
    on_killed: OnKilled
    on_overdue: OnOverdue
    on_oom_kill: OnOomKill
    cannot_write: Notice  # why a file of the run has a hole: the run ends
    on_file: OnFile  # where instances have their files elsewhere


@dataclass(frozen=True, slots=True)
class CapturedPart:
    """What one engine captures. `pipe` is a descriptor with its packets as pcapng, whose times are
    `since_ns` short of those of day; `parts`: of so many engines, whom to ask in turn."""

    pipe: int
    interfaces: Sequence[str]
    parts: int = 1
    since_ns: int = 0
    left_out: Sequence[str] = ()  # instances without a path now: nothing from or to them


class Counters(Protocol):
    """The latest counters of what moved, as they were said, by number and by both numbers."""

    @property
    def links(self) -> Mapping[bytes, bytes]:
        """Empty if the links themselves are nowhere counted."""

    @property
    def pairs(self) -> Mapping[bytes, bytes]: ...

    @property
    def counted_ns(self) -> int:
        """When that was, since time 0; of several hosts the latest."""

    async def run(self) -> None:
        """Writes samples until `stop`, then one more."""

    def stop(self) -> None:
        """Ends `run`."""


class PortAllocator(Protocol):
    """Where incarnations are attached. RunError if that is refused.

    `more` is what the kernel is asked for in each incarnation, beside its addresses. `groups`: the
    network carries multicast and broadcast, so that instances have routes for them.
    """

    more: Sequence[NetlinkRequest]
    groups: bool

    async def attach(self, incarnation: Incarnation, node: int) -> int:
        """Makes eth0 of an incarnation, without addresses. Returns its port."""

    async def furnished(self, incarnation: Incarnation, node: int, port: int) -> None:
        """The addresses are there and eth0 is up."""

    def give_back(self, port: int) -> None:
        """The incarnation at this port is dead; the port is removed when there is time for it."""

    async def tidy(self, next_due: Callable[[], int]) -> None:
        """Removes ports between events (`next_due`: CLOCK_MONOTONIC) until it is cancelled."""


class RunNetwork(Protocol):
    """Raises RunError wherever it is refused something, MachineError if the machine refuses it."""

    facts: dict[str, Any]  # for the manifest; complete after `begin`
    closed: asyncio.Future[None]  # done when it cannot go on; `why` says why
    fault: RunError | None  # see `end`

    @property
    def ports(self) -> PortAllocator: ...

    @property
    def pids(self) -> list[int]:
        """Processes that carry packets, for the scheduler."""

    async def start(self) -> None:
        """Makes ready what it needs; instances may be attached after it."""

    async def put_in_force(self, bound: Mapping[int, int]) -> None:
        """The network of the first step, now: for programs that run before T0. Once, and `begin`
        follows with the same ports."""

    async def begin(self, bound: Mapping[int, int]) -> int:
        """Everything that is there at the start, with these ports. Returns T0."""

    def sampler(self, file: LineFile, pulse: Pulse) -> Counters:
        """After `begin`. `pulse` hears how long answers take."""

    async def stage(self, change: Change) -> Held:
        """Asks for a later step at its time; `OnEffect` tells. Returns who is held."""

    async def offer(self, plan: Plan, base: str, left: Path) -> str:
        """Whether everybody who follows the plan with the digest `base` by itself can go over to
        this one, which lies in `left`, beside that: why it is too late for it, '' if it is not.
        `follow` or `withdraw` comes next. RunError if one of them refuses."""

    async def withdraw(self) -> None:
        """All stays as it is."""

    def follow(self, plan: Plan) -> None:
        """Later steps are those of this plan, whose topology is the same. RunError."""

    async def use(self, links: Sequence[int], *, up: bool) -> int:
        """Takes links that programs lead up or down at once. Returns when that was, since T0."""

    async def cut(self, node: int, links: frozenset[int]) -> bool:
        """Ends a hold now. False if the network is gone."""

    async def capture(self, target: str, *, is_link: bool, probes: bool, part: int) -> CapturedPart:
        """What passes an instance or a link from now on. `probes`: with those of the run."""

    def waiting_for(self) -> list[str]:
        """Names of those that have not yet said that the next step has taken effect."""

    async def why(self) -> RunError:
        """After `closed`: the reason, for the user."""

    async def lost(self) -> dict[str, str]:
        """What was lost beside the plan until now, by counter, as far as that can be told while the
        run goes on. Those of `end` have what ends with the run, too."""

    async def end(self) -> dict[str, Any]:
        """Stops everything; returns the last totals (of all, and of hosts if there are any).

        After that `fault` says what of it had ended by itself, or badly.
        """


class Backend(Protocol):
    """Instances and their network, from before the first one is made to after the last has ended.

    Made by a MakeBackend, which starts nothing; `finish`, the network's `end` and `close` follow
    whatever `start` came to. Raises RunError wherever it is refused something, MachineError if the
    machine refuses it, PlanError for the plan.
    """

    @property
    def network(self) -> RunNetwork | None:
        """None until `start` has got as far as to have something to end."""

    @property
    def instances(self) -> Mapping[str, Instance]:
        """Those that are ever there, by name, in the order of the topology; one mapping, which is
        empty until `start` fills it."""

    async def start(self) -> RunNetwork:
        """Up to where the timeline's runner can stage the start: every instance that is there at
        the start, or joins once, has its first life in the making or made."""

    @property
    def closed(self) -> asyncio.Future[None]:
        """After `start`: done when instances cannot live on; `why` says why. What ends the network
        is told there (Network.closed)."""

    async def why(self) -> RunError:
        """After `closed`: the reason, for the user."""

    async def enter(self, instance: str) -> Entrance:
        """How a command gets into this instance (`tstorm exec`)."""

    def prober(self, file: LineFile | None, notice: Notice, on_end: Notice) -> RunProber:
        """Who measures paths between instances, into this file; without one nobody does. `on_end`
        is told why nobody measures any more."""

    def begin(self, t0_ns: int) -> None:
        """Time 0 is known (CLOCK_MONOTONIC)."""

    async def observe(self, samples: LineFile) -> None:
        """Writes files of its own about instances until it is cancelled. `samples` grows while
        packets move."""

    @property
    def has_files_here(self) -> bool:
        """Whether the files that programs write are in the run directory."""

    async def finish(self) -> dict[str, Any]:
        """Ends all programs, as a leave does; returns when they have ended, with facts of the run
        that are known then."""

    def close(self) -> None:
        """After the network's end: gives back whatever is left. Raises nothing."""


MakeBackend = Callable[[RunContext], Backend]
