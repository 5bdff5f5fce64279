"""The data of a page, gathered from a run directory: one object of plain values.

Input: the directory, its manifest and its summary. Everything is foreign data, may be missing or be
damaged: what cannot be shown is left out and said in `notes`, in words. Time and memory are
bounded whatever the files hold: they are read line by line, long ones in part
(runtime/page/downsample.py), series are aggregated on one grid (runtime/page/grid.py), lists are
cut. docs/page.md has the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan
from runtime import say
from runtime.errors import RunError
from runtime.judge import verdict_text
from runtime.options import RunOptions, decode
from runtime.page import (
    grid,
    page_events,
    page_expectations,
    page_logs,
    page_network,
    page_planned,
    page_probes,
    page_traffic,
    tables,
)
from runtime.page.downsample import last_line, read_some, stride
from runtime.page.page_events import Happened
from runtime.results import failed
from runtime.rundir.eventlog import read_events
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.rundir import plan_in
from runtime.rundir.runfiles import EVENTS, PROBES, SAMPLES
from runtime.schedule import PlanClock

_UNUSABLE = (
    RunError,
    PlanError,
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

FORMAT, VERSION = "tstorm-page", 1
MOST_PAIRS, MOST_LINKS = 1000, 2000  # with series
Pair = tuple[str, str]


class _Gathering:
    """One page's. `notes` grows; order of what is gathered is fixed."""

    def __init__(
        self, directory: HeldDirectory, manifest: Mapping[str, Any], summary: Mapping[str, Any]
    ) -> None:
        self.directory, self.manifest, self.summary = directory, manifest, summary
        self.notes: list[str] = []
        self.options = self._options()
        self.clock = PlanClock(self.options.start_at_ns, self.options.pace)
        self.plan: Plan | None = None
        self.happened = Happened(self.clock, failed.ends(summary))
        self.probes: page_probes.Probes | None = None
        self.header: Mapping[str, Any] | None = None

    def _unless_damaged(self, what: str) -> _NotedErrors:
        return _NotedErrors(what, self.notes)

    def _options(self) -> RunOptions:
        with self._unless_damaged("the options of the run are not known, times may be wrong"):
            return decode(self.manifest.get("options", {}), "options")
        return RunOptions()

    def gather(self) -> dict[str, Any]:
        summary = self.summary
        self._events()
        drawn = self._network()
        pairs, links = self._pairs(), self._busiest("links", ("link",), MOST_LINKS)
        end_ns = self._end()
        axis = self._grid(end_ns, pairs, links)
        flows = self._flows(axis, pairs, links)
        self._probes(axis)
        told = self._certificate(pairs)
        return {
            "format": FORMAT,
            "version": VERSION,
            "result": self._result(end_ns),
            "verdict": self._verdict(),
            "run": self._run(),
            "expectations": page_expectations.records(summary.get("expectations"), self.notes),
            "time": {
                "begin_ns": self.clock.start_at_ns,
                "end_ns": end_ns,
                "pace": self.clock.pace,
                "grid": axis.to_record(),
            },
            "network": drawn,
            "events": self.happened.record(),
            "links": self._link_series(flows, links),
            "pairs": self._pair_series(flows, pairs),
            "packets": self._packets(end_ns),
            "measure": self.probes.measure if self.probes else "",
            "permille": list(page_probes.PERMILLE),
            "planned": told,
            "programs": self._programs(),
            "logs": self._logs(),
            "figures": self._figures(),
            "tables": self._tables(),
            "notes": self.notes,
        }

    # -- what there is ----------------------------------------------------------------------------

    def _events(self) -> None:
        if not self._has(EVENTS):
            self.notes.append("there are no events: the run ended before its first")
            return
        with self._unless_damaged("events are missing from some moment on"):
            self.happened.take_all(read_events(self.directory))
        self.happened.note(self.notes)

    def _has(self, name: str) -> bool:
        with self._unless_damaged(f"{name} is not shown"):
            return self.directory.has(name)
        return False

    def _network(self) -> dict[str, Any] | None:
        with self._unless_damaged("the network is not shown"):
            plan = plan_in(self.directory)
            drawn = page_network.record(plan, self.happened.early_ns, self.notes)
            self.plan = plan
            return drawn
        return None

    def _pairs(self) -> list[Pair]:
        """Those that were probed, then the busiest others; in the order of the plan."""
        first: Mapping[str, Any] | None = None
        if self._has(PROBES):
            with self._unless_damaged("there is nothing of probes"):
                first = next(read_some(self.directory, PROBES), None)
        if first is not None and "pairs" in first:
            self.header = first
        probes = [(src, dst) for src, dst in (self.header or {}).get("pairs", ())][:MOST_PAIRS]
        found = dict.fromkeys(probes)
        busy = self._busiest("pairs", ("src", "dst"), MOST_PAIRS)
        found.update(dict.fromkeys(busy[: max(MOST_PAIRS - len(found), 0)]))
        left_out = len(set(busy) - found.keys())
        if left_out:
            self.notes.append(f"{left_out} pairs have no series: a page has {MOST_PAIRS}")
        return list(found)

    def _busiest(self, kind: str, names: Sequence[str], most: int) -> list[Any]:
        """Names of rows of the summary: the first by bytes, in the order of the summary."""
        rows: list[tuple[int, int, Any]] = []
        column = "out_bytes" if kind == "links" else "delivered_bytes"
        told = self.summary.get(kind)
        for number, row in enumerate(told if isinstance(told, list) else ()):
            key = tuple(str(row.get(name, "")) for name in names)
            amount = row.get(column)
            size = amount if type(amount) is int else 0
            rows.append((-size, number, key if len(names) > 1 else key[0]))
        if kind == "links" and len(rows) > most:
            self.notes.append(f"{len(rows) - most} links have no series: a page has {most}")
        return [key for _, _, key in sorted(sorted(rows)[:most], key=lambda one: one[1])]

    def _end(self) -> int:
        """The last moment of which something is known, or at which the run ended early; at least a
        second after the first."""
        last = self.happened.last_ns
        if self.happened.early_ns is not None:
            last = self.happened.early_ns
        elif self._has(SAMPLES):
            with self._unless_damaged("the last sample is not known"):
                record = last_line(self.directory, SAMPLES)
                at_ns = None if record is None else record.get("at_ns")
                last = max(last, at_ns if type(at_ns) is int else 0)
        return max(last, self.clock.start_at_ns + 10**9)

    # -- series -----------------------------------------------------------------------------------

    def _grid(self, end_ns: int, pairs: Sequence[Pair], links: Sequence[str]) -> grid.TimeGrid:
        numbers = len(links) * page_traffic.LINK_NUMBERS + len(pairs) * page_traffic.PAIR_NUMBERS
        numbers += len((self.header or {}).get("pairs", ())[:MOST_PAIRS]) * page_probes.NUMBERS
        step_ns = 100_000_000 * self.clock.pace
        axis = grid.grid(self.clock.start_at_ns, end_ns, step_ns, numbers)
        if axis.step_ns > step_ns:
            self.notes.append(
                f"series are aggregated: each point stands for {say.digits(axis.step_ns / 1e9)} s,"
                " with the mean, the smallest and the largest value in it"
            )
        return axis

    def _flows(
        self, axis: grid.TimeGrid, pairs: Sequence[Pair], links: Sequence[str]
    ) -> page_traffic.Flows | None:
        if self.plan is None or not self._has(SAMPLES):
            return None
        link_numbers = {link.name: at for at, link in enumerate(self.plan.topology.links)}
        nodes = {node.name: at for at, node in enumerate(self.plan.topology.nodes)}
        wanted = [(nodes[a], nodes[b]) for a, b in pairs if a in nodes and b in nodes]
        known = [link_numbers[name] for name in links if name in link_numbers]
        every = self._stride(SAMPLES)
        flows = page_traffic.Flows(axis, known, wanted, some=every > 1, pace=self.clock.pace)
        with self._unless_damaged("counters are missing from some moment on"):
            for record in read_some(self.directory, SAMPLES):
                if not self._is_later(record.get("at_ns")):
                    flows.take(record)
        strange = flows.reader.timeless + flows.reader.misshapen
        if strange:
            self.notes.append(
                f"{strange} lines or rows of {SAMPLES} are left out: they are damaged"
            )
        return flows

    def _is_later(self, at_ns: object) -> bool:
        """Than an early end."""
        end_ns = self.happened.early_ns
        return end_ns is not None and type(at_ns) is int and at_ns > end_ns

    def _stride(self, name: str) -> int:
        every = stride(self.directory, name)
        if every > 1:
            self.notes.append(
                f"{name} is long: one of some {every} lines is read. Sums are right all the same;"
                " of what happened between two of them only the mean is known"
            )
        return every

    def _probes(self, axis: grid.TimeGrid) -> None:
        if self.header is None:
            return
        self._stride(PROBES)
        with self._unless_damaged("probes are missing from some moment on"):
            self.probes = page_probes.Probes(axis, self.header, MOST_PAIRS, self.clock.pace)
            for record in read_some(self.directory, PROBES):
                self.probes.take(record)
        if self.probes is None:
            return
        if self.probes.left_out:
            self.notes.append(f"{self.probes.left_out} probed pairs are not shown")
        if self.probes.cut():
            self.notes.append(
                f"distributions of {self.probes.cut()} pairs are of their first"
                f" {page_probes.MOST_KEPT} probes"
            )

    def _link_series(
        self, flows: page_traffic.Flows | None, links: Sequence[str]
    ) -> list[dict[str, Any]]:
        if flows is None or self.plan is None:
            return []
        numbers = {link.name: at for at, link in enumerate(self.plan.topology.links)}
        return [flows.link_record(numbers[name]) for name in links if name in numbers]

    def _pair_series(
        self, flows: page_traffic.Flows | None, pairs: Sequence[Pair]
    ) -> list[dict[str, Any]]:
        nodes = self.plan.topology.nodes if self.plan else ()
        numbers = {node.name: at for at, node in enumerate(nodes)}
        probes = {pair: at for at, pair in enumerate(self.probes.pairs)} if self.probes else {}
        found = []
        for src, dst in pairs:
            one: dict[str, Any] = {"src": src, "dst": dst}
            key = (numbers.get(src, -1), numbers.get(dst, -1))
            if flows is not None and key in flows.pairs:
                one.update(flows.pair_record(key))
            if self.probes and (src, dst) in probes:
                one["probe"] = self.probes.record(probes[(src, dst)])
            found.append(one)
        return found

    def _packets(self, end_ns: int) -> dict[str, Any] | None:
        with self._unless_damaged("packets are not shown"):
            if self.plan is not None:
                return page_events.packets(
                    self.directory, self.plan, self.clock, self.manifest, end_ns, self.notes
                )
        return None

    # -- words and tables -------------------------------------------------------------------------

    def _run(self) -> dict[str, Any]:
        return {
            "id": str(self.manifest.get("run_id", "run")),
            "experiment": str(self.manifest.get("experiment", "")),
            "outcome": str(self.summary.get("outcome", self.manifest.get("outcome", ""))),
            "message": str(self.summary.get("message", self.manifest.get("message", ""))),
            "applied": _count(self.summary, "applied"),
            "planned": _count(self.summary, "planned"),
            "changed": self.happened.changed(),
        }

    def _result(self, end_ns: int) -> dict[str, Any]:
        with self._unless_damaged("what failed is not known"):
            return failed.record({**self.summary, **self._run()}, self.options, end_ns)
        return {"state": "unknown", "failures": []}

    def _verdict(self) -> dict[str, Any]:
        verdict = self.summary.get("verdict")
        found = verdict if isinstance(verdict, dict) else {}
        limits = self.summary.get("limits")
        marks = []
        reasons = found.get("reasons")
        for one in reasons if isinstance(reasons, list) else ():
            at_ns = one.get("at_ns") if isinstance(one, dict) else None
            if type(at_ns) is int:
                marks.append([self.clock.plan_time(at_ns), str(one.get("text", ""))])
        lines = []
        with self._unless_damaged("the verdict is damaged"):
            lines = list(verdict_text.told(verdict))
        return {
            "state": str(found.get("state", "unknown")),
            "lines": lines,
            "marks": marks[: tables.MOST_ROWS],
            "limits": [
                str(one.get("text", ""))
                for one in (limits if isinstance(limits, list) else ())
                if isinstance(one, dict)
            ],
        }

    def _certificate(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        numbers = {pair: at for at, pair in enumerate(pairs)}
        found: Mapping[str, Any] = {}
        with self._unless_damaged("what was planned for pairs is not shown"):
            found = page_planned.read(self.directory)
            lacking = found.get("not_measured")
            self.notes += [f"not measured: {one}" for one in lacking or () if isinstance(one, str)]
        return page_planned.record(found, numbers, self.notes)

    def _logs(self) -> list[dict[str, Any]]:
        with self._unless_damaged("logs are not shown"):
            told = (self.summary.get("failures") or [], self.summary.get("exits") or [])
            first = [str(one.get("target", "")) for part in told for one in part]
            return page_logs.record(self.directory, self.clock, first, self.notes)
        return []

    def _programs(self) -> list[dict[str, Any]]:
        found = []
        for make in (tables.failures, tables.ends, tables.starts):
            with self._unless_damaged("a table of programs is not shown"):
                found.append(make(self.summary))
        return found

    def _figures(self) -> dict[str, Any] | None:
        with self._unless_damaged("figures are not shown"):
            return tables.figures(self.summary)
        return None

    def _tables(self) -> list[dict[str, Any]]:
        with self._unless_damaged("tables are not shown"):
            return list(tables.every(self.manifest, self.summary))
        return []


def _count(summary: Mapping[str, Any], name: str) -> int:
    events = summary.get("events")
    found = events.get(name) if isinstance(events, dict) else 0
    return found if type(found) is int else 0


def gather(
    directory: HeldDirectory, manifest: Mapping[str, Any], summary: Mapping[str, Any]
) -> dict[str, Any]:
    """Never fails for what is in the files."""
    return _Gathering(directory, manifest, summary).gather()


class _NotedErrors:
    """`with _NotedErrors("logs are not shown", notes):` What is inside may fail for what files
    hold, which is a note on the page then instead of an error. A class, since of a generator type
    checkers do not believe that it holds errors back."""

    def __init__(self, what: str, notes: list[str]) -> None:
        self._what, self._notes = what, notes

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, _UNUSABLE):
            return False
        words = error.message if isinstance(error, RunError) else str(error)
        self._notes.append(f"{self._what}: {words or type(error).__name__}")
        return True
