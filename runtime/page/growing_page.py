"""The data of a page of a run that goes on: all of it once, and then what has come since.

Input: a run directory that is being written; each line of its files is read once. Output: updates
with the keys of docs/page.md, which runtime/page/web/model.js takes one after the other. Besides
`live` says where the run is, `coming` what is planned next, and `anew` of which keys an update has
all that there is. Nobody is asked anything: the run does not notice that somebody looks.

The grid grows with the run; when it has as many points as a page may have, they are joined two by
two. At the end all is gathered once more, as for report.html.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from compiler.plan.format import TOPOLOGY, PlanError
from compiler.plan.parts.action_texts import number_of
from compiler.plan.reader import Plan
from compiler.plan.reader import decode as decode_plan
from runtime.options import VIRTUAL, decode
from runtime.page import grid, page_data, page_logs, page_network, page_probes, page_traffic, tables
from runtime.page.downsample import read_some, stride
from runtime.page.page_events import Happened
from runtime.results.logfollow import Follower
from runtime.rundir.line_files import GrowingLines
from runtime.rundir.rundir import RunDirectory, plan_in
from runtime.rundir.runfiles import EVENTS, MANIFEST, PROBES, SAMPLES
from runtime.rundir.sample_reader import LINKS, PAIRS, Key, Row
from runtime.schedule import PlanClock

MOST_COMING = 200  # planned events that are told beforehand
LOG_BYTES = 200_000  # of one log, from its end, when somebody begins to look
MOST_LINES = 20_000  # of all logs that are kept for who comes later
RUNNING, STARTING, LOST = "running", "starting", "unfinished"
_SECOND = 10**9
_AHEAD = 4  # what is to come has one part in so many of the axis, and LEAST_AHEAD_NS
_LEAST_AHEAD_NS = 10 * _SECOND
_MANY = 1 << 40  # buckets of a grid whose end nobody knows
_JUDGED_LATER = "the run goes on: nothing is judged before its end"

Update = dict[str, Any]


class GrowingPage:
    """`goes_on`: whether the run does; it is asked once a second.

    ended   the run is over, and what `more` gave last was the whole of its page
    """

    def __init__(self, directory: RunDirectory, goes_on: Callable[[], bool]) -> None:
        self._directory, self._goes_on = directory, goes_on
        self.manifest = directory.manifest()
        self.options = decode(self.manifest["options"], "options")
        self._clock = PlanClock(self.options.start_at_ns, self.options.pace)
        self._begin_ns = self._clock.start_at_ns
        self.plan, self._topology = _in_memory(plan_in(directory))
        self._action = self._known = _last_action(self.plan)  # that was told, that it has
        self.ended = False
        self._start_ns: int | None = None  # monotonic time
        self._seen_ns = self._begin_ns  # plan time: the last of which something is known
        self._asked_at = 0.0
        self._manifest_was: object = None
        self.happened = Happened(self._clock, None)
        names = [node.name for node in self.plan.topology.nodes if node.service >= 0]
        self._logs = Follower(directory, names, names, LOG_BYTES)
        self._lines: deque[tuple[str, list[Any]]] = deque(maxlen=MOST_LINES)
        self._coming: list[list[Any]] = []
        self.series = _Series(directory, self.plan, self._clock)
        self._measure, self._count = "", 0
        self._whole: Update = {}

    # -- what there is ----------------------------------------------------------------------------

    def whole(self) -> Update:
        """All that is known, for who comes now. `more` goes on from there."""
        if self.ended:
            return self._whole
        return {
            "format": page_data.FORMAT,
            "version": page_data.VERSION,
            "anew": ["events", "links", "pairs", "logs"],
            **self._words(),
            **self._moment(),
            "network": page_network.record(self.plan, None, []),
            "events": self.happened.record(),
            "coming": self._coming_rows(),
            "logs": _by_instance(self._lines),
            "tables": [tables.facts(self.manifest, {})],
            "permille": list(page_probes.PERMILLE),
            "figures": None,
            "expectations": [],
            "programs": [],
            "notes": [],
            **self.series.whole(),
        }

    def _words(self) -> Update:
        manifest = self.manifest
        return {
            "result": {"state": RUNNING, "failures": []},
            "verdict": {"state": "unknown", "lines": [_JUDGED_LATER], "marks": [], "limits": []},
            "run": {
                "id": str(manifest["run_id"]),
                "experiment": str(manifest["experiment"]),
                "outcome": STARTING if self._start_ns is None else RUNNING,
                "message": "",
                "applied": self.happened.planned,
                "planned": len(self.plan.events),
                "changed": self.happened.changed(),
            },
        }

    def _moment(self, count: int = 0) -> Update:
        """`count`: of points of the grid, where no others are to be told with it."""
        now_ns = self.now_ns()
        ahead_ns = max((now_ns - self._begin_ns) // _AHEAD, _LEAST_AHEAD_NS * self._clock.pace)
        axis = self.series.grid_until(now_ns).to_record()
        return {
            "time": {
                "begin_ns": self._begin_ns,
                "end_ns": max(min(now_ns + ahead_ns, self.plan.end_ns), now_ns),
                "now_ns": now_ns,
                "pace": self._clock.pace,
                "grid": {**axis, "count": count or axis["count"]},
            },
        }

    def now_ns(self) -> int:
        """Plan time: by the clock of this machine, which is the run's, or what was seen last."""
        if self._start_ns is None or self.options.time == VIRTUAL:
            return self._seen_ns
        since_ns = time.monotonic_ns() - self._start_ns
        return max(self._seen_ns, min(self._clock.plan_time(max(since_ns, 0)), self.plan.end_ns))

    def _coming_rows(self) -> list[list[Any]]:
        """The next planned events: when, kind, target."""
        now_ns = self.now_ns()
        following = (one for one in self.plan.events if one.at_ns > now_ns)
        rows = zip(range(MOST_COMING), following, strict=False)
        self._coming = [[one.at_ns, one.kind, one.target] for _, one in rows]
        return self._coming

    # -- what has come since ----------------------------------------------------------------------

    def news(self) -> Update:
        """Events and lines of logs since the call before; empty if there are none. What an action
        has made of the plan comes with the call after it: reading that takes longer. RunError."""
        self._begin()
        events, lines = self.happened.rows, []
        before, digest = len(events), self.plan.digest
        if self._action > self._known:  # that of a `when` is on the disk some time after it
            self._follow_plan()
        for line in self._logs.part():
            if line.record is None:
                lines.append((line.instance, page_logs.shown_line(line, self._clock)))
            else:
                self.happened.take(line.record)
                action = line.record.get("action")
                if line.record.get("kind") in ("do", "when") and type(action) is int:
                    self._action = max(self._action, action)
        self._seen_ns = max(self._seen_ns, self.happened.last_ns)
        found: Update = {}
        if len(events) > before:
            found["events"] = self.happened.record(before)
            found["run"] = self._words()["run"]
            found.update(self._moment(self._count))  # so that the page is no earlier than they are
        if lines:
            self._lines.extend(lines)
            found["logs"] = _by_instance(lines)
        if self.plan.digest != digest:
            found["network"] = page_network.record(self.plan, None, [])
            found["coming"] = self._coming_rows()
        return found

    def growth(self) -> Update:
        """Series since the call before, and what time it is. RunError."""
        self._begin()
        anew = self.series.read(self.now_ns())
        self._seen_ns = max(self._seen_ns, self.series.seen_ns)
        found: Update = self._moment()
        count = found["time"]["grid"]["count"]
        if anew or count != self._count:  # of points that are whole; only these are shown
            changed, self._count = self.series.changed(), count
            if anew:
                changed = {"anew": ["links", "pairs"], **self.series.whole()}
            found.update(changed)
        if len(self._coming) == MOST_COMING and self._coming[MOST_COMING // 2][0] < self.now_ns():
            found["coming"] = self._coming_rows()
        if self.series.probes is not None and not self._measure:
            found["measure"] = self._measure = self.series.probes.measure
        return found

    def end(self) -> Update | None:
        """The whole page of a run that is over; None: it goes on. RunError."""
        status = self._directory.status(MANIFEST)
        was, self._manifest_was = self._manifest_was, status and (status.st_ino, status.st_mtime_ns)
        if was != self._manifest_was:
            self.manifest = self._directory.manifest()
        over = "outcome" in self.manifest
        if not over and time.monotonic() - self._asked_at > 1:
            over = not self._goes_on()
            self._asked_at = time.monotonic()
            if over:
                self.manifest = self._directory.manifest()
        if not over:
            return None
        self._whole = finished(self._directory)
        self.ended = True
        return self._whole

    def _begin(self) -> None:
        if self._start_ns is None and self._directory.has(EVENTS):
            header = next(read_some(self._directory, EVENTS), {})
            found = header.get("start_monotonic_ns")
            self._start_ns = found if type(found) is int else None

    def _follow_plan(self) -> None:
        try:
            found = plan_in(self._directory)
            self.plan, self._topology = _in_memory(found, self.plan, self._topology)
            self._known = _last_action(self.plan)
        except (PlanError, OSError):  # it is being replaced, and there the next time
            return


def _in_memory(plan: Plan, before: Plan | None = None, known: bytes = b"") -> tuple[Plan, bytes]:
    """The plan, whose directory may be replaced from now on, and its topology as it is written.
    `known`: that of the plan before, with which it mostly has most in common. PlanError, OSError.
    """
    files = {name: plan.raw(name) for name in plan.names}
    topology = files[TOPOLOGY]
    return decode_plan(files, before=before if topology == known else None), topology


def _last_action(plan: Plan) -> int:
    return max(map(number_of, plan.attached.includes), default=0)


def finished(directory: RunDirectory) -> Update:
    """The whole page of a run that is over. RunError."""
    manifest = directory.manifest()
    found = page_data.gather(directory, manifest, directory.summary())
    if "outcome" not in manifest:
        found["run"]["outcome"] = LOST
    return {**found, "anew": ["events", "links", "pairs", "logs"], "coming": []}


def _by_instance(lines: Iterable[tuple[str, list[Any]]]) -> list[dict[str, Any]]:
    found: dict[str, list[list[Any]]] = {}
    for instance, line in lines:
        found.setdefault(instance, []).append(line)
    return [{"instance": name, "lines": told} for name, told in sorted(found.items())]


class _Series:
    """Links, pairs and probes."""

    def __init__(self, directory: RunDirectory, plan: Plan, clock: PlanClock) -> None:
        self._directory, self._clock = directory, clock
        self._nodes = [node.name for node in plan.topology.nodes]
        self._numbers = {name: at for at, name in enumerate(self._nodes)}
        links = range(min(len(plan.topology.links), page_data.MOST_LINKS))
        self._axis = grid.TimeGrid(clock.start_at_ns, 100_000_000 * clock.pace, _MANY)
        self.flows = page_traffic.Flows(
            self._axis, links, (), some=False, pace=clock.pace, room=page_data.MOST_PAIRS
        )
        self.probes: page_probes.Probes | None = None
        self._readers: dict[str, GrowingLines] = {}
        self._last: dict[str, dict[Key, Sequence[int]]] = {LINKS: {}, PAIRS: {}}
        self.seen_ns = 0

    def counters(self, kind: str) -> dict[Key, Row]:
        """Of LINKS or PAIRS, as they were told of last."""
        names = self.flows.reader.columns[kind]
        return {key: dict(zip(names, row, strict=True)) for key, row in self._last[kind].items()}

    def grid_until(self, now_ns: int) -> grid.TimeGrid:
        """Of the points that are whole by then."""
        axis = self._axis
        count = max((now_ns - axis.begin_ns) // axis.step_ns, 1)
        return grid.TimeGrid(axis.begin_ns, axis.step_ns, count)

    def _most(self) -> int:
        numbers = len(self.flows.links) * page_traffic.LINK_NUMBERS
        numbers += len(self.flows.pairs) * page_traffic.PAIR_NUMBERS
        numbers += len(self.probes.pairs if self.probes else ()) * page_probes.NUMBERS
        wanted = max(grid.MOST_NUMBERS // max(numbers, 1), grid.LEAST_BUCKETS)
        return min(wanted, grid.MOST_BUCKETS)

    def read(self, now_ns: int) -> bool:
        """Whether all of it is to be told anew."""
        for record in self._lines(SAMPLES):
            self.flows.take(record)
            for kind, rows in self._last.items() if "columns" not in record else ():
                rows.update(self.flows.reader.values(record, kind))
            at_ns = record.get("at_ns")
            self.seen_ns = max(self.seen_ns, at_ns if type(at_ns) is int else 0)
        for record in self._lines(PROBES):
            if self.probes is not None:
                self.probes.take(record)
            elif "pairs" in record:
                self.probes = page_probes.Probes(
                    self._axis, record, page_data.MOST_PAIRS, self._clock.pace
                )
        anew = False
        while self.grid_until(now_ns).count > self._most():
            self._axis, anew = self._axis.coarser(), True
            self.flows.coarsen()
            if self.probes is not None:
                self.probes.coarsen()
        return anew

    def _lines(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Of a file that is long when it is first read, a part."""
        if not self._directory.has(name):
            return
        if name not in self._readers:
            self._readers[name] = GrowingLines(self._directory, name)
            if stride(self._directory, name) > 1:
                yield from read_some(self._directory, name)
                self._readers[name].skip()
        yield from self._readers[name].more()

    def whole(self) -> Update:
        flows, probes = self.flows, self.probes
        found = {self._named(key): flows.pair_record(key) for key in _pairs(flows)}
        for number, pair in enumerate(probes.pairs if probes else ()):
            found[pair] = {**found.get(pair, {}), "probe": probes.series(number) if probes else {}}
        return {
            "links": [flows.link_record(link) for link in _links(flows)],
            "pairs": _pair_records(found),
            "measure": probes.measure if probes else "",
        }

    def changed(self) -> Update:
        """Since it was asked for before; nothing of what stayed."""
        flows, probes = self.flows, self.probes
        since, flows.changed = flows.changed, _MANY
        near = [key for key, flow in flows.links.items() if flow.latest >= since]
        links = [_told(flows.link_record(key, since)) for key in near if isinstance(key, int)]
        found: dict[tuple[str, str], Update] = {}
        for key in _pairs(flows):
            if flows.pairs[key].latest < since:
                continue
            if record := _told(flows.pair_record(key, since)):
                found[self._named(key)] = record
        if probes is not None:
            since, probes.changed = probes.changed, _MANY
            for number, pair in enumerate(probes.pairs):
                if record := _told(probes.series(number, since)):
                    found[pair] = {**found.get(pair, {}), "probe": record}
        told = {"links": list(filter(None, links)), "pairs": _pair_records(found)}
        return {key: records for key, records in told.items() if records}

    def _named(self, key: Any) -> tuple[str, str]:
        src, dst = key
        return self._nodes[src], self._nodes[dst]


def _links(flows: page_traffic.Flows) -> Iterator[int]:
    return (key for key in flows.links if isinstance(key, int))


def _pairs(flows: page_traffic.Flows) -> Iterator[tuple[int, int]]:
    return (key for key in flows.pairs if isinstance(key, tuple))


def _told(record: Update) -> Update:
    """Without series in which nothing has come; empty if that is all."""
    empty = {key for key, value in record.items() if isinstance(value, dict) and not value["v"]}
    told = any(isinstance(value, dict) and value["v"] for value in record.values())
    return {key: value for key, value in record.items() if key not in empty} if told else {}


def _pair_records(found: Mapping[tuple[str, str], Update]) -> list[Update]:
    return [{"src": src, "dst": dst, **record} for (src, dst), record in found.items()]
