"""Compares all that two runs in virtual time have left: they are the same to the last byte, but for
what EXPECTED lists.

What happened at a known moment comes first, by that moment: events, then counters and digests of
links, packets. Then what programs wrote (logs, files), what the run says of itself, and everything
else in the directories. Of each the first difference is told, and how much else differs there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, BinaryIO

from compiler.plan.reader import Plan
from runtime.errors import RunError
from runtime.results import moments
from runtime.results.filetree import (
    FileKind,
    RunDifference,
    Tally,
    first_difference,
    json_difference,
    tree_differences,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import (
    CERTIFICATE,
    DRIVER_LOG,
    EVENTS,
    INSTANCES,
    LOGS,
    MANIFEST,
    PACKETS,
    PLAN,
    REPORT,
    SAMPLES,
    SUMMARY,
)

BYTES_SHOWN = 16

# What differs between two runs that are the same: docs/run.md has this table, with the reasons.
EXPECTED: Mapping[str, frozenset[str]] = {
    MANIFEST: frozenset(
        {"run_id", "started", "setup_ns", "machine", "start_directory", "source_directory"}
    ),
    SUMMARY: frozenset(),
}
# Made of what is compared, and of what is expected to differ.
DERIVED = frozenset({REPORT, CERTIFICATE})
_TREES = {LOGS: "log", INSTANCES: "file", PLAN: "file"}
_JSON = {MANIFEST: RunDirectory.manifest, SUMMARY: RunDirectory.summary}


def read(run: RunDirectory) -> None:
    """All of a run that must have a shape to be compared. RunError."""
    for name in (EVENTS, SAMPLES):
        if run.has(name):
            for _ in read_lines(run, name):
                pass
    for document in _JSON.values():
        document(run)


def differ(
    first: RunDirectory, second: RunDirectory, plan: Plan
) -> tuple[list[RunDifference], str]:
    """All differences, the earliest first, and what was compared, in words. Empty: the runs were
    the same.

    `plan`: of both. RunError if something in the directories is damaged.
    """
    tally = Tally()
    found = [*moments.of_events(first, second, tally)]
    found += moments.of_samples(first, second, plan.topology, tally)
    found += packet_differences(first, second, tally)
    found.sort(key=lambda one: -1 if one.at_ns is None else one.at_ns)
    for name, what in _TREES.items():
        found += tree_differences(first, second, name, FileKind(what, tally))
    for name in _JSON:
        found += _document(first, second, name, tally)
    found += _the_rest(first, second, tally)
    return found, tally.words()


def packet_differences(
    first: RunDirectory, second: RunDirectory, tally: Tally
) -> Iterator[RunDifference]:
    """The first packet that differs in each file of packets. RunError."""
    yield from tree_differences(first, second, PACKETS, _packets(first, tally))


def _packets(run: RunDirectory, tally: Tally) -> FileKind:
    """Files of packets are told by their first packet that differs."""
    start = run.manifest().get("start_unix_ns")
    start_unix_ns = start if type(start) is int else 0

    def teller(first: BinaryIO, second: BinaryIO, path: str) -> RunDifference | None:
        return first_packet(first, second, path, start_unix_ns)

    return FileKind("file of packets", tally, teller)


def _document(
    first: RunDirectory, second: RunDirectory, name: str, tally: Tally
) -> Iterator[RunDifference]:
    values: list[Mapping[str, Any]] = []
    for directory in (first, second):
        whole = _JSON[name](directory)
        values.append({key: whole[key] for key in whole.keys() - EXPECTED[name]})
    tally.add(name)
    difference = json_difference(values[0], values[1])
    if difference is not None:
        where, mine, theirs, more = difference
        yield RunDifference(name.removesuffix(".json"), where, None, mine, theirs, more)


def _the_rest(first: HeldDirectory, second: HeldDirectory, tally: Tally) -> Iterator[RunDifference]:
    """Of files that no rule names: whatever is there in one is there in the other."""
    known = {EVENTS, SAMPLES, PACKETS, *_TREES, *EXPECTED, *DERIVED}
    for name in sorted({*first.names(), *second.names()} - known):
        what = "log" if name == DRIVER_LOG else "file"
        yield from tree_differences(first, second, name, FileKind(what, tally))


def first_packet(
    first: BinaryIO, second: BinaryIO, path: str, start_unix_ns: int
) -> RunDifference | None:
    """The first packet that differs; None where the files do not tell (one is no such file)."""
    try:
        found = first_difference(zip_longest(read_packets(first, path), read_packets(second, path)))
    except RunError:
        return None
    if found is None:
        return None
    mine, theirs, more = found
    one = min((packet for packet in (mine, theirs) if packet), key=lambda packet: packet.at_ns)
    mine_said = _said(mine, theirs, start_unix_ns)
    theirs_said = _said(theirs, mine, start_unix_ns)
    return RunDifference(
        "packet", one.interface, one.at_ns - start_unix_ns, mine_said, theirs_said, more
    )


def _said(packet: Packet | None, other: Packet | None, start_unix_ns: int) -> str:
    return "" if packet is None else " ".join(_words(packet, other, start_unix_ns))


def _words(packet: Packet, other: Packet | None, start_unix_ns: int) -> Iterator[str]:
    yield f"{(packet.at_ns - start_unix_ns) / 1e9:.9f} s {packet.interface},"
    yield f"{len(packet.data)} bytes"
    if packet.comment:
        yield f"({packet.comment})"
    if packet.missing:
        yield f"({packet.missing} missing before it)"
    if other is not None and packet.data != other.data:
        shorter = min(len(packet.data), len(other.data))
        at = next((i for i in range(shorter) if packet.data[i] != other.data[i]), shorter)
        yield f"from byte {at} on: {packet.data[at : at + BYTES_SHOWN].hex(' ') or 'nothing'}"
