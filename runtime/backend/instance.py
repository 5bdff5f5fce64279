"""What the runner of the timeline, and `inspect`, ask of an instance, whoever starts and ends its
program: the nursery of this machine (runtime.backend.local.instances), or the agent of its host.

Times are ns of this process's CLOCK_MONOTONIC.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compiler.plan.event_kinds import DOWN, STATE_AFTER
from compiler.plan.types import Node
from runtime.errors import RunError
from runtime.rundir.eventlog import how_ended

FAILED_TO_START = "failed to start"
KILLED = "killed"


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended by itself: by `status`, or by `signal` (then status is -1); and the
    `reason` where its backend knows one, else ''."""

    status: int
    signal: int
    reason: str = ""

    @property
    def well(self) -> bool:
        return self.status == 0

    @property
    def words(self) -> str:
        return how_ended({"status": self.status, "signal": self.signal})


class Incarnation:
    """One incarnation of an instance, to which a backend adds what it starts and ends it by.

    name     of the instance
    port     where it is attached, -1 before that
    further  the ports of its further interfaces, by node
    pid      a process in its namespaces, as this process counts them; 0 if it is elsewhere
    gone     done when every process of it is dead, or an agent has told that
    arrived  where an agent carries its join out: when it did, once that is told (this clock)
    joined   the same of how that join went
    """

    def __init__(self, name: str, port: int = -1, pid: int = 0) -> None:
        self.name, self.port, self.pid = name, port, pid
        self.further: Mapping[int, int] = {}
        loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.arrived: asyncio.Future[int] = loop.create_future()
        self.joined: asyncio.Future[Joined] = loop.create_future()

    def alive(self) -> bool:
        """Also right before `gone` says otherwise."""
        return not self.gone.done()


@dataclass(frozen=True, slots=True)
class Joined:
    """How a join went: when it was carried out, when the program ran, or why it did not."""

    at_ns: int
    started_ns: int | None = None  # None for an instance without a program, too
    error: str = ""
    unheard: bool = False  # nobody there could be asked: the program may be able to start


@dataclass(frozen=True, slots=True)
class Left:
    """When an instance was asked to leave, and who is leaving if anybody was there."""

    at_ns: int
    incarnation: Incarnation | None


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command in an instance ended: `status` as a shell says it (128 + N: by signal N), None
    if it took too long; the last lines of its output if that went nowhere else; and what is known
    of the reason, '' for nothing."""

    status: int | None
    lines: tuple[str, ...] = ()
    reason: str = ""

    @property
    def said(self) -> str:
        return self.lines[-1] if self.lines else ""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """What has a name in a folder; `runs`: somebody may execute it."""

    name: str
    is_folder: bool
    runs: bool


class UnreachableError(RunError):
    """Nobody can say how a command ended, or whether it began: what carries it there is away."""


class CommandRunner(Protocol):
    """How commands of expectations are run in an instance."""

    def resolved(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command of the plan as it is run here: variables of the run, programs beside it."""

    async def run(
        self, incarnation: Incarnation, argv: Sequence[str], *, seconds: float | None = None
    ) -> Ran:
        """Runs a command in this life, as its program runs, to its end, or for so many seconds at
        most; then, and when it is cancelled, it is killed. What is in force for the instance is for
        it as well: limits, faults of its disk, a pause, in which it does not begin either. RunError
        if it cannot be started."""

    def listed(self, incarnation: Incarnation, folder: str, /) -> tuple[FolderEntry, ...]:
        """What is in a folder of this life, by name. RunError; UnreachableError where nobody looks
        into files of instances."""


class ServiceCommands(CommandRunner, Protocol):
    """What an instance's service says of it beside its program, and how that is done inside: with
    it whoever follows the timeline can act between the instance's arrival and its program's start.
    """

    setup: tuple[str, ...]  # argv, to be run once before the first start; empty: nothing
    ready: tuple[str, ...]  # () or ('none',): at once; ('tcp:PORT',); else an argv
    ready_timeout_ns: int

    async def run_beside(
        self,
        incarnation: Incarnation,
        argv: Sequence[str],
        *,
        logged: bool,
        seconds: float | None = None,
    ) -> Ran:
        """As `run`, but without the limits of the instance and faults of its disk. Its output goes
        to the instance's log if that is asked for. RunError if it cannot be started."""

    async def connect(self, incarnation: Incarnation, port: int) -> str:
        """Tries a TCP connection to the instance's own address from inside. Why there is none,
        '' if it was accepted."""

    def mark(self, text: str) -> None:
        """Writes a line of the run's own into the instance's log."""


# What is heard of what the programs of an instance ask of its disk: nothing, what changes it, all.
NOT_HEARD, WRITES_HEARD, CALLS_HEARD = HEARD = ("", "writes", "reads")
KILLED_UNHEARD = (  # by SIGSYS (tcal_c/ns/syncs.c)
    "perhaps a 32-bit system call, which is not heard where a disk may have a fault"
    " (docs/tdl.md, Disks)"
)


