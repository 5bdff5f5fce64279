"""Computes the steps to come before they are due, in small slices between everything else.

What is computed waits here until it is taken. The work stops a while ahead of the run (or with
enough in store) and goes on with full force when somebody already waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler.plan.paths.path import Paths
from compiler.plan.state import NetworkState
from runtime.agent.clock import Clock
from runtime.agent.metadata.interest import Interest
from runtime.agent.path.path_updates import StagedPaths
from runtime.agent.vocabulary import PathView

# One epoch as sharing sees it: paths on demand, kept as long as the epoch lasts.


class PlanView:
    """A View (runtime.agent.vocabulary) of one state of the network. May raise PlanError."""

    def __init__(self, state: NetworkState) -> None:
        self.epoch = state.epoch
        self._state = state
        self._paths = Paths(state)
        self._known: dict[tuple[int, int], PathView | None] = {}

    def path(self, src: int, dst: int) -> PathView | None:
        """None: unreachable."""
        key = (src, dst)
        if key not in self._known:
            self._known[key] = self._find(src, dst)
        return self._known[key]

    def _find(self, src: int, dst: int) -> PathView | None:
        found = self._paths.path(src, dst)
        if found.totals is None:
            return None
        # Without a way back nobody has measured a round trip; both halves are taken to be alike.
        rtt = 2 * found.totals.delay_ns if found.rtt_ns is None else found.rtt_ns
        return PathView(found.links, found.totals.rate_bps, rtt, found.totals.delay_ns)

    def capacity(self, link: int) -> int:
        """b/s, 0 = unlimited."""
        return self._state.links[link].rate_bps

    def queue(self, link: int) -> int:
        """Bytes."""
        return self._state.links[link].queue_bytes


AHEAD_NS = 10_000_000_000
STORED_BYTES = 256 << 20
LINE_BYTES = 250  # of memory, about
REST_SECONDS = 0.003  # between two slices of a millisecond, when there is time
CHECK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step with all that an agent needs for it."""

    stage: StagedPaths
    view: PlanView
    interest: Interest


class Scenes:
    """Makes scenes of stages; hosts that did not change are not found again."""

    def __init__(self, placement: tuple[int, ...], hosts: int) -> None:
        self._placement = placement
        self._hosts = hosts
        self._last: tuple[NetworkState, Interest] | None = None

    def make(self, stage: StagedPaths) -> PreparedStep:
        state = stage.state
        last = self._last
        if last is not None and last[0].links is state.links:
            interest = last[1]
        else:
            before = None if last is None else last[1]
            interest = Interest(state, self._placement, self._hosts, before)
        self._last = (state, interest)
        return PreparedStep(stage, PlanView(state), interest)


class Prefetcher:
    """`elapsed_ns` tells where the run is (0 before its start), `due_ns` when a step is due."""

    def __init__(
        self,
        later: Iterator[StagedPaths | None],
        scenes: Scenes,
        clock: Clock,
        elapsed_ns: Callable[[], int],
        due_ns: Callable[[int], int],
    ) -> None:
        self._later = later
        self._scenes = scenes
        self._clock = clock
        self._elapsed_ns = elapsed_ns
        self._due_ns = due_ns
        self._ready: dict[int, PreparedStep] = {}
        self._bytes = 0
        self._urgent = 0  # how many wait
        self._news = asyncio.Condition()
        self.slice_max_ns = 0

    async def run(self) -> None:
        """Until all steps are computed. Raises PlanError."""
        while True:
            before = self._clock.cpu_ns()
            stage = next(self._later, _END)
            if stage is _END:
                return
            if isinstance(stage, StagedPaths):
                await self._store(self._scenes.make(stage))
            self.slice_max_ns = max(self.slice_max_ns, self._clock.cpu_ns() - before)
            await self._rest()
            while isinstance(stage, StagedPaths) and not self._urgent and self._enough(stage.step):
                await self._pause()

    async def _store(self, scene: PreparedStep) -> None:
        self._ready[scene.stage.step] = scene
        self._bytes += _size(scene)
        async with self._news:
            self._news.notify_all()

    async def _rest(self) -> None:
        await asyncio.sleep(0 if self._urgent else REST_SECONDS)

    def _enough(self, step: int) -> bool:
        if step not in self._ready:
            return False  # taken already: the next one is wanted
        return self._bytes > STORED_BYTES or self._due_ns(step) > self._elapsed_ns() + AHEAD_NS

    async def _pause(self) -> None:
        """Until somebody takes something or waits for something, or time has passed."""
        async with self._news:
            try:
                await asyncio.wait_for(self._news.wait(), CHECK_SECONDS)
            except TimeoutError:
                return

    async def take(self, step: int) -> PreparedStep:
        """Waits for a step and hands it over."""
        self._urgent += 1
        try:
            async with self._news:
                self._news.notify_all()
                await self._news.wait_for(lambda: step in self._ready)
                scene = self._ready.pop(step)
                self._bytes -= _size(scene)
                self._news.notify_all()
        finally:
            self._urgent -= 1
        return scene


def _size(scene: PreparedStep) -> int:
    """Memory that it takes, as far as it can be large; shared tables are counted too."""
    state, parts = scene.stage.state, scene.stage.parts
    lines = sum(map(len, parts))
    return LINE_BYTES * lines + state.table.itemsize * len(state.table) + 8 * len(state.links)


_END = object()
