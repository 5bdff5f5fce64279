"""Proves on every node of a run that its instances' packets are shaped, and measures what lies
under the emulated network.

Some networks of clusters pass by the hook at which packets are shaped; that is found out by trying,
not by name. Three steps:

  before  instances are not attached: an echo passes. Its round trip is that of the cluster itself
  closed  they are attached, and nothing may pass yet: echoes are lost, and their drops counted
  shaped  the network of the first step is in force, and no program has started yet: a round trip
          takes as long as the plan says, or longer

Each node sends to another one, or to another instance of its own where there is no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan
from runtime.agent.process.orders import EchoProbe, ReachOrder, ReachReply
from runtime.backend.base import Notice
from runtime.backend.hosts.hosts import Ask
from runtime.coordinator.placement import Placement
from runtime.errors import RunError
from runtime.json_schema import decoded
from runtime.say import some

ECHOES, INTERVAL_NS, WAIT_NS = 5, 20_000_000, 1_000_000_000
LOST_WAIT_NS = 300_000_000  # the cluster's own round trips are below it
MAX_RTT_NS = 3_000_000_000  # of a path that is probed
ALL_PAIRS = 12  # so many nodes at most measure all of their pairs; more of them a part
SLACK_NS = 100_000  # clocks and timestamps; a path is this much shorter than planned at most
WARNINGS = 5
WANTED_PAIRS = 50  # of instances, looked at for each node for one that has a path
COMPARED = 200  # instances of which all paths are compared with the underlay
DROPS = ("drop_unknown", "drop_route", "drop_down", "drop_write")
BYPASSED = (
    "the cluster's network plugin passes by the traffic control of pods (eBPF, SR-IOV or user-mode"
    " plugins do): use nodes with another one"
)


@dataclass(frozen=True, slots=True)
class ProofProbe:
    """Between two instances, by their nodes in the plan."""

    source: int
    destination: int


class Proof:
    """`names` are those of the hosts; `ask` asks the agent of one. RunError wherever a proof fails;
    the error names the nodes."""

    def __init__(
        self, plan: Plan, placement: Placement, names: Sequence[str], ask: Ask, warn: Notice
    ) -> None:
        # Lists that grow: whoever has them sees what is proven later.
        self.facts: dict[str, list[dict[str, Any]]] = {"underlay": [], "proof": []}
        self._plan = plan
        self._names = names
        self._hosts = placement.hosts
        self._addresses = placement.addresses
        self._ask = ask
        self._warn = warn
        self._on: list[list[int]] = [[] for _ in names]  # instances of each host
        for node, host in enumerate(self._hosts):
            if host >= 0:
                self._on[host].append(node)
        self._underlay: dict[tuple[int, int], int] = {}  # hosts -> least round trip, ns

    # -- the steps ------------------------------------------------------------------------------

    async def before(self) -> None:
        """Measures the underlay. RunError if instances do not reach each other at all."""
        wanted = list(self._neighbours())
        found = await self._send(wanted, WAIT_NS)
        silent = [probe for probe in wanted if not found[probe]]
        if silent:
            raise RunError(
                f"instances do not reach each other before anything is emulated:"
                f" {self._told(silent)}",
                "look at the cluster's network, and at policies that forbid ICMP",
            )
        for probe in wanted:
            key = self._hosts[probe.source], self._hosts[probe.destination]
            self._underlay[key] = min(found[probe])
        names = self._names
        self.facts["underlay"] += [
            {"from": names[a], "to": names[b], "rtt_ns": rtt}
            for (a, b), rtt in sorted(self._underlay.items())
        ]

    async def closed(self, *, counted: bool) -> None:
        """Everything is attached and nothing is bound. RunError if a packet passes, or (`counted`:
        the datapath counts what nobody is bound for) is lost without having been seen."""
        wanted = [next(self._from(host)) for host in range(len(self._names)) if self._pairs(host)]
        before = await self._drops()
        found = await self._send(wanted, LOST_WAIT_NS)
        passed = [probe for probe in wanted if found[probe]]
        if passed:
            raise RunError(
                f"packets of instances pass although their network is closed: {self._told(passed)}",
                BYPASSED,
            )
        after = await self._drops()
        if not counted:
            return
        uncounted = [p for p in wanted if after[self._host(p)] < before[self._host(p)] + ECHOES]
        if uncounted:
            raise RunError(
                "packets of instances are lost, and the datapath has not seen them:"
                f" {self._told(uncounted)}",
                BYPASSED,
            )

    async def shaped(self, at_ns: int) -> None:
        """The network of that time of the plan is in force. RunError if a round trip is shorter
        than planned; a pair that loses all echoes proves nothing, and is told."""
        planned = self._planned(Paths(self._plan.state_at(at_ns)))
        found = await self._send(list(planned), WAIT_NS + max(planned.values(), default=0))
        for probe, rtt_ns in planned.items():
            times = found[probe]
            record = {"from": self._name(probe.source), "to": self._name(probe.destination)}
            measured = {"planned_rtt_ns": rtt_ns, "rtt_ns": min(times, default=None)}
            self.facts["proof"].append({**record, **measured})
        short = [p for p, rtt in planned.items() if found[p] and min(found[p]) < rtt - SLACK_NS]
        if short:
            probe = short[0]
            raise RunError(
                f"packets are not shaped: {self._told(short)}; a round trip took"
                f" {_ms(min(found[probe]))} instead of {_ms(planned[probe])}",
                BYPASSED,
            )
        silent = [probe for probe in planned if not found[probe]]
        if silent:
            self._warn(f"no echo came back over the emulated network: {self._told(silent)}")

    # -- what to send ---------------------------------------------------------------------------

    def _neighbours(self) -> Iterator[ProofProbe]:
        """For each pair of nodes one, or where there are many for some of each node's pairs."""
        count = len(self._names)
        for host in range(count):
            offsets = range(1, count)
            if count > ALL_PAIRS:  # 1, 2, 4 …: every node is in some pair, near and far
                offsets = [1 << k for k in range(count.bit_length()) if 1 << k < count]  # type: ignore[assignment]
            for offset in offsets:
                yield from self._between(host, (host + offset) % count)
            yield from self._between(host, host)

    def _between(self, a: int, b: int) -> Iterator[ProofProbe]:
        for source in self._on[a]:
            for destination in self._on[b]:
                if source != destination and self._address(source, destination):
                    yield ProofProbe(source, destination)
                    return

    def _from(self, host: int) -> Iterator[ProofProbe]:
        """From instances of this host to those of others, then to its own."""
        count = len(self._names)
        for offset in [*range(1, count), 0]:
            for source in self._on[host]:
                for destination in self._on[(host + offset) % count]:
                    if source != destination and self._address(source, destination):
                        yield ProofProbe(source, destination)

    def _pairs(self, host: int) -> bool:
        return next(self._from(host), None) is not None

    def _planned(self, paths: Paths) -> dict[ProofProbe, int]:
        """One pair of each node that has a path both ways, without loss if there is one; and its
        least round trip, less what jitter may take off."""
        found: dict[ProofProbe, int] = {}
        for host in range(len(self._names)):
            best: tuple[int, int, ProofProbe] | None = None  # loss, rtt, of whom
            for probe in islice(self._from(host), WANTED_PAIRS):
                figures = _there_and_back(paths, probe)
                if figures is None:
                    continue
                loss, rtt = figures
                if rtt <= MAX_RTT_NS and (best is None or loss < best[0]):
                    best = loss, rtt, probe
            if best is not None:
                found[best[2]] = best[1]
        return found

    def _address(self, source: int, destination: int) -> str:
        """Of a family that both have, '' if there is none."""
        pairs = zip(self._addresses[source], self._addresses[destination], strict=True)
        return next((theirs for ours, theirs in pairs if ours and theirs), "")

    async def _send(
        self, probes: Sequence[ProofProbe], wait_ns: int
    ) -> dict[ProofProbe, list[int]]:
        """Round trips, ns, of the echoes that came back."""
        by_host: dict[int, list[ProofProbe]] = {}
        for probe in probes:
            by_host.setdefault(self._host(probe), []).append(probe)
        found: dict[ProofProbe, list[int]] = {}

        async def one(host: int, wanted: list[ProofProbe]) -> None:
            rows = [
                EchoProbe(
                    p.source, self._address(p.source, p.destination), ECHOES, INTERVAL_NS, wait_ns
                )
                for p in wanted
            ]
            answer = await self._ask(host, ReachOrder(tuple(rows)))
            answers = decoded(ReachReply, answer, f"what {self._names[host]} has reached").answers
            if len(answers) != len(wanted):
                raise RunError(f"{self._names[host]} answered {len(answers)} of its probes")
            for probe, row in zip(wanted, answers, strict=True):
                found[probe] = list(row[3])

        await asyncio.gather(*(one(host, wanted) for host, wanted in by_host.items()))
        return found

    async def _drops(self) -> list[int]:
        answers = await asyncio.gather(
            *(self._ask(host, "status") for host in range(len(self._names)))
        )
        return [_dropped(answer) for answer in answers]

    # -- what the plan asks of the underlay -----------------------------------------------------

    def compare(self, at_ns: int) -> None:
        """Warns of paths that are planned to be shorter than the cluster's own network is."""
        paths = Paths(self._plan.state_at(at_ns))
        instances = [node for node, host in enumerate(self._hosts) if host >= 0][:COMPARED]
        below: list[tuple[int, int, int, int]] = []
        for a in instances:
            for b in instances:
                key = self._hosts[a], self._hosts[b]
                under = self._underlay.get(key, self._underlay.get(key[::-1]))
                totals = paths.path(a, b).totals if a != b and under is not None else None
                if totals is not None and under is not None and totals.delay_ns < under // 2:
                    below.append((under // 2 - totals.delay_ns, a, b, totals.delay_ns))
        below.sort(key=lambda one: (-one[0], one[1:]))
        for difference, a, b, planned in below[:WARNINGS]:
            self._warn(
                f"{self._name(a)} -> {self._name(b)} is planned to take {_ms(planned)}; the"
                f" cluster's own network takes {_ms(difference)} more"
            )
        if len(below) > WARNINGS:
            self._warn(f"so do {len(below) - WARNINGS} more pairs")

    # -- names ----------------------------------------------------------------------------------

    def _host(self, probe: ProofProbe) -> int:
        return self._hosts[probe.source]

    def _name(self, node: int) -> str:
        return self._plan.topology.nodes[node].name

    def _told(self, probes: Sequence[ProofProbe]) -> str:
        probe = probes[0]
        hosts = sorted({self._names[self._host(one)] for one in probes})
        path = f"{self._name(probe.source)} to {self._name(probe.destination)}"
        return f"{path} (sent on {some(hosts, 8)})"


def _there_and_back(paths: Paths, probe: ProofProbe) -> tuple[int, int] | None:
    """Loss (ppb, of both ways) and the least round trip; None without a path."""
    there = paths.path(probe.source, probe.destination)
    back = paths.path(probe.destination, probe.source)
    if there.totals is None or back.totals is None or there.rtt_ns is None:
        return None
    jitter = there.totals.jitter_ns + back.totals.jitter_ns
    loss = there.totals.loss_ppb + back.totals.loss_ppb
    return loss, max(there.rtt_ns - 4 * jitter, 0)


def _dropped(status: Any) -> int:
    datapath = status.get("datapath") if isinstance(status, Mapping) else None
    found = datapath if isinstance(datapath, Mapping) else {}
    return sum(int(str(found[name])) for name in DROPS if str(found.get(name, "")).isdecimal())


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3f} ms"
