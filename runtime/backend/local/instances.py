"""The instances of a run: making incarnations ahead of time, starting, stopping and killing them.

An incarnation has namespaces of its own, a port at the network and addresses. A rejoin is a new
incarnation under the old name.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from compiler.plan.event_kinds import CUT, UP
from compiler.plan.parts.host_names import hostname
from compiler.plan.types import Node, Service, device_mac
from runtime.backend.base import OnOverdue, PortAllocator
from runtime.backend.instance import (
    NOT_HEARD,
    Incarnation,
    Instance,
    Joined,
    Left,
    ProgramEnd,
)
from runtime.backend.local import cards
from runtime.backend.local.assertion_files import AssertionFiles
from runtime.backend.local.disk import Disk
from runtime.backend.local.kernel_bridges import KernelBridges
from runtime.backend.local.nursery import (
    KILLED,
    LocalIncarnation,
    MachineKeeper,
    Nursery,
    Program,
    own,
)
from runtime.backend.local.outside import Outside
from runtime.backend.local.sync_watch import SyncWatch
from runtime.errors import MachineError, RunError, unexpected, unread
from runtime.stacks import watch as stacks
from runtime.system import process_limits
from runtime.system.network import addresses
from runtime.system.network.netlink import NetlinkRequest

GRACE_SECONDS = 5.0  # from the signal to stop to SIGKILL
AT_ONCE = 32  # incarnations in the making
READY_SECONDS = 60.0
GONE_SECONDS = 0.5  # for the news that an instance is dead to arrive


@dataclass(frozen=True, slots=True)
class ProgramEnding:
    """How the program of an instance is asked to end, and how long it may take."""

    signal: int = signal.SIGTERM
    grace_s: float = GRACE_SECONDS


@dataclass(frozen=True, slots=True)
class DiskFaults:
    """What is heard for them and for failures of power, one of instance.HEARD, of files below
    `root`."""

    heard: str = NOT_HEARD
    root: str = ""


NO_FILES: Mapping[str, str] = {}
NO_MACHINES: Mapping[str, MachineKeeper] = {}
OnReady = Callable[[LocalIncarnation, Node], None]  # RunError


class Maker:
    """Makes incarnations and takes them away again. `on_ready`: to be done with each that has its
    namespaces and nothing else yet. `hosts`: by instance, the file that is its /etc/hosts.
    `outside`: for those of the `services` that have ways there. `machines`: by instance, the one
    that it is a part of. `bridges`: of the kernel's, which parts of machines are at."""

    def __init__(
        self,
        nursery: Nursery,
        ports: PortAllocator,
        on_ready: OnReady | None = None,
        hosts: Mapping[str, str] = NO_FILES,
        outside: Outside | None = None,
        services: Sequence[Service] = (),
        machines: Mapping[str, MachineKeeper] = NO_MACHINES,
        bridges: KernelBridges | None = None,
    ) -> None:
        self._nursery = nursery
        self._bridges = bridges
        self._machines = machines
        self._ports = ports
        self._hosts = hosts
        self._outside, self._services = outside, services
        self._on_ready = on_ready
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._pool = ThreadPoolExecutor(1, "addresses")  # netlink waits for the kernel's lock

    async def make(
        self, endpoints: Mapping[int, Node], furniture: bytes | None = None
    ) -> LocalIncarnation:
        """Namespaces, devices, addresses, furniture if it is to have it now; the first end point is
        the instance's own. Raises RunError and leaves nothing behind."""
        node = next(iter(endpoints.values()))
        async with self._limit:
            hosts = self._hosts.get(node.name, "")
            keeper = self._machines.get(node.name, self._nursery)
            incarnation = keeper.spawn(node.name, hostname(node.name), hosts)
            try:
                ports = await self._furnish(incarnation, node, endpoints)
                if self._outside is not None and self._services[node.service].gateway:
                    await self._outside.lead(incarnation)
                await bring(incarnation, furniture)
            except (RunError, OSError) as error:
                await asyncio.wait({incarnation.gone}, timeout=GONE_SECONDS)
                raise self._explained(error, incarnation) from error
            except BaseException:
                incarnation.kill()
                raise
        (_, incarnation.port), *further = ports.items()
        incarnation.further = dict(further)
        return incarnation

    def _explained(self, error: RunError | OSError, incarnation: LocalIncarnation) -> RunError:
        """Whatever fails with an instance that is dead fails because it is dead."""
        reason = str(error.strerror or error) if isinstance(error, OSError) else error.message
        if not incarnation.gone.done():
            incarnation.kill()
        if isinstance(error, MachineError) or not incarnation.gone.done():
            return error if isinstance(error, RunError) else unexpected(error)
        message = f"instance {incarnation.name} died while it was being set up: {reason}"
        return RunError(message, KILLED)

    async def _furnish(
        self, incarnation: LocalIncarnation, node: Node, endpoints: Mapping[int, Node]
    ) -> Mapping[int, int]:
        try:
            netlink = await asyncio.wait_for(incarnation.ready, READY_SECONDS)
        except TimeoutError as error:
            raise RunError(
                f"instance {node.name} was not ready in {READY_SECONDS:.0f} s"
            ) from error
        ports: dict[int, int] = {}
        beyond = cards.beyond(self._services, node.service)
        with netlink:
            if self._on_ready is not None:
                self._on_ready(incarnation, node)
            try:
                for index in endpoints:
                    ports[index] = await self._ports.attach(incarnation, index)
                wanted = [
                    addresses.Addresses(
                        ipv4=one.ipv4,
                        ipv6=one.ipv6,
                        groups=self._ports.groups,
                        interface=one.interface,
                        number=number,
                        frames=_of_frames(index, one),
                        beyond=() if number else beyond,
                    )
                    for number, (index, one) in enumerate(endpoints.items())
                ]
                if self._bridges is not None:
                    wanted += self._bridges.lead(incarnation, next(iter(endpoints)))
                more = [*self._ports.more, *await self._card(incarnation, node, netlink)]
                await process_limits.in_thread(
                    self._pool, addresses.configure, netlink, node.name, wanted, more
                )
                for index, port in ports.items():
                    await self._ports.furnished(incarnation, index, port)
            except BaseException:
                self._give_back(ports.values())
                raise
        return ports

    async def _card(
        self, incarnation: LocalIncarnation, node: Node, netlink: socket.socket
    ) -> Sequence[NetlinkRequest]:
        external = self._services[node.service].external if self._services else None
        if external is None or self._outside is None:
            return ()
        await self._outside.take(external, incarnation)
        return cards.requests(addresses.interface_index(netlink, cards.DEVICE), external)

    def _give_back(self, ports: Iterable[int]) -> None:
        for port in ports:
            self._ports.give_back(port)

    def give_back(self, incarnation: LocalIncarnation) -> None:
        """Its processes are dead: its ports can go."""
        self._give_back((incarnation.port, *incarnation.further.values()))

    def plug(self, incarnation: LocalIncarnation, *, plugged: bool) -> None:
        """Whether it is at the kernel's bridges that its instance is at."""
        if self._bridges is not None:
            self._bridges.plug(incarnation, plugged=plugged)

    def connect(self, incarnation: LocalIncarnation, *, connected: bool) -> None:
        """Whether its instance has the networks that are not emulated."""
        self.plug(incarnation, plugged=connected)
        if self._outside is not None:
            self._outside.connect(incarnation, connected=connected)

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        if self._bridges is not None:
            self._bridges.close()


