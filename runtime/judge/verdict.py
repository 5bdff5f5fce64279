"""The verdict on a run: whether what it shows may have another cause than the plan, and why.

Whoever measures says how late something was (`Judge.see`); here it meets its bound. What comes out
is one record, `verdict` in summary.json:

state        `degraded`: something came later than its bound. `unknown`: nothing did, which proves
             nothing: what packets met on their paths was not measured. `valid` (it was, and it was
             as planned) and `invalid` are kept for whoever measures that
reasons      what was beyond its bound, the worst first: `what`, `subject`, `at_ns` (since time 0,
             null if nobody knows when), `figure_ns`, `threshold_ns`, `count` (how often beyond it),
             `text`
judged       the largest figure of everything that was judged at all, in the same words
largest_ns   the largest of all figures
time         `virtual` where the clock stood still while anything ran, else `real`
cpu          only where computing took virtual time: `ppb` of each second of the machine's processor
             time, and what came of it, if that is known: `used_ns` of the machine, which counted
             `charged_ns`; `turn_ns`, what a system call costs by itself, which does not count
max_lateness_ns, too_late
             what the user allowed (null: nothing said), and whether anything was later than that

The bounds and their reasons are in docs/run.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtime.options import REAL, VIRTUAL

VALID, DEGRADED, INVALID, UNKNOWN = "valid", "degraded", "invalid", "unknown"
MS = 1_000_000
MANY = 1000  # values whose 99th percentile means something


@dataclass(frozen=True, slots=True)
class Bound:
    """How late is too late: `floor_ns`, or a part of the smallest delay in force if that is more;
    with `each_ns` on top for every other one that was due at the same instant. A quantile of few
    values (less than MANY) is hardly more than its latest ones: then the floor is `few_floor_ns`.

    one    how one is told; {subject} and {figure} are filled in
    many   how several are told, {count} as well; '' if there is never more than one
    """

    floor_ns: int
    one: str
    many: str = ""
    delay_percent: int = 0
    each_ns: int = 0
    few_floor_ns: int = 0

    def threshold_ns(self, delay_ns: int, others: int, few: bool) -> int:
        floor_ns = max(self.few_floor_ns, self.floor_ns) if few else self.floor_ns
        return max(floor_ns + others * self.each_ns, delay_ns * self.delay_percent // 100)


BOUNDS: Mapping[str, Bound] = {
    "network_change": Bound(
        100 * MS,
        "a change of the network took effect {figure} late ({subject})",
        "{count} changes of the network took effect late, by up to {figure} ({subject})",
    ),
    "process_change": Bound(
        100 * MS,
        "a join, leave or crash was done {figure} late ({subject})",
        "{count} joins, leaves and crashes were done late, by up to {figure} ({subject})",
        each_ns=2 * MS,
    ),
    "program_start": Bound(
        250 * MS,
        "a program ran {figure} late ({subject})",
        "{count} programs ran late, by up to {figure} ({subject})",
        each_ns=2 * MS,
    ),
    "engine_late_p50": Bound(
        1 * MS, "half of the packets left {subject} {figure} late or later", delay_percent=10
    ),
    "engine_late_p99": Bound(
        1 * MS,
        "1 of 100 packets left {subject} {figure} late or later",
        delay_percent=10,
        few_floor_ns=10 * MS,
    ),
    "engine_late_max": Bound(100 * MS, "a packet left {subject} {figure} late", delay_percent=100),
    "driver_stall": Bound(
        500 * MS,
        "{subject} stood still for {figure}",
        "{subject} stood still {count} times, for up to {figure}",
    ),
    "engine_stall": Bound(
        500 * MS,
        "{subject} did not answer for {figure}",
        "{subject} did not answer {count} times, for up to {figure}",
    ),
    "agent_stall": Bound(500 * MS, "{subject} was held up for {figure}"),
    "agent_away": Bound(
        500 * MS,
        "{subject} was not there for {figure}",
        "{subject} was not there {count} times, for up to {figure}",
    ),
}
# What was within its bound, for people who read of a run without reasons.
_CHECKED = {
    "network_change": "changes of the network",
    "process_change": "joins, leaves and crashes",
    "program_start": "starts of programs",
    **dict.fromkeys(("engine_late_p50", "engine_late_p99", "engine_late_max"), "packets in pktd"),
    **dict.fromkeys(("driver_stall", "engine_stall"), "stalls of driver and engine"),
    **dict.fromkeys(("agent_stall", "agent_away"), "stalls of agents"),
}
# Each subject of these is judged by itself; of the others only the worst one is named.
_APART = frozenset(BOUNDS) - {"network_change", "process_change", "program_start"}


@dataclass(slots=True)
class _Worst:
    """The worst of its kind so far; `count` of them were beyond their bounds."""

    subject: str
    figure_ns: int
    threshold_ns: int
    at_ns: int | None
    count: int = 0

    def beyond(self) -> bool:
        return self.figure_ns > self.threshold_ns


@dataclass(slots=True)
class Judge:
    """Takes figures and gives the verdict.

    delay_ns          the smallest delay above zero of any link in force, 0 if there is none
    max_lateness_ns   what the user allows anything that is judged
    virtual           the run was in virtual time
    cpu_ppb           of each second that programs computed counted there
    cpu               what came of it
    """

    delay_ns: int = 0
    max_lateness_ns: int | None = None
    virtual: bool = False
    cpu_ppb: int = 0
    cpu: Mapping[str, int] = field(default_factory=dict)
    _worst: dict[tuple[str, str], _Worst] = field(default_factory=dict)
    _missing: list[tuple[str, str]] = field(default_factory=list)
    _largest_ns: int = 0

    def see(
        self,
        what: str,
        subject: str,
        figure_ns: int,
        at_ns: int | None = None,
        others: int = 0,
        *,
        few: bool = False,
    ) -> None:
        """Something was `figure_ns` late, with `others` of its kind due at the same instant; or
        that is a quantile, of `few` values or many."""
        figure_ns = max(figure_ns, 0)
        self._largest_ns = max(self._largest_ns, figure_ns)
        threshold_ns = BOUNDS[what].threshold_ns(self.delay_ns, others, few)
        found = _Worst(subject, figure_ns, threshold_ns, at_ns)
        key = what, subject if what in _APART else ""
        before = self._worst.get(key)
        count = (before.count if before else 0) + found.beyond()
        if before is None or _rank(found) > _rank(before):
            self._worst[key] = before = found
        before.count = count

    def miss(self, subject: str, text: str) -> None:
        """Something that should have been judged or done was not, which `text` says."""
        self._missing.append((subject, text))

    def verdict(self) -> dict[str, Any]:
        allowed = self.max_lateness_ns
        reasons = [_missed(subject, text) for subject, text in self._missing]
        found = sorted(self._worst.items(), key=lambda item: (-_excess(item[1]), item[0]))
        for (what, _), worst in found:
            threshold = worst.threshold_ns
            if not worst.beyond() and allowed is not None:
                threshold = min(threshold, allowed)
            if worst.figure_ns > threshold:
                text = _text(what, worst, threshold)
                reasons.append({**_record(what, worst, threshold), "text": text})
        return {
            "state": DEGRADED if reasons else UNKNOWN,
            "reasons": reasons,
            "judged": [_record(what, one, one.threshold_ns) for (what, _), one in found],
            "largest_ns": self._largest_ns,
            "time": VIRTUAL if self.virtual else REAL,
            **({"cpu": {"ppb": self.cpu_ppb, **self.cpu}} if self.cpu_ppb else {}),
            "max_lateness_ns": allowed,
            "too_late": allowed is not None and self._largest_ns > allowed,
        }


def _rank(worst: _Worst) -> tuple[bool, int]:
    return worst.beyond(), worst.figure_ns


def _excess(worst: _Worst) -> float:
    return worst.figure_ns / worst.threshold_ns


def _missed(subject: str, text: str) -> dict[str, Any]:
    found = dict.fromkeys(("at_ns", "figure_ns", "threshold_ns"))
    return {**found, "what": "missing", "subject": subject, "count": 1, "text": text}


def _record(what: str, worst: _Worst, threshold_ns: int) -> dict[str, Any]:
    return {
        "what": what,
        "subject": worst.subject,
        "at_ns": worst.at_ns,
        "figure_ns": worst.figure_ns,
        "threshold_ns": threshold_ns,
        "count": worst.count,
    }


def _text(what: str, worst: _Worst, threshold_ns: int) -> str:
    bound = BOUNDS[what]
    form = bound.many if worst.count > 1 and bound.many else bound.one
    told = form.format(
        subject=worst.subject, figure=milliseconds(worst.figure_ns), count=worst.count
    )
    when = "" if worst.at_ns is None else f", at {worst.at_ns / 1e9:.3f} s"
    return f"{told}{when}; the bound is {milliseconds(threshold_ns)}"


def milliseconds(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3g} ms" if time_ns < 1000 * MS else f"{time_ns / 1e9:.2f} s"


def told(verdict: object) -> Iterator[str]:
    """For people: a line for each reason; for a run without any, what that says and what not.

    It may be read from a file of somebody else: what is no verdict says nothing.
    """
    found = verdict if isinstance(verdict, dict) else {}
    if found.get("time") == VIRTUAL:
        cpu = found.get("cpu")
        yield f"virtual time: {_computing(cpu if isinstance(cpu, dict) else {})} (docs/virtual.md)"
    state = str(found.get("state", UNKNOWN)).upper()
    reasons, judged = _records(found.get("reasons")), _records(found.get("judged"))
    for reason in reasons:
        yield f"{state}: {reason.get('text', '')}"
    if reasons:
        return
    if judged:
        kinds = [str(one.get("what", "")) for one in judged]
        checked = ", ".join(dict.fromkeys(_CHECKED.get(kind, kind) for kind in sorted(kinds)))
        yield f"nothing was too late. Within their bounds: {checked}"
        yield "not measured: what packets met on their paths (so it is 'unknown', not 'valid')"
    else:
        yield f"{state}: nothing was checked"


def _computing(cpu: Mapping[str, Any]) -> str:
    """What it cost in virtual time."""
    ppb, used_ns, charged_ns = (cpu.get(name) for name in ("ppb", "used_ns", "charged_ns"))
    if not isinstance(ppb, int):
        return "whatever programs computed took no time"
    sums = ""
    if isinstance(used_ns, int) and isinstance(charged_ns, int):
        sums = f", {used_ns / 1e9:.3g} s counted {charged_ns / 1e9:.3g} s"
    return (
        f"computing took {ppb / 1e9:.9g} of this machine's processor time{sums}, so no other run"
        " is the same to the last byte"
    )


def _records(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
