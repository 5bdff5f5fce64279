"""The sharing loop: read usage, hear others, solve, enforce, tell others; every 25 ms.

While nothing moves it takes the time that sharing allows; a datagram brings it back. A step of the
run is met by a tick LEAD_NS before it: that tick solves for the network to come, and its limits are
committed for the very time of the step.

The clock, the datapath, sharing and metadata are given, so that all of this runs in tests with
other ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from runtime.agent.clock import Clock
from runtime.agent.metadata.interest import Interest
from runtime.agent.path.enforcer import Enforcer
from runtime.agent.path.prefetcher import PreparedStep
from runtime.agent.vocabulary import Change, LocalFlow, Moved, RemoteFlow, Usage, View

LEAD_NS = 4_000_000  # from the tick that prepares a step to the step
GAP_NS = 2_000_000  # at least, from the end of one tick to the next
SAMPLE_NS = 100_000_000
STOP_SECONDS = 1.0  # a datapath that takes longer for a tick has other troubles

COUNTERS = (
    *("ticks", "idle_ticks", "overruns", "late_max_ns", "late_sum_ns", "busy_ns", "busy_max_ns"),
    *("changes", "switches", "switches_late", "samples"),
)


class Result(Protocol):
    """What a tick of sharing comes to (runtime.agent.share.sharing.Tick)."""

    @property
    def changes(self) -> Sequence[Change]: ...

    @property
    def flows(self) -> Sequence[LocalFlow]: ...

    @property
    def next_ns(self) -> int: ...


class SharingPart(Protocol):
    """As runtime.agent.share.sharing.Sharing."""

    def epoch(self, view: View, now_ns: int) -> None: ...

    def tick(self, now_ns: int, usage: Sequence[Usage], remote: Sequence[RemoteFlow]) -> Result: ...

    def declared(self, pairs: Iterable[tuple[int, int]]) -> None: ...

    def passed_over(self, pairs: Iterable[tuple[int, int]]) -> None: ...

    def restore(self, now_ns: int, usage: Sequence[Usage]) -> None: ...

    def counters(self) -> dict[str, int]: ...


class MetadataPart(Protocol):
    """As runtime.agent.metadata.metadata.Metadata."""

    def epoch(self, number: int, interest: Interest, now_ns: int) -> None: ...

    def announce(self, starts: Sequence[int]) -> None: ...

    def outgoing(self, now_ns: int, flows: Sequence[LocalFlow]) -> Sequence[tuple[int, bytes]]: ...

    def incoming(self, now_ns: int, datagram: bytes) -> None: ...

    def remote(self, now_ns: int) -> Sequence[RemoteFlow]: ...

    def counters(self) -> dict[str, int]: ...


class DatapathPart(Protocol):
    """As runtime.agent.path.datapath.Datapath."""

    async def usage(self, *, everything: bool = False) -> list[Usage]: ...

    async def moved(self) -> Moved: ...


class MailboxPart(Protocol):
    """As runtime.agent.metadata.udp.Mailbox."""

    def drain(self, take: Callable[[int, bytes], None]) -> None: ...

    def send(self, host: int, datagram: bytes) -> None: ...

    def watch(self, on_arrival: Callable[[], None]) -> None: ...

    def look_away(self) -> None: ...


OnSample = Callable[[int, Moved], None]  # when, and what


class ShareLoop:
    """Meets the steps that `expect` announces. `running`: between its first tick and its last."""

    def __init__(
        self,
        clock: Clock,
        datapath: DatapathPart,
        enforcer: Enforcer,
        sharing: SharingPart,
        metadata: MetadataPart,
        mailbox: MailboxPart,
        on_sample: OnSample,
        period_ns: int,
        apart_ns: int = 0,
    ) -> None:
        self._clock = clock
        self._datapath = datapath
        self._enforcer = enforcer
        self._sharing = sharing
        self._metadata = metadata
        self._mailbox = mailbox
        self._on_sample = on_sample
        self._period_ns = period_ns
        self._apart_ns = apart_ns  # later than the first agent of this machine
        self._lead_ns = LEAD_NS + apart_ns
        self._scenes: dict[int, PreparedStep] = {}
        self._sampled_ns = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._judged = 0  # switches of which it is counted whether they were late
        self.running = False
        self._ended = asyncio.Event()
        self._counts = dict.fromkeys(COUNTERS, 0)

    def begin(self, scene: PreparedStep) -> None:
        """The network to begin with."""
        self._meet(scene, self._clock.now_ns())

    def expect(self, scene: PreparedStep) -> None:
        """A later step is staged: it is met at its time."""
        self._scenes[scene.stage.step] = scene
        self._wake.set()

    def _meet(self, scene: PreparedStep, now: int) -> None:
        self._sharing.epoch(scene.view, now)
        self._metadata.epoch(scene.view.epoch, scene.interest, now)

    def greet(self) -> None:
        """Lets other agents hear of this one before there is anything to tell, and hears them."""
        self._mailbox.drain(self._metadata.incoming)
        for host, datagram in self._metadata.outgoing(self._clock.now_ns(), ()):
            self._mailbox.send(host, datagram)

    async def run(self, first_ns: int) -> None:
        """Ticks from then on, until stopped. EngineError when the datapath is gone."""
        due = first_ns + self._apart_ns
        await self._clock.sleep_until(due)
        self.running = True
        try:
            while not self._stopping:
                due = await self._once(due)
        finally:
            self.running = False
            self._ended.set()

    async def stop(self) -> None:
        """Lets the tick that is going on come to its end: cut short, it would lose counters that
        do not move again."""
        self._stopping = True
        if self.running:
            await asyncio.wait_for(self._ended.wait(), STOP_SECONDS)

    async def _once(self, due: int) -> int:
        """A tick and the rest after it; returns when the next one was due."""
        started = self._clock.now_ns()
        late = max(started - due, 0)
        self._counts["late_sum_ns"] += late
        self._counts["late_max_ns"] = max(self._counts["late_max_ns"], late)
        wanted = await self.tick()
        return due if self._stopping else await self._rest(due, started, wanted)

    async def _rest(self, due: int, started: int, wanted: int) -> int:
        """Waits for the next tick, at best at `wanted`; returns when it was due.

        Ticks follow each other at the period from when they were due, as long as they are not a
        whole one late: so being late now and then does not make the loop slower.
        """
        ended = self._clock.now_ns()
        soonest = max(due + self._period_ns, started + self._period_ns // 2, ended + GAP_NS)
        idle = wanted > soonest + self._period_ns // 2
        self._account(ended - started, idle)
        while True:
            due = self._adjusted(wanted if idle else soonest, ended)
            if not idle:
                await self._clock.sleep_until(due)
                return due
            self._wake.clear()
            self._mailbox.watch(self._wake.set)
            woken = await self._clock.sleep_until_or(due, self._wake)
            self._mailbox.look_away()
            if not woken:
                return due
            idle, soonest = False, max(soonest, self._clock.now_ns())

    def _adjusted(self, due: int, ended: int) -> int:
        """The next tick is the one that meets a step, if that comes sooner or only a little later:
        so no tick is so short that its rates mean nothing."""
        if not self._scenes:
            return due
        meeting = max(self._enforcer.due_ns(min(self._scenes)) - self._lead_ns, ended + GAP_NS)
        return meeting if meeting < due + self._period_ns // 2 else due

    def _account(self, busy: int, idle: bool) -> None:
        counts = self._counts
        counts["ticks"] += 1
        counts["idle_ticks"] += idle
        counts["busy_ns"] += busy
        counts["busy_max_ns"] = max(counts["busy_max_ns"], busy)
        counts["overruns"] += busy > self._period_ns

    async def tick(self) -> int:
        """One round. Returns when the next one is wanted."""
        result = await self.look()
        self._counts["changes"] += len(result.changes)
        switches = self._counts["switches"]
        await self._enforcer.enforce(result.changes)
        if switches > self._judged:
            self._judged = switches
            due = self._enforcer.due_ns(self._enforcer.present)
            self._counts["switches_late"] += self._clock.now_ns() > due
        return result.next_ns

    async def look(self) -> Result:
        """A round that enforces nothing: what is there, what is to be done, and others told."""
        asked = self._clock.now_ns()
        self._mailbox.drain(self._metadata.incoming)
        usage = await self._usage(asked)
        # The counters are of some moment between question and answer.
        now = (asked + self._clock.now_ns()) // 2
        self._take_step(now)
        again = self._enforcer.told_again()
        if again:
            self._sharing.declared(again)
        result = self._sharing.tick(now, usage, self._metadata.remote(now))
        for host, datagram in self._metadata.outgoing(now, result.flows):
            self._mailbox.send(host, datagram)
        return result

    async def _usage(self, now: int) -> list[Usage]:
        """With a sample when its time has come."""
        if now - self._sampled_ns < SAMPLE_NS - self._period_ns // 2:
            return await self._datapath.usage()
        self._sampled_ns = now
        moved = await self._datapath.moved()
        if moved.pairs or moved.digests:
            self._counts["samples"] += 1
            self._on_sample(now, moved)
        return moved.usage

    def _take_step(self, now: int) -> None:
        """Meets the last step whose time is near or past; those before it are passed over, but
        for the paths that they told something of."""
        near = [step for step in self._scenes if self._enforcer.due_ns(step) - self._lead_ns <= now]
        if not near:
            return
        scenes = {step: self._scenes.pop(step) for step in near}
        step = max(near)
        self._counts["switches"] += 1
        self._enforcer.move_on(step)
        self._meet(scenes.pop(step), now)
        parts = [part for scene in scenes.values() for part in scene.stage.parts]
        if parts:
            self._sharing.passed_over({(line.src, line.dst) for part in parts for line in part})

    def counters(self) -> dict[str, int]:
        return {**self._counts, "cpu_ns": self._clock.cpu_ns()}
