"""A row of docs/fidelity.md: what theory says, what was measured, and whether that is near enough.

A row is {what, where, unit, wanted, ours, goal, paper, peers, virtual, why}: `wanted` and `ours`
are numbers in `unit` (`wanted` is None where there is no theory), `virtual` is the same measured in
virtual time, `goal` is {kind, limit}, `peers` has a number by name, `why` is the reason if the goal
is missed. `where` is the place the run had: `hop-exact`, `hosts 2`, `rootless`, `engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.tables import Record, Table

VIRTUAL = "virtual"
RELATIVE = "relative"  # |ours / wanted - 1| is at most `limit`
ABSOLUTE = "absolute"  # |ours - wanted| is at most `limit`, in the row's unit
LEAST = "least"  # ours / wanted - 1 is at least -`limit`: more is no fault
MOST = "most"  # ours - wanted is at most `limit`, in the row's unit: less is no fault
BELOW = "below"  # ours is at most `limit`; nothing is wanted
TOLD = "told"  # only told
HOLDS = "holds"  # ours is 1 if what was published was seen here, too
LATE_US = 500  # of timers; a sleeping machine needs 50 to 200 to wake up
FAILED = "failed"  # could not be measured: `ours` is None


def goal(kind: str, limit: float = 0.0) -> Record:
    return {"kind": kind, "limit": limit}


def row(
    what: str, where: str, unit: str, ours: float | None, wanted: float | None, **more: Any
) -> Record:
    """`more`: goal, paper, peers, why, shown (ours as text), of_peer (whose figure is wanted)."""
    made = {"goal": goal(TOLD), "paper": "–", "peers": {}, "virtual": None, "why": ""}
    return {
        **made,
        "what": what,
        "where": where,
        "unit": unit,
        "ours": ours,
        "wanted": wanted,
        **more,
    }


def failed(what: str, where: str, why: str) -> Record:
    """A row that is missed since its run failed."""
    return row(what, where, "", None, None, goal=goal(FAILED), why=f"it failed: {why}")


def incomplete(rows: Iterable[Record]) -> bool:
    """Whether a part of them failed."""
    return any(found["goal"]["kind"] == FAILED for found in rows)


def met(of: Record, value: float | None = None) -> bool | None:
    """Whether a value (else `ours`) is within the row's goal; None where the row has none."""
    got, kind, limit = (
        of["ours"] if value is None else value,
        of["goal"]["kind"],
        of["goal"]["limit"],
    )
    if kind == TOLD:
        return None
    if kind == FAILED:
        return False
    if kind == HOLDS:
        return bool(got == 1)
    if kind == BELOW:
        return bool(got <= limit)
    off = got - of["wanted"]
    if kind == LEAST:
        return bool(off / of["wanted"] >= -limit)
    if kind == MOST:
        return bool(off <= limit)
    return bool(abs(off / of["wanted"] if kind == RELATIVE else off) <= limit)


def missed(rows: Iterable[Record]) -> list[str]:
    """A line for each row that failed, or missed its goal in real time."""
    lines: list[str] = []
    for found in rows:
        if met(found) is False:
            name, why = f"{found['what']}, {found['where']}", found["why"] or "no reason is known"
            said = f"{_value(found, found['ours'])} instead of {_wanted(found)}, {_goal(found)}: "
            lines.append(f"{name}: {'' if found['ours'] is None else said}{why}")
    return lines


def blame(rows: Iterable[Record], machine: Mapping[str, Any]) -> list[Record]:
    """Where a row is missed for no reason that its run knows, what the machine's own timers did
    before it, if they were late enough to matter."""
    late_us = int(machine["timers_late_p99_us"])
    said = (
        f"1 of 100 timers of this machine was {late_us / 1000:.1f} ms late, or later, with nothing "
        "else running"
    )
    made: list[Record] = []
    for found in rows:
        late = late_us >= LATE_US and found["where"] != VIRTUAL
        known = found["why"] or met(found) is not False or not late
        made.append(found if known else {**found, "why": said})
    return made


def fold(rows: Sequence[Record], into: str) -> list[Record]:
    """Rows measured in virtual time become the second column of those measured at `into`; one
    without such a partner, or that failed, stays a row of its own."""
    measured = [found for found in rows if found["ours"] is not None]
    real = {found["what"]: found for found in measured if found["where"] == into}
    made: list[Record] = []
    for found in rows:
        if found["where"] == VIRTUAL and found["ours"] is not None and found["what"] in real:
            real[found["what"]]["virtual"] = found["ours"]
        else:
            made.append(found)
    return made


_UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "b/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (0, "b/s")),
}


def number(value: float, unit: str) -> str:
    """Four or five digits, with a unit that suits."""
    for least, name in _UNITS.get(unit, ()):
        if abs(value) >= least:
            return f"{value / (least or 1):.5g} {name}"
    text = f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{text} {unit}".strip()


def _value(of: Record, value: float | None) -> str:
    if value is None:
        return "–"
    if of["goal"]["kind"] == HOLDS:
        return str(of.get("shown") or ("as published" if value == 1 else "otherwise"))
    text = str(of.get("shown") or number(value, of["unit"]))
    return f"{text} ({_off(of, value)})" if of["wanted"] else text


def _off(of: Record, value: float) -> str:
    if of["goal"]["kind"] in (ABSOLUTE, MOST):
        return f"{value - of['wanted']:+.3g} {of['unit']}"
    return f"{(value / of['wanted'] - 1) * 100:+.2f} %"


def _wanted(of: Record) -> str:
    if of["wanted"] is None:
        return "–"
    whose = f" ({of['of_peer']}'s)" if of.get("of_peer") else ""
    return number(of["wanted"], of["unit"]) + whose


def _goal(of: Record) -> str:
    kind, limit = of["goal"]["kind"], of["goal"]["limit"]
    return {
        RELATIVE: f"±{limit * 100:.3g} %",
        ABSOLUTE: f"±{number(limit, of['unit'])}",
        LEAST: f"at most {limit * 100:.3g} % less",
        MOST: f"at most {number(limit, of['unit'])} more",
        BELOW: f"at most {number(limit, of['unit'])}",
        FAILED: "–",
        HOLDS: "as published",
        TOLD: "–",
    }[kind]


def _peers(of: Record) -> str:
    found = [
        f"{name} {number(value, of['unit'])}" + (f" ({_off(of, value)})" if of["wanted"] else "")
        for name, value in sorted(of["peers"].items())
    ]
    return "; ".join(found) or "–"


def _verdict(of: Record) -> str:
    found = met(of)
    if found is None:
        return "–"
    inside = of["virtual"] is not None and met(of, of["virtual"])
    if found:
        return "met" if inside or of["virtual"] is None else "met (missed in virtual time)"
    also = " (met in virtual time)" if inside else ""
    return f"**missed**{also}: {of['why'] or 'no reason is known'}"


TABLES = (
    Table(
        {
            "What": "{what}",
            "Where": "{where}",
            "Theory": _wanted,
            "Ours": lambda of: _value(of, of["ours"]),
            "In virtual time": lambda of: _value({**of, "shown": None}, of["virtual"]),
            "Target": _goal,
            "The paper": "{paper}",
            "Peers, same run": _peers,
            "": _verdict,
        }
    ),
)
CANNOT = (Table({"Not measured": "{what}", "since": "{why}"}),)
