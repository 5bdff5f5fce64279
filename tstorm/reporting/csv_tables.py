"""A run as tables over time, for spreadsheets, pandas and gnuplot: CSV (RFC 4180, with \\n).

Input: the facts of a run. Output: tables, each with its columns and its rows. Times are plan time
in ns since time 0, but `due_ns`, `applied_ns` and `lag_ns`, which are the run's own, as in
events.jsonl. An empty cell is what is not known. Rows are made one by one: a run's samples may be
larger than memory.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

from compiler.plan.parts.led_links import askers
from compiler.plan.types import end_names, owner_of
from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.probing import probe_record
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import (
    MEASURED_FIGURES,
    OPEN_PROBES,
    PLANNED_FIGURES,
    PROBE_COUNTS,
    SAMPLES,
)
from runtime.rundir.sample_reader import LINKS, PAIRS, SampleReader
from tstorm.output import to_json, visible
from tstorm.reporting.run_facts import RunFacts, named

Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class CsvTable:
    columns: tuple[str, ...]
    rows: Callable[[RunFacts], Iterator[Row]]  # RunError for what is damaged


_EVENT = ("seq", "planned_ns", "due_ns", "applied_ns", "lag_ns", "kind", "target")
_FIGURE = ("name", "instance", "value", "message")
_MEASURED = (*PROBE_COUNTS, OPEN_PROBES, *MEASURED_FIGURES)
_LINK = (
    *("pkts", "bytes", "out_pkts", "out_bytes", "drop_queue", "drop_loss", "drop_down"),
    *("backlog_bytes", "backlog_pkts", "own_backlog_bytes"),
)
_PAIR = (
    *("offered_pkts", "offered_bytes", "delivered_pkts", "delivered_bytes"),
    *("drop_queue", "drop_loss", "drop_down", "drop_route"),
)


def _paths(facts: RunFacts) -> Iterator[Row]:
    for path in facts.paths:
        planned, measured = path["planned"] or {}, path["measured"] or {}
        yield (
            *(path["from"], path["to"], path["epoch"]["from_ns"], path["epoch"]["to_ns"]),
            path["measure"],
            *(planned.get(name) for name in PLANNED_FIGURES),
            *(measured.get(name) for name in _MEASURED),
        )


def _events(facts: RunFacts) -> Iterator[Row]:
    for event in facts.events():
        yield (*(event.get(name) for name in _EVENT), to_json(event.get("args", {})))


def _figures(facts: RunFacts) -> Iterator[Row]:
    for one in facts.summary.get("figures", ()):
        yield tuple(one[name] for name in _FIGURE)


def _probes(facts: RunFacts) -> Iterator[Row]:
    found = probe_record.read(facts.directory)
    if found is None:
        return
    for pair, sent_ns, delay_ns in found.probes:
        src, dst = found.header.pairs[pair]
        yield sent_ns, src, dst, found.header.measure, delay_ns, int(delay_ns is None)
    for pair, sent_ns in found.open:
        src, dst = found.header.pairs[pair]
        yield sent_ns, src, dst, found.header.measure, None, None


def _links(facts: RunFacts) -> Iterator[Row]:
    names = [link.name for link in facts.plan.topology.links]
    return _counters(facts, LINKS, ("link",), names, _LINK)


def _pairs(facts: RunFacts) -> Iterator[Row]:
    names = [node.name for node in facts.plan.topology.nodes]
    return _counters(facts, PAIRS, ("src", "dst"), names, _PAIR)


def _counters(
    facts: RunFacts, kind: str, keys: Sequence[str], names: Sequence[str], values: Sequence[str]
) -> Iterator[Row]:
    """Cumulative counters, a row each time that they had moved."""
    if not facts.directory.has(SAMPLES):
        return
    reader = SampleReader()
    for line in read_lines(facts.directory, SAMPLES):
        if "columns" in line:
            reader.begin(line)
            continue
        at_ns = line.get("at_ns")
        known = at_ns if type(at_ns) is int else None
        for _, row in reader.rows(line, kind):
            ends = named([row[key] for key in keys], names)
            yield (known, *ends, *(row.get(name) for name in values))
        if reader.misshapen:
            raise RunError(f"{SAMPLES} has a row that is not as wide as its columns", REMEDY)


def _contacts(facts: RunFacts) -> Iterator[Row]:
    """When nodes that move were linked, by the plan or as their programs asked. No end: they still
    were at the end."""
    topology = facts.plan.topology
    if asking := askers(topology):
        yield from _granted(facts, {name: node for node, (name, _) in asking.items()})
        return
    moving = {node for one in topology.mobility for node in one.nodes}
    links = [
        number
        for number, link in enumerate(topology.links)
        if not number % 2
        and {owner_of(topology.nodes, end) for end in (link.src, link.dst)} <= moving
    ]
    wanted, since = set(links), dict[int, int]()
    found: list[tuple[int, int, int | None]] = []
    for epoch in facts.plan.epochs:
        for number, state in epoch.links:
            if number in wanted and bool(state.up) != (number in since):
                if state.up:
                    since[number] = epoch.at_ns
                else:
                    found.append((since.pop(number), number, epoch.at_ns))
    found += [(at_ns, number, None) for number, at_ns in since.items()]
    for from_ns, number, to_ns in sorted(found, key=lambda one: one[:2]):
        link = topology.links[number]
        ends = end_names(topology.nodes, link)
        yield (*ends, from_ns, to_ns)


def _granted(facts: RunFacts, nodes: Mapping[str, int]) -> Iterator[Row]:
    since: dict[str, int] = {}
    found: list[tuple[int, str, int | None]] = []
    for event in facts.events():
        if event.get("kind") != "radio":
            continue
        if event["args"].get("up"):
            since[event["target"]] = event["planned_ns"]
        elif event["target"] in since:
            found.append((since.pop(event["target"]), event["target"], event["planned_ns"]))
    found += [(at_ns, target, None) for target, at_ns in since.items()]
    named = facts.plan.topology.nodes
    for from_ns, target, to_ns in sorted(found, key=lambda one: one[:2]):
        a, _, b = target.partition("--")
        ends = (named[nodes[one]].name if one in nodes else one for one in (a, b))
        yield (*ends, from_ns, to_ns)


TABLES: Mapping[str, CsvTable] = {
    "paths": CsvTable(
        (
            *("from", "to", "from_ns", "to_ns", "measure"),
            *(f"planned_{name}" for name in PLANNED_FIGURES),
            *(f"measured_{name}" for name in _MEASURED),
        ),
        _paths,
    ),
    "pairs": CsvTable(("at_ns", "from", "to", *_PAIR), _pairs),
    "links": CsvTable(("at_ns", "link", *_LINK), _links),
    "probes": CsvTable(("sent_ns", "from", "to", "measure", "delay_ns", "lost"), _probes),
    "figures": CsvTable(_FIGURE, _figures),
    "events": CsvTable((*_EVENT, "args"), _events),
    "contacts": CsvTable(("a", "b", "from_ns", "to_ns"), _contacts),
}


def encoded(table: CsvTable, facts: RunFacts) -> Iterator[bytes]:
    """A line each, the names of the columns first. RunError."""
    yield line(table.columns)
    yield from map(line, table.rows(facts))


def line(row: Row) -> bytes:
    """Text is on one line, without what would do something to a terminal."""
    buffer = StringIO()
    cells = [visible(value) if isinstance(value, str) else value for value in row]
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode("utf-8")
