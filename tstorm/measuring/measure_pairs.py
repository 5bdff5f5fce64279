"""Measures all pairs of hosts, round by round; in a round each host is in one test at most.

First each host is asked whether it has what is needed. Then, for each pair: ping from the first to
the second; for each direction and number of flows three tests of iperf3. Data go from the server to
the client, since the client's report counts what arrives. A test in which slow start does not end
is made again, twice as long, up to a minute. Whatever fails ends the measurement, with the hosts
named; what was measured before is in the state. With `bottlenecks`, flows on two directions at once
follow, for all that begin or end at one host (shared_bottlenecks).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from runtime.errors import MachineError, RunError
from tstorm import units
from tstorm.measuring import iperf_flows, measure_state, remote_commands, shared_bottlenecks
from tstorm.measuring.iperf_flows import AvailableRate
from tstorm.measuring.measure_state import (
    REPETITIONS,
    FlowResult,
    MeasureState,
    PingResult,
    SharedResult,
)
from tstorm.measuring.measured_hosts import MeasuredHost
from tstorm.measuring.shared_bottlenecks import SharedTest

MOST_SECONDS = 60
_PROGRAMS = ("env", "timeout", "ping", "iperf3")
_LISTEN_S = 15
_READY = "tstorm-measure: ready"
_LACKING = "tstorm-measure: no "
# A text of ours, so it may be a script: what is missing, and whether TCP sends time stamps.
_LOOK = (
    f"for p in {' '.join(_PROGRAMS)}; do"
    f' command -v "$p" >/dev/null 2>&1 || echo "{_LACKING}$p"; done;'
    f' cat /proc/sys/net/ipv4/tcp_timestamps; echo "{_READY}"'
)
_SLACK_S = 20  # that the connections of a test, and its report, take beside it
_FAST = 1.02  # of a clock: it counts more seconds than have gone by here

Tell = Callable[[str], None]
T = TypeVar("T")


async def measure(state: MeasureState, save: Callable[[MeasureState], None], tell: Tell) -> None:
    """What is missing in `state`; `save` is called after each test. RunError."""
    hosts = state.asked.hosts
    stamps = await _together([_look(host) for host in hosts])
    whole = list(rounds(len(hosts)))
    for number, pairs in enumerate(whole, 1):
        tell(f"round {number} of {len(whole)}")
        jobs = [
            _Pair(state, save, tell, hosts[a], hosts[b], all((stamps[a], stamps[b])))
            for a, b in pairs
        ]
        await _together([job.measure() for job in jobs])
    if state.asked.bottlenecks:
        await _measure_shared(state, save, tell, dict(zip(hosts, stamps, strict=True)))


async def _measure_shared(
    state: MeasureState,
    save: Callable[[MeasureState], None],
    tell: Tell,
    hosts: dict[MeasuredHost, bool],
) -> None:
    """Until all is known, or was tried as often as anything is."""
    named = {host.name: (host, stamps) for host, stamps in hosts.items()}
    tests = shared_bottlenecks.tests(list(named), state.asked.flows)
    for _ in range(REPETITIONS):
        left = [one for one in tests if shared_bottlenecks.next_repetition(state, one) is not None]
        for together in shared_bottlenecks.rounds(left):
            await _together([_shared(state, save, tell, named, test) for test in together])


async def _shared(
    state: MeasureState,
    save: Callable[[MeasureState], None],
    tell: Tell,
    named: dict[str, tuple[MeasuredHost, bool]],
    test: SharedTest,
) -> None:
    """Both at once; a host that sends to two listens on a second port, the next one."""
    number, at = shared_bottlenecks.next_repetition(state, test), _now()
    assert number is not None
    same_source = test.one[0] == test.other[0]
    runs = []
    for place, way in enumerate((test.one, test.other)):
        (source, ours), (dest, theirs) = named[way[0]], named[way[1]]
        if same_source and place:
            source = replace(source, port=source.port + 1)
        seconds = max(one.took_s for one in state.repeated(*way, test.flows))
        many = state.rate_bps(*way, test.flows) > iperf_flows.SMALL_BLOCK_BPS
        block = iperf_flows.LARGE_BLOCK if many else iperf_flows.SMALL_BLOCK
        runs.append(_rate(source, dest, test.flows, seconds, block, time_stamps=ours and theirs))
    bps = sum(found.bps for found in await _together(runs))
    ends = (test.one[0], test.other[0]), (test.one[1], test.other[1])
    result = SharedResult(*ends, test.flows, number, bps, at)
    state.shared[result.key] = result
    save(state)
    one, other = (f"{a} to {b}" for a, b in (test.one, test.other))
    found = shared_bottlenecks.verdict(state, test).found
    tell(f"{one} and {other} at once: {units.rate(round(bps, -3))}, {found}")


def seconds_left(state: MeasureState) -> float:
    """About, if slow starts end in time: rounds are as long as their longest pair."""
    asked, left = state.asked, 0.0
    names = [host.name for host in asked.hosts]
    for pairs in rounds(len(names)):
        left += max(_pair_seconds(state, names[a], names[b]) for a, b in pairs)
    if asked.bottlenecks:
        tests = shared_bottlenecks.tests(names, asked.flows)
        waiting = [test for test in tests if not state.together(test.one, test.other)]
        left += (asked.seconds + 1) * sum(1 for _ in shared_bottlenecks.rounds(waiting))
    return left


def _pair_seconds(state: MeasureState, a: str, b: str) -> float:
    asked = state.asked
    tests = 2 * REPETITIONS * len(asked.flow_counts)
    done = sum(
        len(state.repeated(*ends, flows))
        for ends in ((a, b), (b, a))
        for flows in asked.flow_counts
    )
    return (tests - done) * (asked.seconds + 1) + ((a, b) not in state.pings) * asked.rtt_ns / 1e9


async def _together(jobs: list[Coroutine[Any, Any, T]]) -> list[T]:
    """All of them; the first error ends the others, and is raised when they have ended."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except ExceptionGroup as failed:
        raise _first(failed) from None
    return [task.result() for task in tasks]


