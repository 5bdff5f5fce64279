"""The verdict on a run: whether what it shows may have another cause than the plan, and why.

Whoever measures says how late something was (`Judge.see`); here it meets its bound. What comes out
is one record, `verdict` in summary.json:

state        `invalid`: what packets met was not the planned network, by so much that no machine's
             weakness explains it. `degraded`: something was beyond its bound. `valid`: what packets
             met on their paths was measured, and everything was within its bound. `unknown`:
             nothing was beyond one, and that was not measured, which proves nothing
reasons      what was beyond its bound, `invalid` ones and then the worst first: `what`, `subject`,
             `at_ns` (since time 0, null if nobody knows when), `figure_ns`, `threshold_ns` (null
             where it is no time), `figure`, `threshold`, `unit`, `count` (how often beyond it),
             `state` (what it makes of the run), `text`
judged       of everything that was judged at all the figure of each kind that is nearest to its
             bound or farthest beyond it, in the same words: certificate.json has all pairs
measured     what of the paths was: `pairs`, `probes`, `of_pairs`; null if nothing was
largest_ns   the largest of all figures
time         `virtual` where the clock stood still while anything ran, else `real`
cpu          only where computing took virtual time: `ppb` of each second of the machine's processor
             time, and what came of it, if that is known: `used_ns` of the machine, which counted
             `charged_ns`; `turn_ns`, what a system call costs by itself, which does not count
max_lateness_ns, too_late
             what the user allowed (null: nothing said), and whether anything was later than that

The bounds and their reasons are in docs/run.md and docs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime import say
from runtime.options import REAL, VIRTUAL
from runtime.thresholds import BYTES, NS, PPB, THRESHOLDS

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


def _default(name: str) -> int:
    return THRESHOLDS[name].default


BOUNDS: Mapping[str, Bound] = {
    "network_change": Bound(
        _default("network_change"),
        "a change of the network took effect {figure} late ({subject})",
        "{count} changes of the network took effect late, by up to {figure} ({subject})",
    ),
    "process_change": Bound(
        _default("process_change"),
        "a join, leave or crash was done {figure} late ({subject})",
        "{count} joins, leaves and crashes were done late, by up to {figure} ({subject})",
        each_ns=2 * MS,
    ),
    "program_start": Bound(
        _default("program_start"),
        "a program ran {figure} late ({subject})",
        "{count} programs ran late, by up to {figure} ({subject})",
        each_ns=2 * MS,
    ),
    "engine_late_p50": Bound(
        _default("engine_late_p50"),
        "half of the packets left {subject} {figure} late or later",
        delay_percent=10,
    ),
    "engine_late_p99": Bound(
        _default("engine_late_p99"),
        "1 of 100 packets left {subject} {figure} late or later",
        delay_percent=10,
        few_floor_ns=10 * MS,
    ),
    "engine_late_max": Bound(
        _default("engine_late_max"), "a packet left {subject} {figure} late", delay_percent=100
    ),
    "driver_stall": Bound(
        _default("driver_stall"),
        "{subject} stood still for {figure}",
        "{subject} stood still {count} times, for up to {figure}",
    ),
    "engine_stall": Bound(
        _default("engine_stall"),
        "{subject} did not answer for {figure}",
        "{subject} did not answer {count} times, for up to {figure}",
    ),
    "agent_stall": Bound(_default("agent_stall"), "{subject} was held up for {figure}"),
    "agent_away": Bound(
        _default("agent_away"),
        "{subject} was not there for {figure}",
        "{subject} was not there {count} times, for up to {figure}",
    ),
    "clock_away": Bound(
        _default("clock_away"),
        "the clock of {subject} moved by {figure} since the start: its changes were early or late",
    ),
}
# Each subject of these is judged by itself; of the others only the worst one is named.
_TOGETHER = frozenset({"network_change", "process_change", "program_start"})


@dataclass(slots=True)
class _Worst:
    """The worst of its kind so far; `count` of them were beyond their bounds. `text` is said in the
    place of what BOUNDS has; `invalid`: beyond its bound, the run is no result of its plan."""

    subject: str
    figure: int
    threshold: int
    at_ns: int | None
    count: int = 0
    text: str = ""
    invalid: bool = False

    def beyond(self) -> bool:
        return self.figure > self.threshold


@dataclass(slots=True)
class Judge:
    """Takes figures and gives the verdict.

    delay_ns          the smallest delay above zero of any link in force, 0 if there is none
    max_lateness_ns   what the user allows anything that is judged
    virtual           the run was in virtual time
    cpu_ppb           of each second that programs computed counted there
    cpu               what came of it
    thresholds        what the user says in the place of defaults, by name
    """

    delay_ns: int = 0
    max_lateness_ns: int | None = None
    virtual: bool = False
    cpu_ppb: int = 0
    cpu: Mapping[str, int] = field(default_factory=dict)
    thresholds: Mapping[str, int] = field(default_factory=dict)
    measured: Mapping[str, int] | None = None  # of paths: pairs, of_pairs, probes
    unmeasured: str = ""  # why nothing of the paths was
    unprobed: str = ""  # which packets of programs no probe is like
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
        """Something was `figure_ns` late (early, if that is negative), with `others` of its kind
        due at the same instant; or that is a quantile, of `few` values or many."""
        text = "" if figure_ns >= 0 else f"{subject} was done {milliseconds(-figure_ns)} early"
        figure_ns = abs(figure_ns)
        self._largest_ns = max(self._largest_ns, figure_ns)
        threshold_ns = self.thresholds.get(what)
        if threshold_ns is None:
            threshold_ns = BOUNDS[what].threshold_ns(self.delay_ns, others, few)
        self._keep(what, _Worst(subject, figure_ns, threshold_ns, at_ns, text=text))

    def threshold(self, name: str) -> int:
        """In force."""
        return self.thresholds.get(name, THRESHOLDS[name].default)

    def measure(
        self,
        what: str,
        subject: str,
        figure: int,
        at_ns: int | None,
        text: str,
        *,
        threshold: int | None = None,
        invalid: bool = False,
    ) -> None:
        """Something was measured, in the unit of its threshold, which may be wider here than the
        one in force. `text` says it without the bound."""
        bound = self.threshold(what) if threshold is None else threshold
        found = _Worst(subject, figure, bound, at_ns, text=text, invalid=invalid)
        self._keep(what, found)

    def _keep(self, what: str, found: _Worst) -> None:
        key = what, "" if what in _TOGETHER else found.subject
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
            threshold = worst.threshold
            if not worst.beyond() and allowed is not None and what in BOUNDS:
                threshold = min(threshold, allowed)
            if worst.figure > threshold:
                state = INVALID if worst.invalid else DEGRADED
                text = _text(what, worst, threshold)
                reasons.append({**_record(what, worst, threshold), "state": state, "text": text})
        reasons.sort(key=lambda one: one["state"] != INVALID)  # the rest stays in its order
        return {
            "state": self._state(reasons),
            "reasons": reasons,
            "judged": _foremost(found),
            "measured": None if self.measured is None else dict(self.measured),
            "unmeasured": self.unmeasured,
            **({"unprobed": self.unprobed} if self.unprobed else {}),
            "largest_ns": self._largest_ns,
            "time": VIRTUAL if self.virtual else REAL,
            **({"cpu": {"ppb": self.cpu_ppb, **self.cpu}} if self.cpu_ppb else {}),
            "max_lateness_ns": allowed,
            "too_late": allowed is not None and self._largest_ns > allowed,
        }

    def _state(self, reasons: Sequence[Mapping[str, Any]]) -> str:
        if reasons:
            return str(reasons[0]["state"])
        return UNKNOWN if self.measured is None else VALID


def _rank(worst: _Worst) -> tuple[bool, bool, int]:
    return worst.beyond(), worst.beyond() and worst.invalid, worst.figure


def _excess(worst: _Worst) -> float:
    return worst.figure / max(worst.threshold, 1)


def _foremost(found: Sequence[tuple[tuple[str, str], _Worst]]) -> list[dict[str, Any]]:
    """The first one of each kind: however many pairs there are, a summary stays small."""
    kinds: dict[str, _Worst] = {}
    for (what, _), worst in found:
        kinds.setdefault(what, worst)
    return [_record(what, one, one.threshold) for what, one in kinds.items()]


def _missed(subject: str, text: str) -> dict[str, Any]:
    found = dict.fromkeys(("at_ns", "figure_ns", "threshold_ns", "figure", "threshold"))
    more = {"what": "missing", "subject": subject, "count": 1, "unit": ""}
    return {**found, **more, "state": DEGRADED, "text": text}


def _record(what: str, worst: _Worst, threshold: int) -> dict[str, Any]:
    unit = THRESHOLDS[what].unit
    return {
        "what": what,
        "subject": worst.subject,
        "at_ns": worst.at_ns,
        "figure_ns": worst.figure if unit == NS else None,
        "threshold_ns": threshold if unit == NS else None,
        "figure": worst.figure,
        "threshold": threshold,
        "unit": unit,
        "count": worst.count,
    }


def _text(what: str, worst: _Worst, threshold: int) -> str:
    told = worst.text
    if not told:
        bound = BOUNDS[what]
        form = bound.many if worst.count > 1 and bound.many else bound.one
        figure = milliseconds(worst.figure)
        told = form.format(subject=worst.subject, figure=figure, count=worst.count)
    when = "" if worst.at_ns is None else f", at {worst.at_ns / 1e9:.3f} s"
    unit = THRESHOLDS[what].unit
    shown = quantity(threshold, unit)
    if quantity(worst.figure, unit) == shown:  # else the two are read as equal
        shown += f", exceeded by {quantity(worst.figure - threshold, unit)}"
    return f"{told}{when}; the bound is {shown}"


def milliseconds(time_ns: int, more: int = 0) -> str:
    """`more` digits than are usual."""
    text = say.digits(time_ns / 1e6, 3 + more)
    return f"{text} ms" if float(text) < 1000 else f"{time_ns / 1e9:.{2 + more}f} s"


def quantity(value: int, unit: str) -> str:
    """A figure of this unit, for people."""
    if unit == NS:
        return milliseconds(value)
    if unit == BYTES:
        return f"{say.digits(value / (1 << 20))} MiB"
    return f"{say.digits(value / (10**7 if unit == PPB else 10**4))} %"
