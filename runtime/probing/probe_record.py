"""probes.jsonl: a header, then what became of probes, a line each time that there is news.

`read` is for whoever judges a run; the file is foreign data to it (runtime/rundir/runfiles.py has
its shapes and limits). Format in docs/probes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runtime.errors import RunError
from runtime.json_schema import REMEDY
from runtime.options import RunOptions
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import read_lines
from runtime.rundir.runfiles import HEADER, PROBES, PROBES_FORMAT, PROBES_VERSION

ONE_CLOCK, EACH_CLOCK = "one", "each"
ONE_WAY, ROUND_TRIP = "one-way", "round-trip"
# Beyond what is planned: from then on a probe is lost. At the end of a run, or of an instance,
# nobody waits so long for one that goes one way: what was sent later is open.
LOST_NS, LOST_AT_END_NS = 5_000_000_000, 2_000_000_000
REPORT_NS = 1_000_000_000  # between two reports


@dataclass(frozen=True, slots=True)
class ProbesHeader:
    """What was to be probed.

    clock         one clock has told both times of a probe, or each end has its own
    measure       what a delay is: one-way, or there and back
    pairs         from, to
    interval_ns   the smallest of intervals_ns
    intervals_ns  between two probes of a pair, of the run's own time (`--pace` does not divide it)
    of            how many pairs of instances the run has
    not_probed    pairs that were chosen, and whose links have no room for probes
    large         positions of pairs that have probes of LARGE_BYTES, too
    """

    start_monotonic_ns: int
    clock: str
    measure: str
    pairs: tuple[tuple[str, str], ...]
    interval_ns: int
    intervals_ns: tuple[int, ...]
    of: int
    not_probed: tuple[tuple[str, str], ...] = ()
    large: tuple[int, ...] = ()

    def to_record(self) -> dict[str, Any]:
        return {
            "kind": HEADER,
            "format": PROBES_FORMAT,
            "version": PROBES_VERSION,
            **{name: getattr(self, name) for name in self.__slots__},
        }


class Probe(NamedTuple):
    """`pair` is a position in Header.pairs; times are plan time since time 0; None: lost."""

    pair: int
    sent_at_ns: int
    delay_ns: int | None


class OpenProbe(NamedTuple):
    """It was under way when the run or one of its ends was over: nobody knows whether it was lost.
    See Probe."""

    pair: int
    sent_at_ns: int


def line(
    at_ns: int,
    probes: Sequence[Probe],
    large: Sequence[Probe] = (),
    open_: Sequence[OpenProbe] = (),
    *,
    last: bool = False,
) -> dict[str, Any]:
    """A report of this moment (plan time), as it is written. `last`: with it all was told."""
    more: dict[str, Any] = {"large": _rows(large)} if large else {}
    if open_:
        ordered = sorted(open_, key=lambda one: (one.sent_at_ns, one.pair))
        more["open"] = [list(one) for one in ordered]
    return {"at_ns": at_ns, "probes": _rows(probes), **more, **({"last": True} if last else {})}


def _rows(probes: Sequence[Probe]) -> list[list[int | None]]:
    return [list(one) for one in sorted(probes, key=lambda one: (one.sent_at_ns, one.pair))]


@dataclass(slots=True)
class RecordedProbes:
    """A file of probes: its header, and the probes to go through once, in the order of reports.
    What follows is known when that is done: `open`, and since when lost ones are told nowhere
    (plan time; None: all was told)."""

    header: ProbesHeader
    probes: Iterator[Probe] = field(default_factory=lambda: iter(()))
    open: list[OpenProbe] = field(default_factory=list)
    untold_ns: int | None = None


def why_not(options: RunOptions) -> str:
    """Why a run with these options has no probes; '' if it has some."""
    return "" if options.probes else "the run was to be without probes (--no-probes)"


def read(directory: HeldDirectory) -> RecordedProbes | None:
    """None if there is no such file, or the run ended before it had a header. RunError for what is
    damaged, at the latest when the probe there is come to."""
    if not directory.has(PROBES):
        return None
    lines = read_lines(directory, PROBES)
    first = next(lines, None)
    place = str(directory / PROBES)
    if first is None:
        return None
    if first.get("kind") != HEADER:
        raise RunError(f"{place} has no header", REMEDY)
    found = RecordedProbes(_header(first, place))
    found.probes = _probes(lines, found, place)
    return found


def _header(record: dict[str, Any], place: str) -> ProbesHeader:
    values = {name: record[name] for name in ProbesHeader.__slots__ if name in record}
    for name in ("pairs", "not_probed"):
        values[name] = tuple((src, dst) for src, dst in values.get(name, []))
    for name in ("intervals_ns", "large"):
        values[name] = tuple(values.get(name, []))
    header = ProbesHeader(**values)
    if len(header.intervals_ns) != len(header.pairs):
        raise RunError(f"{place}:1: {len(header.pairs)} pairs, and as many intervals_ns", REMEDY)
    return header


def _probes(lines: Iterator[dict[str, Any]], found: RecordedProbes, place: str) -> Iterator[Probe]:
    last_ns = None
    for number, record in enumerate(lines, 2):
        fault = _fault(record, last_ns, len(found.header.pairs))
        if fault:
            raise RunError(f"{place}:{number}: {fault}", REMEDY)
        last_ns = record["at_ns"]
        told_late_ns = LOST_NS + REPORT_NS  # beside what its way takes
        found.untold_ns = None if record.get("last") else max(last_ns - told_late_ns, 0)
        found.open += (OpenProbe(*one) for one in record.get("open", ()))
        yield from (Probe(*one) for one in record["probes"])


def _fault(record: dict[str, Any], last_ns: int | None, pairs: int) -> str:
    if "probes" not in record:
        return "a second header"
    if last_ns is not None and record["at_ns"] < last_ns:
        return "its report is older than the one before"
    keys = [(sent_at_ns, pair) for pair, sent_at_ns, _ in record["probes"]]
    if keys != sorted(keys):
        return "its probes are not in the order in which they were sent"
    keys += [(sent_at_ns, pair) for pair, sent_at_ns in record.get("open", ())]
    if any(pair >= pairs for _, pair in keys):
        return "it has a probe of a pair that the header does not name"
    return ""
