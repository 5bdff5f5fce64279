"""Results as TDL: a `service` for each host and a `path` for each pair, with what is known of them.

Rates are rounded to four digits, less than any spread. The capacity of a narrow link cannot be seen
from outside; above three times what is available it makes no difference (docs/tdl.md, Measured
paths), but the more it is, the longer queues are, and with them what flows get when they begin. So
it is the least of 1, 2, 5, 10 and so on that is above, and for which queues exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from compiler import path_queues
from compiler.phrases import number
from compiler.pipeline import compile_source
from runtime.errors import RunError
from tdl import quantities
from tdl.ast import FlowTable, PathTerms, ServiceStatement
from tdl.diagnostics import TdlError
from tdl.parser import parse
from tdl.text_layout import format_text
from tstorm import units
from tstorm.measuring import shared_bottlenecks
from tstorm.measuring.measure_state import MeasureRequest, MeasureState, PingResult
from tstorm.measuring.shared_bottlenecks import SharedVerdict, Way

# What came of a measurement: each pair's round trip, and each direction's rates by flows.
#
# A rate is the median of its repetitions; its spread is how far the largest is above the
# smallest, in millionths of the median.
#
# As JSON (PATHS.json; raise VERSION when a reader of the version before would misunderstand it):
#     {"format": "tstorm-paths", "version": 1, "hosts": ["h0", …], "paths": [
#       {"a": "h0", "b": "h1", "at": "2026-…Z", "rtt_ns": …, "rtt_p50_ns": …, "rtt_p99_ns": …,
#        "pings": [sent, answered], "up": {"abw": [[flows, bps, spread_ppm], …], "at": "…Z",
#        "unsteady": [flows, …]}, "down": …}, …]}
# `up` is from a to b. `unsteady`: with so many flows slow start did not end within a minute.
# Where it was asked which paths share a bottleneck, there are also
#     "bottlenecks": [{"name": "h0-out", "paths": [["h0", "h1"], ["h0", "h2"]]}, …],
#     "at_once": [{"paths": [["h0", "h1"], ["h0", "h2"]], "flows": n, "bps": …, "if_apart_bps": …,
#       "if_shared_bps": …, "found": "shared"|"apart"|"unknown"}, …]
# with what n flows from each first to each second host got together (`bps` is null where that would
# tell nothing).

FORMAT, VERSION = "tstorm-paths", 1
_PPM = 1_000_000


class RateRow(NamedTuple):
    flows: int
    bps: int
    spread_ppm: int


class WayResults(NamedTuple):
    """Of one direction, of which the first test began at `at`."""

    rows: tuple[RateRow, ...]
    unsteady: tuple[int, ...]
    at: str


class PairResults(NamedTuple):
    ping: PingResult
    up: WayResults
    down: WayResults


def results(state: MeasureState) -> Iterator[PairResults]:
    """Of a measurement that is complete, in the order of the hosts."""
    names = [host.name for host in state.asked.hosts]
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            yield PairResults(state.pings[a, b], _way(state, a, b), _way(state, b, a))


class SharedWays(NamedTuple):
    """What was found of bottlenecks: by direction its name, and how each was found."""

    names: dict[Way, str]
    verdicts: tuple[SharedVerdict, ...]

    def members(self) -> dict[str, list[Way]]:
        found: dict[str, list[Way]] = {}
        for way, called in self.names.items():
            found.setdefault(called, []).append(way)
        return found


def shared_ways(state: MeasureState) -> SharedWays:
    names = [host.name for host in state.asked.hosts]
    if not state.asked.bottlenecks:
        return SharedWays({}, ())
    tests = shared_bottlenecks.tests(names, state.asked.flows)
    verdicts = tuple(shared_bottlenecks.verdict(state, test) for test in tests)
    taken = set(names)
    found: dict[Way, str] = {}
    for ways in shared_bottlenecks.groups(verdicts):
        found |= dict.fromkeys(ways, shared_bottlenecks.name(ways, taken))
    return SharedWays(found, verdicts)


def to_json(asked: MeasureRequest, pairs: list[PairResults], shared: SharedWays) -> dict[str, Any]:
    hosts = [host.name for host in asked.hosts]
    paths = [_pair_json(pair) for pair in pairs]
    found = {"format": FORMAT, "version": VERSION, "hosts": hosts, "paths": paths}
    if asked.bottlenecks:
        found["bottlenecks"] = [
            {"name": called, "paths": ways} for called, ways in shared.members().items()
        ]
        found["at_once"] = [
            {
                "paths": [one.test.one, one.test.other],
                "flows": one.test.flows,
                "bps": one.bps,
                "if_apart_bps": one.if_apart_bps,
                "if_shared_bps": one.if_shared_bps,
                "found": one.found,
            }
            for one in shared.verdicts
        ]
    return found


def _pair_json(pair: PairResults) -> dict[str, Any]:
    ping = pair.ping
    return {
        "a": ping.a,
        "b": ping.b,
        "at": ping.at,
        "rtt_ns": ping.trips.min_ns,
        "rtt_p50_ns": ping.trips.p50_ns,
        "rtt_p99_ns": ping.trips.p99_ns,
        "pings": [ping.trips.sent, ping.trips.received],
        "up": _way_json(pair.up),
        "down": _way_json(pair.down),
    }


def _way_json(way: WayResults) -> dict[str, Any]:
    return {"abw": [list(row) for row in way.rows], "unsteady": list(way.unsteady), "at": way.at}


def _way(state: MeasureState, source: str, dest: str) -> WayResults:
    rows, unsteady, times = [], [], []
    for flows in state.asked.flow_counts:
        found = state.repeated(source, dest, flows)
        rates = [one.bps for one in found]
        middle = state.rate_bps(source, dest, flows)
        rows.append(RateRow(flows, middle, (max(rates) - min(rates)) * _PPM // middle))
        unsteady += [flows] if not all(one.steady for one in found) else []
        times += [one.at for one in found]
    return WayResults(tuple(rows), tuple(unsteady), min(times))


FIRST_WORDS = "# Measured by tstorm measure"
_CAPACITIES: tuple[int, ...] = tuple(
    first * 10**power for power in range(3, 13) for first in (1, 2, 5)
)
_ENOUGH = 3  # times what is available
_DIGITS = 4
_NS_PER_10_US = 10_000


def check_names(names: Sequence[str]) -> None:
    """RunError for hosts that cannot be services."""
    for name in names:
        hint = "name it as a service, with letters, digits, _ and single -: [hosts.paris-2]"
        try:
            file, _ = parse(_services([name]))
        except TdlError as error:
            raise RunError(f"a host cannot be called {name!r:.60}: {error}", hint) from None
        services = [one for one in file.statements if isinstance(one, ServiceStatement)]
        if [one.name.text for one in services] != [name] or len(file.statements) > 1:
            raise RunError(f"a host cannot be called {name!r:.60}", hint)


def text(
    state: MeasureState, pairs: Sequence[PairResults], shared: SharedWays, *, only_paths: bool
) -> str:
    """In the canonical form. RunError if it is no experiment, which names the reason."""
    names = [host.name for host in state.asked.hosts]
    times = state.times()
    said = f"{FIRST_WORDS}, {times[0]} to {times[-1]}, of {number(len(names), 'host')}.\n"
    paths = "".join(f"{line}\n" for line in _bottlenecks(pairs, shared))
    paths += "\n".join("\n".join(_path(pair, shared)) for pair in pairs) + "\n"
    services = _services(names)
    try:
        compile_source(services + paths)
    except TdlError as error:
        raise RunError(f"what was measured is no network: {error}") from error
    return format_text(f"{said}\n{paths}" if only_paths else f"{said}{services}\n{paths}")


def _services(names: Sequence[str]) -> str:
    return "".join(f"service {name}\n" for name in names)


def _bottlenecks(pairs: Sequence[PairResults], shared: SharedWays) -> Iterator[str]:
    """Each with the paths that share it, and why; then what nobody knows."""
    capacities = {
        way: _capacity(_table(pair.up.rows), _table(pair.down.rows), pair.ping.trips.min_ns)
        for pair in pairs
        for way in ((pair.ping.a, pair.ping.b), (pair.ping.b, pair.ping.a))
    }
    for called, ways in shared.members().items():
        inside = [v for v in shared.verdicts if {v.test.one, v.test.other} <= set(ways)]
        yield from (_at_once(one) for one in inside if one.found == shared_bottlenecks.SHARED)
        capacity = max(capacities[way] for way in ways)
        yield f"bottleneck {called} capacity={quantities.rate(capacity)}"
        yield ""
    for one in shared.verdicts:
        alike = {shared.names.get(way) for way in (one.test.one, one.test.other)}
        if one.found == shared_bottlenecks.UNKNOWN:
            yield f"{_at_once(one)}: whether they share a bottleneck is not known"
        elif one.found == shared_bottlenecks.SHARED and (len(alike) > 1 or None in alike):
            yield f"{_at_once(one)}: they share one, which others contradict"


def _at_once(one: SharedVerdict) -> str:
    ends = " and ".join(f"{a} to {b}" for a, b in (one.test.one, one.test.other))
    rates = (one.bps, one.if_apart_bps, one.if_shared_bps)
    together, apart, joint = ("-" if bps is None else units.rate(_rounded(bps)) for bps in rates)
    many = number(one.test.flows, "flow")
    return f"# {ends} at once, {many} each: {together} (apart {apart}, shared {joint})"


def _path(pair: PairResults, shared: SharedWays) -> Iterator[str]:
    ping, trips = pair.ping, pair.ping.trips
    half, most = (
        units.duration(round(ns, -4) or _NS_PER_10_US) for ns in (trips.p50_ns, trips.p99_ns)
    )
    lost = trips.sent - trips.received
    yield (
        f"# {ping.at}: round trip at least {units.duration(trips.min_ns)}, half of"
        f" {trips.sent} within {half}, 99 % within {most}{f', {lost} lost' if lost > 0 else ''}"
    )
    yield _comment(f"{ping.a} to {ping.b}", pair.up)
    yield _comment(f"{ping.b} to {ping.a}", pair.down)
    up, down = _table(pair.up.rows), _table(pair.down.rows)
    ways = {"up": (ping.a, ping.b), "down": (ping.b, ping.a)}
    found = {word: shared.names[way] for word, way in ways.items() if way in shared.names}
    queues = [f"bottleneck-{word}={called}" for word, called in found.items()]
    if len(found) < len(ways):
        queues = [f"capacity={quantities.rate(_capacity(up, down, trips.min_ns))}", *queues]
    yield (
        f"path {ping.a}--{ping.b} {_rates('up', up)} {_rates('down', down)}"
        f" rtt={quantities.latency(trips.min_ns)} {' '.join(queues)}"
    )


def _comment(ends: str, way: WayResults) -> str:
    """When, and how far the repetitions are apart."""
    spreads = ", ".join(f"{row.flows}: {row.spread_ppm / 10_000:.1f} %" for row in way.rows)
    counts = ", ".join(map(str, way.unsteady))
    unsteady = f"; never steady with {counts} flows" if counts else ""
    return f"# {ends} from {way.at}; spread by flows: {spreads}{unsteady}"


def _table(rows: Sequence[RateRow]) -> FlowTable:
    return tuple((row.flows, _rounded(row.bps)) for row in rows)


def _rates(way: str, table: FlowTable) -> str:
    if len(table) == 1:
        return f"abw-{way}={quantities.rate(table[0][1])}"
    rows = ";".join(f"{flows}:{quantities.rate(bps)}" for flows, bps in table)
    return f"abw-flows-{way}={rows}"


def _rounded(bps: int) -> int:
    unit: int = 10 ** max(0, len(str(bps)) - _DIGITS)
    return (2 * bps + unit) // (2 * unit) * unit


def _capacity(up: FlowTable, down: FlowTable, rtt_ns: int) -> int:
    most = max(bps for _, bps in (*up, *down))
    for capacity in _CAPACITIES:
        if capacity >= _ENOUGH * most and _has_queues(
            PathTerms(up, down, capacity, None, rtt_ns, None, None)
        ):
            return capacity
    return max(_CAPACITIES[-1], most)


def _has_queues(terms: PathTerms) -> bool:
    try:
        path_queues.derive(terms)
    except path_queues.PathProblem:
        return False
    return True