def _of_frames(index: int, node: Node) -> addresses.FrameAddresses | None:
    if not node.frames:
        return None
    return addresses.FrameAddresses(device_mac(index), node.prefixes, node.gateways)


async def bring(incarnation: LocalIncarnation, furniture: bytes | None) -> None:
    """What the instance has around its program. RunError."""
    if furniture is None:
        return
    try:
        await asyncio.wait_for(incarnation.furnish(furniture), READY_SECONDS)
    except TimeoutError as error:
        raise RunError(f"instance {incarnation.name} did not get its files and mounts") from error
    except RunError as error:
        raise RunError(f"instance {incarnation.name}: {error.message}", error.remedy) from error


Furniture = Callable[[bool], bytes | None]  # of the first life, or of a later one; RunError
OnEnded = Callable[["LocalInstance", ProgramEnd, bool], None]  # True: the run asked for it
OnKilled = Callable[["LocalInstance"], None]


class LocalInstance(Instance):
    """See runtime.backend.instance (Instance)."""

    present: LocalIncarnation | None

    def __init__(
        self,
        endpoints: Mapping[int, Node],
        environment: Mapping[str, str],
        program: Program | None,
        maker: Maker,
        on_ended: OnEnded,
        on_killed: OnKilled,
        on_overdue: OnOverdue,
        ending: ProgramEnding = ProgramEnding(),
        furniture: Furniture = lambda _first: None,
        stack_watch: stacks.StackWatch | None = None,
        disk: Disk | None = None,
        assertions: AssertionFiles | None = None,
        faults: DiskFaults = DiskFaults(),
    ) -> None:
        self._endpoints = endpoints  # by node in the topology, its own first
        super().__init__(next(iter(endpoints.values())))
        self.environment = environment
        self.name = self.node.name
        self.program = program
        self.ending = ending
        self._furniture = furniture
        self._stacks = stack_watch
        self._is_first = True  # the next life to be made
        self.can_lose_power = disk is not None
        self._disk = disk
        self.assertions = assertions or AssertionFiles("")
        self._faults = faults
        self.heard = faults.heard
        self._maker = maker
        self._on_ended = on_ended
        self._on_killed = on_killed
        self._on_overdue = on_overdue
        self._prepared: deque[asyncio.Task[LocalIncarnation]] = deque()
        self._farewells: set[asyncio.Task[None]] = set()
        self._dying: list[LocalIncarnation] = []

    def prepare(self) -> asyncio.Task[LocalIncarnation]:
        """Begins to make the next incarnation. A later one gets its files when the one before has
        let go of them."""
        task = asyncio.get_running_loop().create_task(self._make(first=self._is_first))
        self._is_first = False
        self._prepared.append(task)
        return task

    async def _make(self, *, first: bool) -> LocalIncarnation:
        furniture = self._furniture(True) if first else None
        made = await self._maker.make(self._endpoints, furniture)
        if first:
            made.furnished = asyncio.get_running_loop().create_future()
            made.furnished.set_result(None)
        return made

    @property
    def argv(self) -> tuple[str, ...]:
        return self.program.argv if self.program else ()

    async def next_incarnation(self) -> LocalIncarnation:
        if not self._prepared:
            self.prepare()
        return await self._prepared.popleft()

    def hold(self, incarnation: Incarnation, gate: int) -> None:
        incarnation = own(incarnation)
        if self.program is not None:
            self._begin_disk(incarnation)
            incarnation.gate(gate)
            incarnation.order_start(self._started_now(self.program))

    async def start(self, incarnation: Incarnation) -> Joined:
        incarnation, at_ns = own(incarnation), time.monotonic_ns()
        try:
            await self._furnish(incarnation)
            started = incarnation.started  # of one that waited for its gate
            if started is None:
                self._begin_disk(incarnation)
            if self.program is None:
                return Joined(at_ns)
            await (started or incarnation.order_start(self._started_now(self.program)))
        except RunError as refusal:
            return Joined(at_ns, None, refusal.message)
        self.started = True
        return Joined(at_ns, time.monotonic_ns())

    def _started_now(self, program: Program) -> Program:
        own = self.assertions.of_program()
        return replace(program, env={**program.env, **own}) if own else program

    async def ready_for_command(self, incarnation: LocalIncarnation) -> None:
        """Until a command can be started there as its program can. RunError."""
        await self._furnish(incarnation)
        self._hear_disk(incarnation)
        await self.goes_on(incarnation)

    async def _furnish(self, incarnation: LocalIncarnation) -> None:
        if incarnation.furnished is None:
            furniture = self._furniture(False)
            incarnation.furnished = asyncio.ensure_future(bring(incarnation, furniture))
        if not incarnation.furnished.done():
            await asyncio.shield(incarnation.furnished)  # others may wait for it as well
        incarnation.furnished.result()

    def _begin_disk(self, incarnation: LocalIncarnation) -> None:
        """Before its program is ordered. RunError."""
        self._hear_disk(incarnation)
        try:
            if self._disk is not None:
                self._disk.begin()
        except OSError as error:
            raise unread(error) from error

    def _hear_disk(self, incarnation: LocalIncarnation) -> None:
        """Before anything that is to be heard is ordered."""
        if incarnation.heard:
            return
        incarnation.heard, disk = True, self._disk
        if self.heard:
            incarnation.make_disk_faulty(self.heard, self._faults.root)
        if disk is not None:
            incarnation.hear_syncs(lambda relay: SyncWatch(relay, disk).begin())

    def set_disk(self, incarnation: Incarnation, args: Mapping[str, int | str]) -> None:
        if not self.heard:
            super().set_disk(incarnation, args)
        order = ("fault", "delay_ns", "error_ppb", "disk_seed")
        words = [args[one] for one in order if one in args]
        own(incarnation).set_disk(" ".join(map(str, words)))

    def lose_power(self, seed: int) -> Mapping[str, int]:
        if self._disk is None:
            return super().lose_power(seed)
        lost = self._disk.lose(seed)
        return {"lost_files": lost.files, "lost_names": lost.names}

    async def arrive(self, incarnation: Incarnation, opened_ns: int = 0) -> int:
        """A predecessor that still uses its grace is killed: the timeline has priority."""
        incarnation = own(incarnation)
        for old in list(self._dying):
            old.kill()
            await old.gone
        self.present = incarnation
        self._maker.connect(incarnation, connected=self.state != CUT)
        incarnation.arrive()
        if self._stacks is not None:
            self._stacks.arrived(self.name, incarnation.pid)
        self._arrived()
        incarnation.on_ended = lambda ended: self._program_ended(incarnation, ended)
        incarnation.gone.add_done_callback(lambda _gone: self._gone(incarnation))
        now_ns = time.monotonic_ns()
        return now_ns if incarnation.started is None else opened_ns

    def follows(self, kind: str) -> None:
        super().follows(kind)
        if self.present is not None and self.state in (UP, CUT):
            self._maker.connect(self.present, connected=self.state == UP)

    def _program_ended(self, incarnation: LocalIncarnation, ended: ProgramEnd) -> None:
        if self.present is incarnation:
            self.ended = ended
        self._on_ended(self, ended, self.present is not incarnation or self.dead)

    def _gone(self, incarnation: LocalIncarnation) -> None:
        if self._stacks is not None:
            self._stacks.dead(self.name, incarnation.pid)
        if self.present is incarnation:
            self.killed = True
            self._on_killed(self)

    async def leave(self) -> Left:
        leaving = self._let_go(self.ending.grace_s)
        return Left(time.monotonic_ns(), leaving)

    async def crash(self) -> int:
        self._let_go(0.0)
        return time.monotonic_ns()

    async def _signal(self, kind: str) -> int:
        if self.present is not None:
            self.dead |= kind == "kill"
            self.present.signal(kind)
        return time.monotonic_ns()

    def _let_go(self, grace: float) -> LocalIncarnation | None:
        incarnation, self.present = self.present, None
        if incarnation is None:
            return None
        if self._stacks is not None:
            self._stacks.leaving(self.name, incarnation.pid)
        if grace:
            incarnation.stop(self.ending.signal)
        else:
            incarnation.kill()
        self._maker.plug(incarnation, plugged=False)
        self._dying.append(incarnation)
        task = asyncio.get_running_loop().create_task(self._farewell(incarnation, grace))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)
        return incarnation

    async def _farewell(self, incarnation: LocalIncarnation, grace: float) -> None:
        if grace:
            await asyncio.wait({incarnation.gone}, timeout=grace)
            if not incarnation.gone.done():
                self._on_overdue(self, int(grace * 1e9))
            incarnation.kill()
        await incarnation.gone
        self._maker.give_back(incarnation)
        self._dying.remove(incarnation)

    async def finish(self) -> None:
        """Ends whatever lives, gracefully, and throws away what was prepared."""
        self._let_go(self.ending.grace_s)
        for task in self._prepared:
            task.cancel()
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().kill()
        self._prepared.clear()
        if self._farewells:
            await asyncio.wait(set(self._farewells))