async def _look(host: MeasuredHost) -> bool:
    """Whether TCP has time stamps there. RunError if it is not reached or lacks a program."""
    said = await remote_commands.ran(host, ["sh", "-c", _LOOK], 0)
    lines = said.out.decode(errors="replace").splitlines()
    if said.status or _READY not in lines:
        raise remote_commands.failure(host, "a first command", said)
    lacking = [line.removeprefix(_LACKING) for line in lines if line.startswith(_LACKING)]
    if lacking:
        hint = "on Debian: apt-get install iperf3 iputils-ping coreutils"
        raise MachineError(f"{host.name} has no {' and no '.join(lacking)}", hint)
    return "0" not in lines


class _Pair:
    """`a` and `b` are in no other test meanwhile."""

    def __init__(
        self,
        state: MeasureState,
        save: Callable[[MeasureState], None],
        tell: Tell,
        a: MeasuredHost,
        b: MeasuredHost,
        time_stamps: bool,
    ) -> None:
        self._state, self._save, self._tell = state, save, tell
        self._a, self._b, self._time_stamps = a, b, time_stamps
        self._block = iperf_flows.SMALL_BLOCK

    async def measure(self) -> None:
        if (self._a.name, self._b.name) not in self._state.pings:
            await self._ping()
        for source, dest in ((self._a, self._b), (self._b, self._a)):
            seconds = self._state.asked.seconds
            for flows in self._state.asked.flow_counts:
                for number in range(REPETITIONS):
                    key = source.name, dest.name, flows, number
                    if key not in self._state.flows:
                        seconds = await self._flow_test(source, dest, flows, number, seconds)

    async def _ping(self) -> None:
        a, b = self._a, self._b
        seconds, at = self._state.asked.rtt_ns / 1e9, _now()
        command = measure_state.command(b.address, seconds)
        said = await remote_commands.ran(
            a, remote_commands.bounded(command, seconds + _SLACK_S), seconds + _SLACK_S
        )
        trips = measure_state.read(said.out.decode(errors="replace"))
        if trips is None:
            if said.error.strip():
                raise remote_commands.failure(a, f"ping {b.address}", said)
            hint = "a firewall may drop pings; `address` must be one that the other hosts reach"
            raise RunError(f"{b.name} ({b.address}) answers no ping of {a.name}", hint)
        self._state.pings[a.name, b.name] = PingResult(a.name, b.name, trips, at)
        self._save(self._state)
        self._tell(f"{a.name}--{b.name}: round trip {units.duration(trips.min_ns)}")

    async def _flow_test(
        self, source: MeasuredHost, dest: MeasuredHost, flows: int, number: int, seconds: int
    ) -> int:
        """Returns how long it had to be: the next one begins with that."""
        while True:
            at = _now()
            found = await _rate(
                source, dest, flows, seconds, self._block, time_stamps=self._time_stamps
            )
            if self._block < iperf_flows.LARGE_BLOCK and found.bps > iperf_flows.SMALL_BLOCK_BPS:
                self._block = iperf_flows.LARGE_BLOCK
            elif found.steady or seconds >= MOST_SECONDS:
                break
            else:
                seconds = min(2 * seconds, MOST_SECONDS)
        result = FlowResult(
            source.name, dest.name, flows, number, found.bps, found.steady, seconds, at
        )
        self._state.flows[result.key] = result
        self._save(self._state)
        many = "1 flow" if flows == 1 else f"{flows} flows"
        unsteady = "" if found.steady else ", not steady"
        self._tell(
            f"{source.name} to {dest.name}, {many}, {number + 1} of {REPETITIONS}:"
            f" {units.rate(round(found.bps, -3))}{unsteady}"
        )
        return seconds


