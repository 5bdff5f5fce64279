"""The series of a run as OpenMetrics with times: for Prometheus (`promtool tsdb
create-blocks-from openmetrics`), and whatever else reads it.

A counter has a sample in each second in which it moved: what it was at the second's last reading.
So nothing of it is lost, and rates over less than a second are not to be had. Times are the wall
clock's at the start of the run and what has passed since then by the run's own clock; where the run
had virtual time, that is what passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from runtime.options import decode
from runtime.probing import probe_record
from runtime.rundir.sample_reader import LINKS, PAIRS, Key, read_samples
from runtime.schedule import PlanClock
from tstorm.reporting.run_facts import FINISHED, RUNNING, RunFacts, named

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

    from compiler.plan.reader import Plan
    from runtime.page.growing_page import GrowingPage

_SECOND = 10**9
_CAUSES = {"drop_loss": "loss", "drop_queue": "queue", "drop_down": "down", "drop_route": "route"}
_LABELS = {LINKS: ("link",), PAIRS: ("source", "destination")}
_BYTES = {  # column: name and what it is
    LINKS: {
        "bytes": ("tstorm_link_entered_bytes", "Bytes of packets that entered a link."),
        "out_bytes": ("tstorm_link_left_bytes", "Bytes of packets that left it at its far end."),
    },
    PAIRS: {
        "offered_bytes": ("tstorm_pair_sent_bytes", "Bytes that one instance sent to another."),
        "delivered_bytes": ("tstorm_pair_received_bytes", "Bytes of these that arrived."),
    },
}
_DROPPED = {
    LINKS: ("tstorm_link_dropped_packets", "Packets that a link dropped, by cause."),
    PAIRS: ("tstorm_pair_dropped_packets", "Packets of a pair that were dropped, by cause."),
}
_WAITING = ("tstorm_link_waiting_bytes", "Bytes that wait in a link.")
Labels = tuple[str, ...]
Series = dict[Labels, dict[int, Mapping[str, int]]]  # by second: the last reading of each counter


def render(facts: RunFacts) -> str:
    """RunError for what is damaged."""
    return _text(_Recorded(facts))


def live_text(page: GrowingPage) -> str:
    """The last value of each series, without times, as who scrapes a run that goes on wants it."""
    return _text(_GoingOn(page))


def _text(source: MetricsSource) -> str:
    from prometheus_client import CollectorRegistry
    from prometheus_client.openmetrics.exposition import generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Run(source))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


@dataclass(frozen=True, slots=True)
class ProbeSeries:
    """By second, at which moment what was known: the last delay, how many were lost so far, and of
    how many nobody knows."""

    measure: str
    delays: dict[Labels, dict[int, tuple[int, int]]]
    lost: dict[Labels, dict[int, tuple[int, int]]]
    open: dict[Labels, dict[int, tuple[int, int]]]


class MetricsSource(Protocol):
    """`start_ns`: of the wall clock, at time 0; None: samples get no times."""

    start_ns: int | None

    def info(self) -> dict[str, str]: ...
    def series(self) -> dict[str, Series]: ...
    def events(self) -> dict[str, list[tuple[int, int]]]: ...
    def probes(self) -> ProbeSeries | None: ...


class _Recorded:
    """A run directory, at whatever moment."""

    def __init__(self, facts: RunFacts) -> None:
        self._facts = facts
        start: object = facts.manifest.get("start_unix_ns")
        self.start_ns: int | None = start if type(start) is int else 0
        options = decode(facts.manifest["options"], "options")
        self._clock = PlanClock(options.start_at_ns, options.pace)

    def info(self) -> dict[str, str]:
        facts = self._facts
        outcome = str(facts.summary.get("outcome", "")) if facts.state == FINISHED else facts.state
        return _named_run(facts.manifest, outcome, str(facts.verdict.get("state", "")))

    def series(self) -> dict[str, Series]:
        names = _names(self._facts.plan)
        found: dict[str, Series] = {kind: {} for kind in names}
        for sample in read_samples(self._facts.directory):
            second = sample.until_ns // _SECOND
            for kind, series in found.items():
                for key, row in sample.rows(kind):
                    labels = _labels(key, names[kind])
                    series.setdefault(labels, {})[second] = {**row, "": sample.until_ns}
        return found

    def events(self) -> dict[str, list[tuple[int, int]]]:
        times: dict[str, list[int]] = {}
        for event in self._facts.events():
            if "seq" in event and event.get("applied_ns") is not None:
                times.setdefault(str(event["kind"]), []).append(event["applied_ns"])
        return {kind: list(enumerate(sorted(found), 1)) for kind, found in times.items()}

    def probes(self) -> ProbeSeries | None:
        """The last one of each second that came back, how many did not, and how many are open."""
        found = probe_record.read(self._facts.directory)
        if found is None:
            return None
        told = ProbeSeries(found.header.measure, {}, {}, {})
        lost, open_ = Counter[Labels](), Counter[Labels]()
        for pair, sent_ns, delay_ns in found.probes:
            labels = tuple(found.header.pairs[pair])
            since_ns = self._clock.due(sent_ns)
            second = since_ns // _SECOND
            if delay_ns is not None:
                told.delays.setdefault(labels, {})[second] = (since_ns, delay_ns)
            else:
                lost[labels] += 1
                told.lost.setdefault(labels, {})[second] = (since_ns, lost[labels])
        for pair, sent_ns in sorted(found.open, key=lambda one: one.sent_at_ns):
            labels, since_ns = tuple(found.header.pairs[pair]), self._clock.due(sent_ns)
            open_[labels] += 1
            told.open.setdefault(labels, {})[since_ns // _SECOND] = (since_ns, open_[labels])
        return told


class _GoingOn:
    """What the page of a run knows of this moment."""

    start_ns: int | None = None

    def __init__(self, page: GrowingPage) -> None:
        self._page = page

    def info(self) -> dict[str, str]:
        manifest = self._page.manifest
        if not self._page.ended:
            return _named_run(manifest, str(manifest.get("outcome", RUNNING)), "")
        whole = self._page.whole()
        return _named_run(manifest, whole["run"]["outcome"], whole["verdict"]["state"])

    def series(self) -> dict[str, Series]:
        names = _names(self._page.plan)
        return {
            kind: {
                _labels(key, names[kind]): {0: {**row, "": 0}}
                for key, row in self._page.series.counters(kind).items()
            }
            for kind in names
        }

    def events(self) -> dict[str, list[tuple[int, int]]]:
        counts = self._page.happened.planned_by_kind()
        return {kind: [(count, 0)] for kind, count in counts.items()}

    def probes(self) -> ProbeSeries | None:
        found = self._page.series.probes
        if found is None:
            return None
        delays = zip(found.pairs, found.last_ns, strict=True)
        return ProbeSeries(
            found.measure,
            {pair: {0: (0, delay_ns)} for pair, delay_ns in delays if delay_ns is not None},
            {pair: {0: (0, lost)} for pair, lost in zip(found.pairs, found.lost, strict=True)},
            {pair: {0: (0, open_)} for pair, open_ in found.open_counts() if open_},
        )


def _named_run(manifest: Mapping[str, Any], outcome: str, verdict: str) -> dict[str, str]:
    return {
        "run": str(manifest["run_id"]),
        "experiment": str(manifest["experiment"]),
        "plan": str(manifest["plan_digest"]),
        "seed": str(manifest["seed"]),
        "outcome": outcome,
        "verdict": verdict,
    }


def _names(plan: Plan) -> dict[str, list[str]]:
    topology = plan.topology
    return {
        LINKS: [link.name for link in topology.links],
        PAIRS: [node.name for node in topology.nodes],
    }


def _labels(key: Key, names: Sequence[str]) -> Labels:
    return named(key if isinstance(key, tuple) else (key,), names)


class _Run:
    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    def describe(self) -> list[Metric]:
        return []  # a registry would have all of it made once more for the names

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import InfoMetricFamily

        text = "The run, and what came of it."
        yield InfoMetricFamily("tstorm_run", text, self._source.info())
        for kind, series in self._source.series().items():
            yield from self._counters(kind, series)
        yield from self._events()
        yield from self._probes()

    def _time(self, since_start_ns: int) -> float | None:
        start_ns = self._source.start_ns
        return None if start_ns is None else (start_ns + since_start_ns) / _SECOND

    def _counters(self, kind: str, series: Series) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        labels = _LABELS[kind]
        for column, (name, text) in _BYTES[kind].items():
            family = CounterMetricFamily(name, text, labels=labels, unit="bytes")
            self._add(family, series, {column: ()})
            yield family
        name, text = _DROPPED[kind]
        family = CounterMetricFamily(name, text, labels=(*labels, "cause"), unit="packets")
        self._add(family, series, {column: (cause,) for column, cause in _CAUSES.items()})
        yield family
        if kind == LINKS:
            name, text = _WAITING
            gauge = GaugeMetricFamily(name, text, labels=labels, unit="bytes")
            self._add(gauge, series, {"backlog_bytes": ()})
            yield gauge

    def _add(
        self,
        family: CounterMetricFamily | GaugeMetricFamily,
        series: Series,
        columns: Mapping[str, Labels],
    ) -> None:
        """Samples of one series follow each other; those of a value that stays are left out."""
        for labels, seconds in sorted(series.items()):
            for column, more in columns.items():
                before = None
                for _, row in sorted(seconds.items()):
                    value = row.get(column)
                    if value is not None and value != before:
                        before = value
                        at = self._time(row[""])
                        family.add_metric((*labels, *more), value, timestamp=at)

    def _events(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        text = "Events that were carried out, by kind."
        family = CounterMetricFamily("tstorm_events", text, labels=("kind",))
        for kind, found in sorted(self._source.events().items()):
            for number, at_ns in found:
                family.add_metric((kind,), number, timestamp=self._time(at_ns))
        yield family

    def _probes(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        found = self._source.probes()
        if found is None:
            return
        text = f"Delay ({found.measure}) of the last probe of each second that was not lost."
        ends = _LABELS[PAIRS]
        gauge = GaugeMetricFamily("tstorm_probe_delay_seconds", text, labels=ends, unit="seconds")
        for labels, seconds in sorted(found.delays.items()):
            for _, (at_ns, delay_ns) in sorted(seconds.items()):
                gauge.add_metric(labels, delay_ns / _SECOND, timestamp=self._time(at_ns))
        yield gauge
        for name, text, series in (
            ("tstorm_probes_lost", "Probes that were lost.", found.lost),
            ("tstorm_probes_open", "Probes of which nobody knows whether they were.", found.open),
        ):
            counter = CounterMetricFamily(name, text, labels=ends)
            for labels, seconds in sorted(series.items()):
                for _, (at_ns, number) in sorted(seconds.items()):
                    counter.add_metric(labels, number, timestamp=self._time(at_ns))
            yield counter
