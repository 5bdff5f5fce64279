"""What the datapath is told, and when: steps ahead of time, limits of sharing at once, attachments.

Everything of a step is committed for the step's own time, in parts of a few hundred lines; the
datapath carries out what is due at one time in the order of the commits. That is how steps and
sharing keep out of each other's way: a step sets those rates and queues that its epoch changes (as
sharing knows), and the last thing committed for that same time are the limits that sharing has
found for the epoch to come.

Steps are positions in the run's list of steps. Times are the agent's, in ns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from compiler.plan.state import NetworkState
from runtime.agent.clock import Clock
from runtime.agent.path import lines
from runtime.agent.path.datapath import Datapath
from runtime.agent.path.path_updates import PART_LINES, PathLine, PathUpdates, StagedPaths
from runtime.agent.vocabulary import Change, PathDelay
from runtime.datapath import dialect
from runtime.datapath.pktd import NOW

KEPT_STEPS = 2  # states of steps that are over are kept for a hold that comes late

Pair = tuple[int, int]
OnApplied = Callable[[int, int, bool], None]  # step, when, whether it was told too late
Notice = Callable[[str], None]


class Enforcer:
    """Follows a run. `present` is the step that sharing is at, `staged` the last one told."""

    def __init__(
        self,
        datapath: Datapath,
        clock: Clock,
        needs: PathUpdates,
        addresses: Sequence[tuple[str, str]],
        on_applied: OnApplied,
        notice: Notice,
    ) -> None:
        self.t0_ns = 0
        self.present = self.staged = 0
        self.holds = PathHolds()
        self._datapath = datapath
        self._clock = clock
        self._needs = needs
        self._addresses = list(addresses)  # of each instance, IPv4 and IPv6
        self._steps = needs.steps
        self._on_applied = on_applied
        self._notice = notice
        self._states: dict[int, NetworkState] = {}
        self._told: dict[int, set[Pair]] = {}  # step -> paths of which all was told once more

    def due_ns(self, step: int) -> int:
        return self.t0_ns + self._steps[step].due_ns

    def follow(self, needs: PathUpdates) -> None:
        """Later steps are those of a longer plan; what is staged is in both."""
        self._needs, self._steps = needs, needs.steps

    # -- the start ---------------------------------------------------------------------------------

    async def declare(self) -> int:
        """Stages every path that there is. Returns their number.

        Nodes are declared at once: so nothing passes between them before the start, while what is
        sent to an address that nobody has passes unshaped.
        """
        await self.declare_nodes()
        count = 0
        for part in self._needs.begin():
            await self._datapath.stage([line.text for line in part])
            count += len(part)
            await asyncio.sleep(0)  # others are served in between
        self._states[0] = self._needs.state
        return count

    async def declare_nodes(self) -> None:
        """Takes effect at once."""
        told = [dialect.node_line(node, *pair) for node, pair in enumerate(self._addresses)]
        for begin in range(0, len(told), PART_LINES):
            await self._datapath.commit(told[begin : begin + PART_LINES])

    async def attach_early(self, bound: Mapping[int, int]) -> None:
        """Stages bindings of the first step, before the start."""
        await self._datapath.stage(dialect.attach_lines(bound))

    async def open(self) -> None:
        """Commits what is staged, at once: the first step is in force before it begins."""
        await self._datapath.commit([])

    async def start(self, t0_ns: int) -> None:
        """Commits what is staged for T0."""
        self.t0_ns = t0_ns
        await self._datapath.commit([], t0_ns, lambda at: self._on_applied(0, at, False))

    # -- a start in the middle, after a crash ------------------------------------------------------

    async def take_over(self, t0_ns: int, step: int) -> None:
        """Says everything about the network as it is at `step`; nothing is known of what the
        datapath was told before. Nodes are declared already."""
        self.t0_ns, self.present, self.staged = t0_ns, step, step
        held = self.holds.held(step)
        for part in self._needs.begin(everything=True):
            told = [line.text for line in part if not _of(line, held)]
            await self._datapath.commit(told)
            await asyncio.sleep(0)
        self._states[step] = self._needs.state

    # -- steps -------------------------------------------------------------------------------------

    async def stage(self, stage: StagedPaths) -> None:
        """Tells the datapath a later step; they come in order."""
        step, at_ns = stage.step, self.due_ns(stage.step)
        late = self._clock.now_ns() > at_ns
        held = self.holds.held(step)
        for part in stage.parts:
            told = [line.text for line in part if not _of(line, held)]
            await self._datapath.commit(told, at_ns)
        self._states[step] = stage.state
        self.staged = step
        back = self.holds.coming_back(step)
        if back:
            await self._say_all(step, stage.state, back)
        await self._datapath.commit([], at_ns, lambda at: self._on_applied(step, at, late))

    async def _say_all(self, step: int, state: NetworkState, nodes: Sequence[int]) -> None:
        """What `state` has about the paths of some nodes, for the time of a step."""
        at_ns = self._time_for(step)
        told = self._told.setdefault(max(step, self.present), set())
        for part in self._needs.about(state, nodes):
            await self._datapath.commit([line.text for line in part], at_ns)
            told.update((line.src, line.dst) for line in part)

    def _time_for(self, step: int) -> int:
        """When its lines are to take effect: with it, or now if it is there."""
        due = self.due_ns(step)
        return due if due > self._clock.now_ns() else NOW

    # -- sharing -----------------------------------------------------------------------------------

    def move_on(self, step: int) -> None:
        """Sharing is at this step now; it comes soon, or has come."""
        self.present = step
        self.holds.forget(step)
        for old in [known for known in self._states if known < step - KEPT_STEPS]:
            del self._states[old]

    def told_again(self) -> set[Pair]:
        """Paths that have their collapsed rate and queue, whatever sharing has set: all was told
        of them once more, up to the present step. Each is named once."""
        found: set[Pair] = set()
        for step in [step for step in self._told if step <= self.present]:
            found |= self._told.pop(step)
        return found

    async def enforce(self, changes: Sequence[Change]) -> None:
        """Limits of the present step: at once, or at its time if that is still to come."""
        at_ns = self._time_for(self.present)
        told = [_changed(change) for change in changes]
        for begin in range(0, len(told), PART_LINES):
            await self._datapath.commit(told[begin : begin + PART_LINES], at_ns)

    # -- attachments -------------------------------------------------------------------------------

    async def bind(
        self,
        step: int,
        bound: Mapping[int, int],
        gone: Sequence[int],
        hold: Sequence[int],
        joined: Iterable[int],
    ) -> None:
        """Attaches nodes to ports with a step, and holds what is to be held from it on.

        `joined` are the nodes of all hosts that come back with it.
        """
        back = self.holds.come_back(joined, step)
        self.holds.hold(hold, step)
        await self._datapath.commit(dialect.attach_lines(bound, gone), self.due_ns(step))
        if step > self.staged:
            return  # its lines will be told with that in mind
        for told_step in sorted(known for known in self._states if back and known >= step):
            await self._say_all(told_step, self._states[told_step], back)
        if hold and step:
            await self._hold_late(step, hold)

    async def _hold_late(self, step: int, nodes: Sequence[int]) -> None:
        """The step is told already: takes back what it does to these nodes."""
        before = self._states.get(step - 1)
        if before is None:
            self._notice(f"nodes {list(nodes)} were to be held from step {step} on, long ago")
            return
        await self._say_all(step, before, sorted(nodes))

    async def move(self, addresses: Mapping[int, tuple[str, str]]) -> None:
        """From now on these nodes have other addresses: their paths stay."""
        for node, pair in addresses.items():
            self._addresses[node] = pair
        told = [dialect.node_line(node, *pair) for node, pair in sorted(addresses.items())]
        await self._datapath.commit(told)

    async def cut(self, nodes: Sequence[int]) -> None:
        """Ends the holds of these nodes: their paths are what the steps say, now and then."""
        held = self.holds.cut(nodes)
        if not held:
            return
        now = self._clock.now_ns()
        first = max((s for s in self._states if self.due_ns(s) <= now), default=self.present)
        steps = [(step, self._states[step]) for step in range(first, self.staged + 1)]
        for step, state in steps:
            await self._say_all(step, state, held)


def _changed(change: Change) -> str:
    if isinstance(change, PathDelay):
        return lines.delay_line(change.src, change.dst, change.delay_ns)
    return lines.rate_line(change.src, change.dst, change.rate_bps, change.queue_bytes)


def _of(line: PathLine, nodes: frozenset[int]) -> bool:
    return line.src in nodes or line.dst in nodes


# Which nodes keep their network for a while, although an epoch has taken it: somebody who leaves
# says goodbye first.
#
# A hold lasts from the step at which the node leaves until it is cut, or until the step at which it
# comes back. The paths from and to such a node keep what they had before.

NEVER = 1 << 62  # a step that does not come


class PathHolds:
    """Steps are positions in the run's list of steps."""

    def __init__(self) -> None:
        self._spans: dict[int, tuple[int, int]] = {}  # node -> (first step, first one after)

    def hold(self, nodes: Iterable[int], step: int) -> None:
        for node in nodes:
            self._spans[node] = (step, NEVER)

    def come_back(self, nodes: Iterable[int], step: int) -> list[int]:
        """Those of the nodes whose hold ends with that step, in order."""
        found = sorted(node for node in set(nodes) if node in self._spans)
        for node in found:
            self._spans[node] = (self._spans[node][0], step)
        return found

    def coming_back(self, step: int) -> list[int]:
        """Nodes whose hold ends with this step, in order."""
        return sorted(node for node, (_, after) in self._spans.items() if after == step)

    def cut(self, nodes: Iterable[int]) -> list[int]:
        """Ends holds at once. Those of the nodes that were held, in order."""
        found = sorted(node for node in set(nodes) if node in self._spans)
        for node in found:
            del self._spans[node]
        return found

    def held(self, step: int) -> frozenset[int]:
        """The nodes whose paths this step must leave alone."""
        return frozenset(
            node for node, (first, after) in self._spans.items() if first <= step < after
        )

    def forget(self, step: int) -> None:
        """That step is there: holds that ended with it or before are history."""
        for node in [node for node, (_, after) in self._spans.items() if after <= step]:
            del self._spans[node]
