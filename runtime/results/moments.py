"""Where the records of two runs part: events and samples, line by line.

The lines of both files are taken in step. At the first pair of lines that differ both are read for
what they say; of the others that follow it is only counted how many differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from typing import Any

from compiler.plan.types import Topology
from runtime.results.filetree import RunDifference, Tally, first_difference, shortened
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import EVENTS, HEADER, SAMPLES

Record = Mapping[str, Any]


def _first_pair(
    first: HeldDirectory, second: HeldDirectory, name: str, tally: Tally
) -> tuple[Record | None, Record | None, int, Record | None] | None:
    """The first two lines that differ, how many pairs of lines after them do, and the header of the
    first file; None if both files are the same."""
    pairs = _counted(first, second, name, tally)
    head = next(pairs, None)
    found = None if head is None else first_difference(chain([head], pairs))
    return None if head is None or found is None else (*found, head[0])


def _counted(
    first: HeldDirectory, second: HeldDirectory, name: str, tally: Tally
) -> Iterator[tuple[Record | None, Record | None]]:
    for pair in zip_longest(_lines(first, name), _lines(second, name)):
        tally.add(name)
        yield pair


def _lines(directory: HeldDirectory, name: str) -> Iterator[Record]:
    return read_lines(directory, name) if directory.has(name) else iter(())


def of_events(first: HeldDirectory, second: HeldDirectory, tally: Tally) -> Iterator[RunDifference]:
    """At most one difference. RunError."""
    found = _first_pair(first, second, EVENTS, tally)
    if found is None:
        return
    mine, theirs, more, _ = found
    said = _both(mine, theirs)
    one = mine or theirs or {}
    subject = _event_name(one)
    if mine and theirs and _event_name(theirs) != subject:
        said = (_event_name(mine), _event_name(theirs))
    yield RunDifference("event", subject, _moment(mine, theirs, "applied_ns"), *said, more)


def _event_name(record: Record) -> str:
    kind, target = str(record.get("kind", "")), str(record.get("target", ""))
    return shortened("the start" if kind == HEADER else f"{kind} {target}".strip())


def _moment(mine: Record | None, theirs: Record | None, key: str) -> int | None:
    """When the earlier of them happened."""
    told = [one.get(key) for one in (mine, theirs) if one]
    return min((at for at in told if type(at) is int), default=None)


def _both(mine: Record | None, theirs: Record | None) -> tuple[str, str]:
    """What each has that the other has not."""
    return _only(mine, theirs), _only(theirs, mine)


def _only(record: Record | None, other: Record | None) -> str:
    if record is None:
        return ""
    other = other or {}
    words = [
        f"{key}={_text(value)}"
        for key, value in sorted(record.items())
        if key not in other or other[key] != value
    ]
    return shortened(" ".join(words) or "as the other")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def of_samples(
    first: HeldDirectory, second: HeldDirectory, topology: Topology, tally: Tally
) -> Iterator[RunDifference]:
    """One difference for each link or pair that differs in the first samples which differ."""
    found = _first_pair(first, second, SAMPLES, tally)
    if found is None:
        return
    mine, theirs, more, header = found
    at_ns = _moment(mine, theirs, "elapsed_ns")
    columns = (header or {}).get("columns", {})
    names = {
        "link": [link.name for link in topology.links],
        "pair": [node.name for node in topology.nodes],
    }
    figures = [_figures(record, columns) for record in (mine or {}, theirs or {})]
    keys = sorted(figures[0].keys() | figures[1].keys())
    parted = [key for key in keys if figures[0].get(key) != figures[1].get(key)]
    for key in parted:
        what, numbers = key
        both = _both(figures[0].get(key), figures[1].get(key))
        yield RunDifference(what, _name(numbers, names[what]), at_ns, *both, more)
    if not parted:
        yield RunDifference("sample", "its time or columns", at_ns, *_both(mine, theirs), more)


def _figures(record: Record, columns: Mapping[str, list[str]]) -> dict[Any, dict[str, object]]:
    """What a sample says of each link and pair, by the names of the columns."""
    found: dict[Any, dict[str, object]] = {}
    for key, what, ends in (("links", "link", 1), ("pairs", "pair", 2)):
        for row in record.get(key, []):
            named = dict(zip(columns.get(key, [])[ends:], row[ends:], strict=False))
            found.setdefault((what, tuple(row[:ends])), {}).update(named)
    for row in record.get("digests", []):
        what = "link" if len(row) == 2 else "pair"
        found.setdefault((what, tuple(row[:-1])), {})["digest"] = row[-1] if row else ""
    return found


def _name(numbers: tuple[int, ...], names: list[str]) -> str:
    """A number that is none of the plan's stays a number: samples are foreign data."""
    return " -> ".join(
        names[number] if 0 <= number < len(names) else str(number) for number in numbers
    )
