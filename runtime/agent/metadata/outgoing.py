"""What has been told to whom, and what has to be told next.

Input: this agent's flows at every tick, the interest of other hosts, the time. Output: for each
host the flows it is to be told now, as pieces of messages. Rules in docs/metadata.md (when a flow
is told): at once when it begins, ends, becomes or ceases to be greedy or moves by more than JUMP;
at the next slot when it moves by less; again after each of these in the next REPEATS ticks, against
loss; and every REFRESH_NS anyway. How long a greedy flow waits is told at slots, and once. No I/O;
time is an argument.

Hosts are bits of an integer throughout, so that a flow costs the same for 2 hosts and for 64.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.agent.metadata.codec import ENDED, code_of, flow_bodies, value_of, wait_value
from runtime.agent.metadata.interest import Interest
from runtime.agent.vocabulary import LocalFlow

SLOT_NS = 100_000_000  # small changes and refreshes wait for one of these
SLOTS = 5  # a refresh takes as many
REFRESH_NS = SLOTS * SLOT_NS
REPEATS = 2
JUMP = 8  # codes: 3 to 6 % of a rate
STEP = 1  # codes: a difference that is never worth a message
WAIT_STEP = 4  # the same of waits: 0.4 ms, from 25.6 ms on 1.6 to 3 %
BURIALS = 2  # refreshes that still tell of a flow that has ended
FLOWS_A_SLOT = 64  # as long as there are no more, one slot refreshes all of them

Batches = dict[int, list[tuple[int, int]]]  # hosts -> (path, value)


class _Flow:
    """One flow of ours. `told`: value -> the hosts that were last told it; disjoint. As long as
    that is one value for all, it is `value`, and they are `hosts`; else `hosts` is -1."""

    __slots__ = (
        "again",
        "again_to",
        "buried",
        "hosts",
        "interested",
        "serial",
        "told",
        "value",
    )

    def __init__(self, serial: int, interested: int) -> None:
        self.serial = serial
        self.interested = interested
        self.told: dict[int, int] = {}
        self.value = ENDED
        self.hosts = 0
        self.again = 0
        self.again_to = 0
        self.buried = 0

    def note(self, value: int, hosts: int) -> None:
        """These hosts are told this value now."""
        told = self.told
        for old in list(told):
            left = told[old] & ~hosts
            if left:
                told[old] = left
            else:
                del told[old]
        told[value] = told.get(value, 0) | hosts
        self.sum_up()

    def sum_up(self) -> None:
        """Sets `value` and `hosts` after `told` has changed."""
        self.value, self.hosts = ENDED, -1 if self.told else 0
        if len(self.told) == 1:
            [(self.value, self.hosts)] = self.told.items()

    def knows(self, value: int, tolerance: int) -> int:
        """The hosts that were told this value, or one that is as good."""
        found = 0
        for told, hosts in self.told.items():
            if told == value or _alike(told, value, tolerance):
                found |= hosts
        return found

    def greedy_to(self) -> int:
        """The hosts that were told that it is greedy."""
        return sum(hosts for value, hosts in self.told.items() if value & 1)


def _alike(told: int, value: int, tolerance: int) -> bool:
    if told == ENDED or value == ENDED or (told ^ value) & 1:
        return False
    if value & 1:
        return tolerance == JUMP or abs((told >> 1) - (value >> 1)) <= WAIT_STEP
    return abs((told >> 1) - (value >> 1)) <= tolerance


def _value(flow: LocalFlow) -> int:
    """What is told to those that know its bottleneck."""
    return wait_value(flow.wait_ns) if flow.greedy else value_of(flow.used_bps, greedy=False)


class AnnouncementState:
    """One agent's side of the telling."""

    def __init__(self) -> None:
        self._flows: dict[int, _Flow] = {}
        self._serial = 0
        self._interest: Interest | None = None
        self._slot = 0
        self._next_slot_ns = 0
        self._tolerance = JUMP
        self._refreshing = 0  # bits: which shares of the flows are refreshed in this tick
        self._shares = 1
        self._batches: Batches = {}
        self._knowing = {-1: -1}  # link -> the hosts that share it; -1: no link, all hosts

    def epoch(self, interest: Interest) -> None:
        """From now on these are the interests."""
        self._interest = interest
        self._knowing = {-1: -1}
        masks = interest.of_flows(list(self._flows))
        for flow, mask in zip(self._flows.values(), masks, strict=True):
            flow.interested = mask

    def forget(self, host: int) -> None:
        """That host has started again and knows nothing."""
        others = ~(1 << host)
        for flow in self._flows.values():
            flow.told = {value: m & others for value, m in flow.told.items() if m & others}
            flow.sum_up()
            flow.again_to &= others

    def tick(self, now_ns: int, flows: Sequence[LocalFlow], live: int) -> Batches:
        """What to tell now; `live` are the hosts that can be told anything."""
        assert self._interest is not None
        self._open_slot(now_ns)
        self._batches = {}
        count, known = self._interest.instances, self._flows
        seen = set()
        for flow in flows:
            path = flow.src * count + flow.dst
            seen.add(path)
            found = known.get(path)
            if found is None:
                found = self._new(path, flow)
            knowing = self._knowing.get(flow.bottleneck)
            if knowing is None:
                knowing = self._interest.of_link(flow.bottleneck)
                self._knowing[flow.bottleneck] = knowing
            hosts = found.interested & live
            if not self._quick(path, found, flow, hosts, hosts & ~knowing):
                self._tell(path, found, self._wanted(flow, hosts, hosts & ~knowing))
        for path in known.keys() - seen:
            found = known[path]
            self._tell(path, found, ())
            if not found.told:
                del known[path]
        return self._batches

    def _open_slot(self, now_ns: int) -> None:
        self._tolerance, self._refreshing = JUMP, 0
        if now_ns < self._next_slot_ns:
            return
        passed = min(SLOTS, 1 + (now_ns - self._next_slot_ns) // SLOT_NS)
        self._next_slot_ns = max(self._next_slot_ns + passed * SLOT_NS, now_ns + SLOT_NS // 2)
        self._tolerance = STEP
        for _ in range(passed):
            self._slot = (self._slot + 1) % SLOTS
            if self._slot == 0:
                self._shares = min(SLOTS, 1 + len(self._flows) // FLOWS_A_SLOT)
            self._refreshing |= 1 << self._slot

    def _new(self, path: int, flow: LocalFlow) -> _Flow:
        assert self._interest is not None
        self._serial += 1
        found = _Flow(self._serial, self._interest.of_flow(flow.src, flow.dst))
        self._flows[path] = found
        return found

    def _quick(self, path: int, found: _Flow, flow: LocalFlow, hosts: int, blind: int) -> bool:
        """Does what there is to do in the usual case: all hosts were told the same, and are to be
        told the same again, or nothing. False, and nothing done, in any other case."""
        if hosts != found.hosts or blind or self._refreshing >> found.serial % self._shares & 1:
            return False
        if not hosts:
            return True
        told, value = found.value, _value(flow)
        if value != told and not _alike(told, value, self._tolerance):
            only_waits = told & value & 1
            if value == ENDED or (only_waits and found.again):
                return False
            found.value, found.told = value, {value: hosts}
            if not only_waits:
                found.again, found.again_to = REPEATS, hosts
            self._batches.setdefault(hosts, []).append((path, value))
            return True
        return not found.again

    def _wanted(self, flow: LocalFlow, hosts: int, blind: int) -> tuple[tuple[int, int], ...]:
        """(value, hosts): what each host should know. Those that cannot know the flow's bottleneck
        are told its allocation as all it wants: they could not find out that it cannot have more.
        """
        pairs = [(_value(flow), hosts & ~blind)]
        if blind:
            pairs.append((code_of(flow.allocation_bps) << 1, blind))
        return tuple([(value, mask) for value, mask in pairs if mask and value != ENDED])

    def _tell(self, path: int, flow: _Flow, wanted: tuple[tuple[int, int], ...]) -> None:
        """Adds to the batches what is to be said about one flow in this tick."""
        refresh = self._refreshing >> flow.serial % self._shares & 1
        changed, everybody, moved = 0, 0, 0
        for value, hosts in wanted:
            everybody |= hosts
            fresh = hosts & ~flow.knows(value, self._tolerance)
            moved |= fresh
            changed |= fresh & ~flow.greedy_to() if value & 1 else fresh
            self._say(path, flow, value, hosts if refresh else fresh)
        gone = _union(flow.told) & ~everybody & ~flow.told.get(ENDED, 0)
        if gone:
            self._say(path, flow, ENDED, gone)
            changed |= gone
            flow.buried = 0
        said = everybody | changed if refresh else changed | moved
        if flow.again:
            said |= self._repeat(path, flow, said)
        if changed:
            flow.again, flow.again_to = REPEATS, flow.again_to | changed
        if refresh and ENDED in flow.told:
            self._bury(path, flow, said)

    def _say(self, path: int, flow: _Flow, value: int, hosts: int) -> None:
        if hosts:
            flow.note(value, hosts)
            self._batches.setdefault(hosts, []).append((path, value))

    def _repeat(self, path: int, flow: _Flow, said: int) -> int:
        """Says again what was said in one of the last ticks; returns to whom."""
        again_to = flow.again_to & ~said
        for value, hosts in flow.told.items():
            if hosts & again_to:
                self._batches.setdefault(hosts & again_to, []).append((path, value))
        flow.again -= 1
        if not flow.again:
            flow.again_to = 0
        return again_to

    def _bury(self, path: int, flow: _Flow, said: int) -> None:
        """Tells of an end once more, and in the end no more."""
        if flow.buried == BURIALS:
            del flow.told[ENDED]
            flow.sum_up()
            return
        flow.buried += 1
        hosts = flow.told[ENDED] & ~said
        if hosts:
            self._batches.setdefault(hosts, []).append((path, ENDED))


def _union(told: dict[int, int]) -> int:
    found = 0
    for hosts in told.values():
        found |= hosts
    return found


class Pieces:
    """Cuts the batches of one tick into pieces of messages; equal ones are made once."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._made: dict[tuple[int, ...], list[tuple[int, bytes]]] = {}

    def of(self, host: int) -> list[tuple[int, bytes]]:
        """(count, bytes) of each message to this host; none if there is nothing to say."""
        keys = tuple([hosts for hosts in self._batches if hosts >> host & 1])
        found = self._made.get(keys)
        if found is None:
            flows = sorted(flow for hosts in keys for flow in self._batches[hosts])
            found = self._made[keys] = flow_bodies(flows)
        return found