class Instance(ABC):
    """One instance through all its incarnations. The flags are of the present incarnation, and
    change here only: it arrives, then its program starts or cannot, then it ends by itself, is
    killed by the timeline, or all of it dies unasked; meanwhile it may be paused.

    present      the incarnation that is there
    state        as the timeline has it: up | cut | down
    commands     None: whoever starts its program sees to setup and readiness
    runner       of commands of the run's own; None: nobody runs them there
    started      its program was
    start_error  why its program was not
    ended        how its program ended by itself
    killed       all of it died, unasked
    dead         the timeline has killed its programs
    paused       the timeline has stopped its processes
    can_lose_power  it is known what its disk has
    heard        one of HEARD
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.present: Incarnation | None = None
        self.state = DOWN
        self.commands: ServiceCommands | None = None
        self.runner: CommandRunner | None = None
        self.can_lose_power = False
        self.heard = NOT_HEARD
        self._going = asyncio.Event()  # unless it is paused
        self._arrived()

    # -- what is known --------------------------------------------------------------------------

    @property
    @abstractmethod
    def argv(self) -> tuple[str, ...]:
        """Of the program; empty if there is none."""

    @property
    def shown_state(self) -> str:
        """The timeline's word for it, unless that would say that something runs which never did."""
        if self.state == DOWN:
            return self.state
        if self.killed:
            return KILLED
        return FAILED_TO_START if self.start_error else self.state

    @property
    def is_over(self) -> bool:
        """Whether nothing of this incarnation's program will run any more."""
        return self.ended is not None or self.killed or bool(self.start_error)

    @property
    def ended_well(self) -> bool:
        """Whether its program has ended as it should, or as the timeline had it."""
        return self.ended is not None and (self.ended.well or self.dead) and not self.killed

    @property
    def failure(self) -> str:
        """Why its program will not do its work any more; '' if it may, or has done it."""
        if self.start_error:
            return f"its program could not start: {self.start_error}"
        if self.killed:
            return "the instance was killed"
        if self.ended is None or self.ended.well:
            return ""
        return f"its program ended with {self.ended.words}"

    # -- what becomes of it ---------------------------------------------------------------------

    def _arrived(self) -> None:
        """A fresh incarnation is there: nothing is known of its program."""
        self.started, self.start_error = False, ""
        self.ended: ProgramEnd | None = None
        self.killed = self.dead = self.paused = False
        self._going.set()

    def follows(self, kind: str) -> None:
        """An event of this kind (of event_kinds.STATE_AFTER) is done, as the timeline says."""
        self.state = STATE_AFTER[kind]

    async def signal(self, kind: str) -> int:
        """What an event of this kind (of event_kinds.SIGNALS) does to all of its processes. Returns
        when that was asked for."""
        at_ns = await self._signal(kind)
        if kind in ("pause", "resume", "kill"):
            self.paused = kind == "pause"
            (self._going.clear if self.paused else self._going.set)()
        return at_ns

    async def goes_on(self, incarnation: Incarnation) -> None:
        """Until it is not paused, or that life is over."""
        while self.paused and not incarnation.gone.done():
            going = asyncio.ensure_future(self._going.wait())
            try:
                first = asyncio.FIRST_COMPLETED
                await asyncio.wait((going, incarnation.gone), return_when=first)
            finally:
                going.cancel()

    # -- what a backend does --------------------------------------------------------------------

    @abstractmethod
    def prepare(self) -> asyncio.Future[Any]:
        """Begins to make the next life; the future is done when it is made, or cannot be."""

    @abstractmethod
    async def next_incarnation(self) -> Incarnation:
        """The oldest prepared one, made now if there is none. RunError."""

    @abstractmethod
    def hold(self, incarnation: Incarnation, gate: int) -> None:
        """Has its program wait until the pipe `gate` reads end of file. RunError.

        Only for an instance that was never there: nothing of a life before can be in the way.
        """

    @abstractmethod
    async def arrive(self, incarnation: Incarnation, opened_ns: int = 0) -> int:
        """Takes this incarnation as the present one, once all processes of the one before are dead.
        Returns when that was: `opened_ns`, the moment at which its gate was opened, if it was held.
        """

    @abstractmethod
    async def start(self, incarnation: Incarnation) -> Joined:
        """Starts the program of an incarnation that has arrived, or hears how that went."""

    @abstractmethod
    async def leave(self) -> Left:
        """SIGTERM now, SIGKILL after the grace."""

    @abstractmethod
    async def _signal(self, kind: str) -> int:
        """See `signal`. With a kill that is possible it becomes `dead` before its programs end."""

    def lose_power(self, seed: int) -> Mapping[str, int]:
        """Its power has failed, and no program of it is left: its files become what its disk has.
        How much that is. RunError."""
        raise RunError(f"what the disk of {self.node.name} has is not known ({seed})")

    def set_disk(self, incarnation: Incarnation, args: Mapping[str, int | str]) -> None:
        """From now on its disk is like this for that life of it (`args` of an event `disk`)."""
        what = f"{args['fault']}, for its life {incarnation.pid}"
        raise RunError(f"what {self.node.name} asks of its disk is not heard ({what})")

    @abstractmethod
    async def crash(self) -> int:
        """SIGKILL to all of it now. Returns when that was."""
