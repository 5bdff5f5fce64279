"""What a run's own records say of lateness, brought before the judge.

Input: the records of events.jsonl, the driver's last words, and the plan's delays. No clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compiler.plan.event_kinds import PROCESS_KINDS
from runtime import say
from runtime.judge.run_end import RunEnd
from runtime.judge.verdict import MANY, Judge, milliseconds
from runtime.options import COMPLETED, FAILED
from runtime.schedule import Schedule

ENGINE = "pktd"  # the packet engine of a run without hosts, as people know it
DRIVER = "the driver"
NOTED_PERCENT = 10  # of the smallest delay: a larger 99th percentile of packets is said

Record = Mapping[str, Any]


def smallest_delay(schedule: Schedule) -> int:
    """Of all links while the run goes on, above zero; 0 if none has any. Paths take no less."""
    found = {state.delay_ns for state in schedule.start.links}
    found.update(state.delay_ns for step in schedule.steps[1:] for _, state in step.epoch.links)
    return min(found - {0}, default=0)


def late_for_delays(totals: Record, delay_ns: int) -> list[dict[str, Any]]:
    """What of the machine shows in results although it is within its bound: packets that leave late
    where delays are small. Empty, or one record: `what`, `figure_ns`, `delay_ns`, `percent`,
    `packets`, `text`. `delay_ns`: the smallest one."""
    figure, packets = int(totals.get("late_p99_ns", 0)), int(totals.get("tx_frames", 0))
    if not packets or not delay_ns or figure * 100 <= delay_ns * NOTED_PERCENT:
        return []
    percent = figure * 100 // delay_ns
    few = "" if packets >= MANY else f" (of {packets} packets: hardly more than the latest ones)"
    text = (
        f"1 of 100 packets left the engine {milliseconds(figure)} late or later{few}: {percent} %"
        f" of the smallest delay of a link, which is {milliseconds(delay_ns)}"
    )
    record = {"what": "late_p99", "figure_ns": figure, "delay_ns": delay_ns, "percent": percent}
    return [{**record, "packets": packets, "text": text}]


def look_at_events(judge: Judge, records: Iterable[Record]) -> None:
    """Lag of events and of programs' starts, stalls that the driver saw, agents that were away."""
    found = list(records)
    together: Counter[int] = Counter(
        record["due_ns"] for record in found if _is_done(record) and record["kind"] in PROCESS_KINDS
    )
    away: dict[str, int] = {}
    for record in found:
        kind = record.get("kind")
        if _is_done(record):
            _look_at_event(judge, record, together[record["due_ns"]] - 1)
        elif kind == "start" and "started_ns" in record:
            due_ns = record.get("due_ns", 0)
            judge.see("program_start", record["target"], record["started_ns"] - due_ns, due_ns)
        elif kind == "stall":
            what = "driver_stall" if record["target"] == DRIVER else "engine_stall"
            began = record["applied_ns"] - record["stalled_ns"]
            judge.see(what, record["target"], record["stalled_ns"], began)
        elif kind == "unprobed":
            since = f"{record['applied_ns'] / 1e9:.3f} s"
            why = record.get("reason", "")
            judge.miss("probes", f"nobody looked at paths from {since} on: {why}")
        elif kind == "agent_lost":
            away.setdefault(record["target"], record["applied_ns"])
        elif kind == "agent_back":
            _back(judge, away, record["target"], record["applied_ns"])
    for host in sorted(away):
        _back(judge, away, host, max(record.get("applied_ns", 0) for record in found))


def _is_done(record: Record) -> bool:
    return record.get("seq") is not None


def _look_at_event(judge: Judge, record: Record, others: int) -> None:
    due, kind, target = record["due_ns"], record["kind"], record["target"]
    subject = f"{kind} {target}".rstrip()
    if "network_ns" in record:
        judge.see("network_change", subject, record["network_ns"] - due, due)
    if kind in PROCESS_KINDS:
        judge.see("process_change", subject, record["lag_ns"], due, others)
    elif "network_ns" not in record:
        judge.see("network_change", subject, record["lag_ns"], due)
    if record.get("started_ns", -1) >= 0:  # what starts before time 0 is awaited there
        judge.see("program_start", target, record["started_ns"] - due, due, others)


def _back(judge: Judge, away: dict[str, int], host: str, at_ns: int) -> None:
    lost = away.pop(host, None)
    if lost is not None:
        judge.see("agent_away", f"the agent of {host}", at_ns - lost, lost)


def look_at_end(judge: Judge, end: RunEnd, planned: int, applied: int) -> None:
    """What the driver said in the end: the engines' lateness, the agents' loops, who was silent,
    how far clocks have moved."""
    facts = end.facts
    if not facts and judge.measured is not None:
        judge.miss(DRIVER, f"{DRIVER} gave no account at the end: nobody knows what it left undone")
    broke = end.outcome == FAILED and not end.programs_failed
    if broke and facts and judge.measured is not None:
        judge.miss("the run", f"it broke off, and nobody knows how it ended: {end.message}")
    hosts = facts.get("counters")
    if hosts is None:
        _look_at_engine(judge, ENGINE, facts.get("totals", {}))
    for host in hosts or ():
        _look_at_host(judge, host)
    for host in facts.get("hosts") or ():
        if "away_ns" in host:
            judge.see("clock_away", host["name"], host["away_ns"])
    judge.cpu = facts.get("cpu", {})
    crept = facts.get("crept")
    if crept:
        programs = ", ".join(crept["programs"])
        judge.miss(
            "virtual time",
            f"time went on by {say.digits(crept['ns'] / 1e9)} s while programs computed:"
            f" {programs}",
        )
    if end.outcome == COMPLETED and applied < planned:
        judge.miss("events", f"{planned - applied} of {planned} events were not done")


def _look_at_host(judge: Judge, host: Record) -> None:
    name = host["name"]
    if "missing" in host:
        reason = f" ({host['missing']})" if host["missing"] else ""
        judge.miss(name, f"the agent of {name} gave no account at the end{reason}")
        return
    _look_at_engine(judge, f"the datapath of {name}", host.get("datapath", {}))
    loop = host.get("loop", {})
    held_up = max(loop.get("late_max_ns", 0), loop.get("busy_max_ns", 0))
    judge.see("agent_stall", f"the agent of {name}", held_up)


def _look_at_engine(judge: Judge, subject: str, totals: Record) -> None:
    """tcald counts no lateness, and pktd has none before its first packet."""
    packets = int(totals.get("tx_frames", 0))
    for what in ("p50", "p99", "max"):
        figure = totals.get(f"late_{what}_ns")
        if figure is not None and packets:
            few = what == "p99" and packets < MANY
            judge.see(f"engine_late_{what}", subject, int(figure), few=few)
