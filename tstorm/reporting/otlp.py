"""A run as spans of OpenTelemetry, in the JSON that OTLP/HTTP takes (one TracesData).

Source: opentelemetry-proto, trace.proto; of the mapping of Protocol Buffers to JSON: identifiers
are hexadecimal, 64-bit numbers are texts, enumerations numbers. Identifiers come from the run's
seed, plan and name, so the same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from runtime.options import COMPLETED
from tstorm.output import to_json
from tstorm.reporting.run_facts import RunFacts
from tstorm.reporting.run_spans import RunSpan, RunStory, event_words, story

_INTERNAL, _OK, _ERROR = 1, 1, 2  # span kind, status codes


def render(facts: RunFacts) -> str:
    """RunError for what is damaged."""
    return to_json({"resourceSpans": _Spans(facts, story(facts)).resources()}) + "\n"


class _Spans:
    def __init__(self, facts: RunFacts, told: RunStory) -> None:
        self._facts, self._told = facts, told
        manifest = facts.manifest
        start: object = manifest.get("start_unix_ns")
        self._start_ns = start if type(start) is int else 0
        own = (str(manifest[key]) for key in ("seed", "plan_digest", "run_id"))
        self._key = "\0".join(own).encode("utf-8", "backslashreplace")
        self._root = self._id("run", 8)

    def _id(self, what: str, size: int) -> str:
        digest = sha256(self._key + b"\0" + what.encode("utf-8", "backslashreplace")).digest()
        return digest[:size].hex()

    def resources(self) -> list[dict[str, Any]]:
        """The run and its network first, then instances in the plan's order."""
        nodes = self._facts.plan.topology.nodes
        services = self._facts.plan.topology.services
        of_instance: dict[str, list[dict[str, Any]]] = {
            node.name: [] for node in nodes if node.is_instance
        }
        of_run = [self._run()]
        for number, span in enumerate(self._told.spans):
            of_instance.get(span.target, of_run).append(self._span(number, span))
        experiment = str(self._facts.manifest["experiment"])
        found = [_resource({"service.name": experiment, **self._said()}, of_run)]
        for node in nodes:
            if node.is_instance and of_instance[node.name]:
                name = {
                    "service.name": services[node.service].name,
                    "service.instance.id": node.name,
                    "service.namespace": experiment,
                }
                found.append(_resource(name, of_instance[node.name]))
        return found

    def _said(self) -> dict[str, str | int]:
        manifest = self._facts.manifest
        return {
            "tstorm.run": str(manifest["run_id"]),
            "tstorm.seed": str(manifest["seed"]),
            "tstorm.plan": str(manifest["plan_digest"]),
            "tstorm.verdict": str(self._facts.verdict.get("state", "unknown")),
            "tstorm.state": self._facts.state,
        }

    def _run(self) -> dict[str, Any]:
        failures = self._facts.result["failures"]
        outcome = str(self._facts.summary["outcome"])
        why = "; ".join(str(one["words"]) for one in failures if one.get("counts", 1))
        if not why and outcome != COMPLETED:
            why = outcome
        span = RunSpan("run", str(self._facts.manifest["run_id"]), "", 0, self._told.end_ns, why)
        events = [
            {
                "timeUnixNano": self._time(event["applied_ns"]),
                "name": f"{event.get('kind')} {event.get('target', '')}".rstrip(),
                "attributes": _attributes(_of_event(event)),
            }
            for event in self._told.events
        ]
        notes = {"tstorm.notes": "; ".join(self._told.notes)} if self._told.notes else {}
        return {**self._one(self._root, span, notes), "events": events}

    def _span(self, number: int, span: RunSpan) -> dict[str, Any]:
        more = {f"tstorm.{key}": value for key, value in span.more.items()}
        if span.target:
            more["tstorm.target"] = span.target
        one = self._one(self._id(f"span {number}", 8), span, more)
        return {**one, "parentSpanId": self._root}

    def _one(self, own: str, span: RunSpan, more: Mapping[str, str | int]) -> dict[str, Any]:
        status = {"code": _ERROR, "message": span.failed} if span.failed else {"code": _OK}
        return {
            "traceId": self._id("trace", 16),
            "spanId": own,
            "name": span.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": self._time(span.begin_ns),
            "endTimeUnixNano": self._time(max(span.end_ns, span.begin_ns)),
            "attributes": _attributes({"tstorm.kind": span.kind, **more}),
            "status": status,
        }

    def _time(self, since_start_ns: int) -> str:
        return str(max(self._start_ns + since_start_ns, 0))


def _of_event(event: Mapping[str, Any]) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for key in ("seq", "planned_ns", "lag_ns", "line"):
        if type(event.get(key)) is int:
            found[f"tstorm.{key}"] = event[key]
    words = event_words(event)
    return {**found, "tstorm.details": words} if words else found


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(one)} if type(one) is int else {"stringValue": one}}
        for key, one in sorted(values.items())
    ]


def _resource(said: Mapping[str, str | int], spans: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "resource": {"attributes": _attributes(said)},
        "scopeSpans": [{"scope": {"name": "thunderstorm"}, "spans": spans}],
    }
