"""A run as a trace for ui.perfetto.dev and chrome://tracing.

Source: Trace Event Format (Chromium, "JSON Object Format"). The network is a process, and each
instance is one; threads of them are their incarnations, outages, events, and what they sent and
received. A packet is a slice at its sender, one where it arrived or was lost, and an arrow between.
Times are microseconds of the run's own time since its start, with three decimals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runtime.options import decode
from runtime.results.sent_packets import SentPacket, recorded_packets, thinned
from runtime.schedule import PlanClock
from tstorm.output import to_json
from tstorm.reporting.run_facts import RunFacts
from tstorm.reporting.run_spans import EXPECTATION, OUTAGE, PHASE, RunStory, event_words, story

MOST_PACKETS = 50_000
_NETWORK = 1  # pid; the n-th node is n + 2
_SPANS, _OUTAGE, _EVENTS, _SENT, _RECEIVED, _LOST = range(1, 7)  # tid
_THREADS = {
    _SPANS: "incarnations",
    _OUTAGE: "outages",
    _EVENTS: "events",
    _SENT: "sent",
    _RECEIVED: "received",
}
_OF_NETWORK = {_SPANS: "phases", _OUTAGE: "outages", _EVENTS: "events", _LOST: "lost packets"}
_LEAST_US = 0.001  # of a slice that an arrow can hold on to


def render(facts: RunFacts) -> str:
    """RunError for what is damaged."""
    return to_json(_Trace(facts, story(facts)).document()) + "\n"


class _Trace:
    def __init__(self, facts: RunFacts, told: RunStory) -> None:
        self._facts, self._told = facts, told
        self._nodes = facts.plan.topology.nodes
        self._pids = {
            node.name: number + 2 for number, node in enumerate(self._nodes) if node.is_instance
        }
        options = decode(facts.manifest["options"], "options")
        self._clock = PlanClock(options.start_at_ns, options.pace)
        self._notes = list(told.notes)

    def document(self) -> dict[str, Any]:
        events = [*self._names(), *self._spans(), *self._events(), *self._packets()]
        manifest = self._facts.manifest
        told = {key: str(manifest[key]) for key in ("run_id", "experiment", "plan_digest", "seed")}
        told["verdict"] = str(self._facts.verdict.get("state", "unknown"))
        told["state"] = self._facts.state
        return {
            "displayTimeUnit": "ns",
            "otherData": {**told, "notes": "; ".join(self._notes)},
            "traceEvents": events,
        }

    def _names(self) -> Iterator[dict[str, Any]]:
        network = {"network": _NETWORK}
        for order, (name, pid) in enumerate({**network, **self._pids}.items()):
            yield _named("process_name", pid, 0, {"name": name})
            yield _named("process_sort_index", pid, 0, {"sort_index": order})
            threads = _OF_NETWORK if pid == _NETWORK else _THREADS
            for tid, words in threads.items():
                yield _named("thread_name", pid, tid, {"name": words})
                yield _named("thread_sort_index", pid, tid, {"sort_index": tid})

    def _spans(self) -> Iterator[dict[str, Any]]:
        for span in self._told.spans:
            pid = self._pids.get(span.target, _NETWORK)
            more = {**span.more, **({"failed": span.failed} if span.failed else {})}
            if span.kind == EXPECTATION:
                yield _instant(span.name, span.kind, pid, span.begin_ns, more, "g")
                continue
            if (
                span.kind == OUTAGE
            ):  # of one target they may overlap, and slices of a thread must not
                yield from _async(span.name, span.target, pid, span.begin_ns, span.end_ns)
                continue
            tid = _SPANS if span.kind in (PHASE, "incarnation") else _OUTAGE
            yield _slice(span.name, span.kind, pid, tid, span.begin_ns, span.end_ns, more)

    def _events(self) -> Iterator[dict[str, Any]]:
        for event in self._told.events:
            target = str(event.get("target", ""))
            pid = self._pids.get(target, _NETWORK)
            more: dict[str, Any] = {"details": event_words(event), "target": target}
            for key in ("seq", "planned_ns", "lag_ns", "line"):
                if type(event.get(key)) is int:
                    more[key] = event[key]
            name = str(event.get("kind")) + ("" if pid != _NETWORK else f" {target}".rstrip())
            yield _instant(name, "event", pid, event["applied_ns"], more, "t")

    def _packets(self) -> Iterator[dict[str, Any]]:
        start: object = self._facts.manifest.get("start_unix_ns")
        found = recorded_packets(
            self._facts.directory, self._facts.plan, self._clock, start if type(start) is int else 0
        )
        if found is None:
            return
        self._notes += found.told()
        end_ns = max((one.end_ns for one in found.packets), default=0)
        kept, left_out = thinned(found.packets, MOST_PACKETS, self._clock.start_at_ns, end_ns, 500)
        if any(left_out):
            self._notes.append(f"{sum(left_out)} of {len(found.packets)} packets are left out")
        for number, packet in enumerate(kept, 1):
            yield from self._packet(number, packet)

    def _packet(self, number: int, packet: SentPacket) -> Iterator[dict[str, Any]]:
        names = self._nodes
        to = names[packet.dst].name if packet.dst >= 0 else "a group"
        link = self._facts.plan.topology.links[packet.link].name
        said = {"from": names[packet.src].name, "to": to, "bytes": packet.size}
        if packet.cause:
            said |= {"lost": packet.cause, "link": link}
        sent, end = (self._clock.due(at_ns) for at_ns in (packet.sent_ns, packet.end_ns))
        there = (_NETWORK, _LOST) if packet.cause else (packet.dst + 2, _RECEIVED)
        words = f"{packet.words}, lost" if packet.cause else packet.words
        yield _slice(packet.words, "packet", packet.src + 2, _SENT, sent, sent, said)
        yield _slice(words, "packet", *there, end, end, said)
        arrow = {"cat": "packet", "name": "packet", "id": number}
        yield {**arrow, "ph": "s", "pid": packet.src + 2, "tid": _SENT, "ts": _us(sent)}
        yield {**arrow, "ph": "f", "bp": "e", "pid": there[0], "tid": there[1], "ts": _us(end)}


def _us(at_ns: int) -> float:
    return at_ns / 1000


def _named(what: str, pid: int, tid: int, args: Mapping[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}


def _slice(
    name: str, kind: str, pid: int, tid: int, begin: int, end: int, args: Mapping[str, Any]
) -> dict[str, Any]:
    place = {"pid": pid, "tid": tid, "ts": _us(begin), "dur": max(_us(end - begin), _LEAST_US)}
    return {"ph": "X", "name": name, "cat": kind, **place, "args": args}


def _async(name: str, target: str, pid: int, begin: int, end: int) -> Sequence[dict[str, Any]]:
    own = {"name": name, "cat": "outage", "id": f"{target} {begin} {name}", "pid": pid}
    return [
        {**own, "ph": "b", "tid": _OUTAGE, "ts": _us(begin), "args": {"target": target}},
        {**own, "ph": "e", "tid": _OUTAGE, "ts": _us(end), "args": {}},
    ]


def _instant(
    name: str, kind: str, pid: int, at_ns: int, args: Mapping[str, Any], scope: str
) -> dict[str, Any]:
    place = {"pid": pid, "tid": _EVENTS, "ts": _us(at_ns)}
    return {"ph": "i", "name": name, "cat": kind, **place, "s": scope, "args": args}
