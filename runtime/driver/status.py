"""The state of a running driver in words and numbers: for progress records and for `inspect`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Any

from runtime.backend.base import Counters
from runtime.backend.instance import FAILED_TO_START, Instance
from runtime.datapath import sampler
from runtime.driver.driver_messages import DriverConfig
from runtime.driver.progress import RUNNING, NextEvent, Progress, ServiceState
from runtime.driver.timelinerunner import TimelineRunner

NEXT_EVENTS = 10
_OF_PROGRESS = (
    "run_id",
    "directory",
    "at_ns",
    "end_ns",
    "elapsed_ns",
    "applied",
    "total",
    "held_ns",
)


def services(timeline_runner: TimelineRunner) -> tuple[ServiceState, ...]:
    """Counted over all declared instances; those that never join are down."""
    topology = timeline_runner.plan.topology
    shown = ("up", "cut", "down", "done", "failed", "not_started")  # in the order of ServiceState
    counts = [dict.fromkeys(shown, 0) for _ in topology.services]
    for node in topology.nodes:
        if not node.is_instance:
            continue
        instance = timeline_runner.instances.get(node.name)
        if instance is None:
            counts[node.service]["down"] += 1
            continue
        count = counts[node.service]
        not_started = instance.shown_state == FAILED_TO_START
        count["not_started" if not_started else instance.state] += 1
        if (instance.ended or instance.killed) and instance.state != "down":
            count["done" if instance.ended_well else "failed"] += 1
    return tuple(
        ServiceState(service.name, *count.values())
        for service, count in zip(topology.services, counts, strict=True)
    )


def upcoming(timeline_runner: TimelineRunner, count: int) -> list[NextEvent]:
    events = (
        NextEvent(event.at_ns, event.kind, event.target)
        for step in timeline_runner.schedule.steps[timeline_runner.next_step :]
        for event in step.events
    )
    return list(islice(events, count))


def progress(
    config: DriverConfig,
    timeline_runner: TimelineRunner,
    phase: str,
    message: str = "",
    *,
    warning: bool = False,
) -> Progress:
    elapsed = max(timeline_runner.elapsed(), 0) if timeline_runner.t0_ns else 0
    schedule = timeline_runner.schedule
    at = min(schedule.clock.plan_time(elapsed), schedule.end_ns)
    following = upcoming(timeline_runner, 1) if phase == RUNNING else []
    return Progress(
        phase=phase,
        run_id=config.run_id,
        directory=config.directory,
        at_ns=at,
        end_ns=schedule.end_ns,
        elapsed_ns=elapsed,
        applied=timeline_runner.applied,
        total=schedule.total,
        next_event=following[0] if following else None,
        services=services(timeline_runner),
        message=message,
        warning=warning,
        held_ns=timeline_runner.held_ns,
    )


def _instance(instance: Instance) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": instance.node.name,
        "state": instance.shown_state,
        "ipv4": instance.node.ipv4,
        "ipv6": instance.node.ipv6,
        "program": list(instance.argv),
        "started": instance.started,
        "paused": instance.paused,
    }
    if instance.start_error:
        found["start_error"] = instance.start_error
    if instance.ended:
        found["exit_status"] = instance.ended.status
        found["exit_signal"] = instance.ended.signal
    return found


def _named(rows: list[list[int]], columns: tuple[str, ...], names: list[str], keys: int) -> Any:
    """Counter rows as objects; the first `keys` columns are numbers of `names`."""
    found = []
    for row in rows:
        record: dict[str, Any] = dict(zip(columns, row, strict=True))
        for column in columns[:keys]:
            record[column] = names[record[column]]
        found.append(record)
    return found


def state(
    config: DriverConfig, timeline_runner: TimelineRunner, counters: Counters | None
) -> dict[str, Any]:
    """Everything `tstorm inspect` shows; names instead of numbers."""
    topology = timeline_runner.plan.topology
    record = asdict(progress(config, timeline_runner, RUNNING))
    links = sampler.table(counters.links) if counters else []
    pairs = sampler.table(counters.pairs) if counters else []
    link_names = [link.name for link in topology.links]
    node_names = [node.name for node in topology.nodes]
    return {
        **{name: record[name] for name in _OF_PROGRESS},
        "next_events": [asdict(event) for event in upcoming(timeline_runner, NEXT_EVENTS)],
        "instances": [_instance(instance) for instance in timeline_runner.instances.values()],
        "counted_ns": counters.counted_ns if counters else 0,
        "links": _named(links, sampler.LINK_COLUMNS, link_names, 1),
        "pairs": _named(pairs, sampler.PAIR_COLUMNS, node_names, 2),
    }