async def _rate(
    source: MeasuredHost,
    dest: MeasuredHost,
    flows: int,
    seconds: int,
    block: int,
    *,
    time_stamps: bool,
) -> AvailableRate:
    who = f"{source.name} to {dest.name}"
    longest = seconds + _LISTEN_S + 2 * _SLACK_S
    serving = remote_commands.bounded(iperf_flows.server_command(source.port), longest)
    async with remote_commands.running(source, serving) as server:
        await _listening(server, source)
        command = iperf_flows.client_command(source.address, source.port, flows, seconds, block)
        begun = time.monotonic()
        said = await remote_commands.ran(
            dest, remote_commands.bounded(command, seconds + _SLACK_S), seconds + _SLACK_S
        )
        took = time.monotonic() - begun
    if not said.out.strip():
        raise remote_commands.failure(dest, f"iperf3 to {source.name}", said)
    report = iperf_flows.read(said.out, flows, time_stamps=time_stamps, who=who)
    _check_clock(sum(report.seconds), took, seconds, dest)
    return iperf_flows.available(report)


def _check_clock(counted: float, took: float, asked: int, host: MeasuredHost) -> None:
    """Rates are bytes by seconds that another clock has counted. RunError."""
    if counted > _FAST * took or not asked - 1 < counted < asked + 2 or took > asked + _SLACK_S:
        raise RunError(
            f"{host.name} counts {counted:.1f} s in a test of {asked} s that took {took:.1f} s",
            "its clock is wrong, or it stood still meanwhile: rates would be wrong, too",
        )


async def _listening(server: asyncio.subprocess.Process, host: MeasuredHost) -> None:
    """RunError."""
    assert server.stdout is not None
    assert server.stderr is not None
    said = ""
    try:
        async with asyncio.timeout(_LISTEN_S):
            while line := await server.stdout.readline():
                said += line.decode(errors="replace")
                if "listening" in said:
                    return
            said += (await server.stderr.read(1 << 16)).decode(errors="replace")
            status = await server.wait()
    except TimeoutError:
        raise RunError(f"{host.name}: iperf3 does not listen within {_LISTEN_S} s") from None
    if "in use" in said:
        hint = "end what uses it, or give the host another port = …"
        raise RunError(f"{host.name}: port {host.port} is in use there", hint)
    what = f"iperf3 -s on port {host.port}"
    raise remote_commands.failure(host, what, remote_commands.Said(status, b"", said))


def _first(failed: ExceptionGroup[Exception]) -> Exception:
    one: Exception = failed
    while isinstance(one, ExceptionGroup):
        one = one.exceptions[0]
    return one


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Which pairs of hosts are measured at once: none of a round have a host in common.
#
# A 1-factorisation of the complete graph by the circle method (Kirkman 1847): one place stays, the
# others turn by one a round. n hosts take n - 1 rounds; with an odd number there is an empty place,
# whose partner waits, and it takes n.


def rounds(count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Each pair (a < b) of 0 to count - 1 once."""
    places = count + count % 2
    turning = list(range(1, places))
    for _ in range(places - 1):
        circle = [0, *turning]
        pairs = zip(circle[: places // 2], reversed(circle), strict=False)
        yield tuple(sorted((min(a, b), max(a, b)) for a, b in pairs if max(a, b) < count))
        turning.insert(0, turning.pop())
