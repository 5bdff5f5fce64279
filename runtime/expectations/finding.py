"""What became of one expectation, or of a part of it (one pair, one instance)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from compiler.plan.parts.expectations import PlannedExpectation
from runtime import say
from runtime.judge.verdict import milliseconds

PASSED, FAILED, NOT_MEASURED = "passed", "failed", "not_measured"
STATES = (PASSED, FAILED, NOT_MEASURED)
NS, BPS, PPB, NO_UNIT = "ns", "bps", "ppb", ""
MOST_LINES = 20
_MOST_MORE = 15  # digits: a float has no others


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """`at_ns` is plan time, None if nobody knows."""

    instance: str
    at_ns: int | None
    line: str


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """Of a history, for the page. Plan time; without an end nobody knows whether it took effect.
    `ok`: it did; `guilty`: it is one of those that nothing explains."""

    process: str
    words: str
    from_ns: int
    to_ns: int | None
    ok: bool
    guilty: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """`message` is one line for people; `at_ns` the plan time of the decisive moment; `subject` a
    pair, as `pair_name` has it, or an instance, or ''. `happened` and `never`: of what has to
    happen in some run, not in each, by name: what did in this one, and what did not."""

    state: str
    message: str
    figure: int | None = None
    threshold: int | None = None
    unit: str = NO_UNIT
    at_ns: int | None = None
    subject: str = ""
    log: tuple[MatchedLine, ...] = ()
    operations: tuple[ShownOperation, ...] = ()
    happened: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def to_record(self, expectation: PlannedExpectation) -> dict[str, Any]:
        """As summary.json has it."""
        statement = {name: getattr(expectation, name) for name in ("text", "line", "file", "kind")}
        found = {**statement, **asdict(self)}
        found["log"] = found["log"][:MOST_LINES]
        for name in ("operations", "happened", "never"):
            if not found[name]:
                del found[name]
        return found

    def saying(self, more: str) -> Finding:
        """The same with this at the end of its message."""
        return replace(self, message=self.message + more) if more else self


def not_measured(why: str, subject: str = "") -> Finding:
    return Finding(NOT_MEASURED, why, subject=subject)


def holds(figure: int, op: str, bound: int) -> bool:
    return {
        "<": figure < bound,
        "<=": figure <= bound,
        ">": figure > bound,
        ">=": figure >= bound,
    }[op]


def bounded(op: str) -> str:
    """The operator in words."""
    words = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
    return words[op]


def worst(findings: Iterable[Finding], op: str) -> Finding:
    """Of the parts of one expectation: what has failed by most; else the first one that was not
    measured; else the one that is nearest to its bound. Without an `op` they have none, and the
    first one is taken. One at least."""
    found = list(findings)
    for state in (FAILED, NOT_MEASURED, PASSED):
        those = [one for one in found if one.state == state]
        if those and state == NOT_MEASURED:
            return _counted(those[0], those, found, op)
        if those:
            return _counted(max(those, key=lambda one: _beyond(one, op)), those, found, op)
    raise AssertionError("an expectation has a part")


def _beyond(finding: Finding, op: str) -> float:
    """How far beyond its bound; one without a figure is beyond all."""
    if finding.figure is None or finding.threshold is None:
        return float("inf")
    over = finding.figure - finding.threshold
    return float(-over if op in (">", ">=") else over) / max(finding.threshold, 1)


def _counted(told: Finding, those: list[Finding], whole: list[Finding], op: str) -> Finding:
    if len(whole) == 1:
        return told
    if told.state == PASSED:
        which = "this one is the nearest to the bound" if op else "all passed"
        return told.saying(f" (of {len(whole)} {which})")
    word = "failed" if told.state == FAILED else "not measured"
    return told.saying(f" ({len(those)} of {len(whole)} {word})")


# Figures and moments in words.


def moment(at_ns: int) -> str:
    """Plan time."""
    return f"{round(at_ns / 1e9, 3):.12g} s"


def span(from_ns: int, to_ns: int) -> str:
    return f"from {moment(from_ns)} to {moment(to_ns)}"


def quantity(value: int, unit: str, more: int = 0) -> str:
    """`more` digits than are usual."""
    if unit == BPS:
        size, word = (1e6, "Mb/s") if value >= 10**6 else (1e3, "kb/s")
        return f"{say.digits(value / size, 4 + more)} {word}"
    return f"{say.digits(value / 1e7, 3 + more)} %" if unit == PPB else milliseconds(value, more)


def compared(figure: int, bound: int, unit: str) -> tuple[str, str]:
    """Both in words, with as many digits as tell them apart."""
    for more in range(_MOST_MORE):
        texts = quantity(figure, unit, more), quantity(bound, unit, more)
        if figure == bound or texts[0] != texts[1]:
            break
    return texts


def printable(text: str, most: int) -> str:
    """A line of a program's, cut, without characters that a terminal would act on."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text[:most])


# Which part of an expectation's interval a run has covered.
#
# An interval that ends with the plan ends with the run, if that came to an end as it should: by its
# timeline, `--until` or `quit when`. A run that was interrupted or has failed leaves it open. Times
# are plan time in ns.


@dataclass(frozen=True, slots=True)
class Covered:
    """What of the plan's time a run was there for. `ended_well`: it is completed."""

    from_ns: int
    to_ns: int
    plan_end_ns: int
    ended_well: bool


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """[from_ns, to_ns], empty if nothing is left. `missing`: why it is not the whole interval."""

    from_ns: int
    to_ns: int
    missing: str = ""

    @property
    def is_empty(self) -> bool:
        return self.from_ns > self.to_ns


def window(expectation: PlannedExpectation, covered: Covered) -> MeasuredWindow:
    from_ns = max(expectation.from_ns, covered.from_ns)
    to_ns = min(expectation.to_ns, covered.to_ns)
    return MeasuredWindow(from_ns, to_ns, _missing(expectation, covered))


def _missing(expectation: PlannedExpectation, covered: Covered) -> str:
    if 0 < expectation.from_ns < covered.from_ns:
        begin = moment(covered.from_ns)
        return f"the run began at {begin}, after {moment(expectation.from_ns)}"
    if expectation.to_ns <= covered.to_ns:
        return ""
    begun = expectation.from_ns <= covered.to_ns
    if begun and covered.ended_well and expectation.to_ns >= covered.plan_end_ns:
        return ""
    wanted = expectation.to_ns if begun else expectation.from_ns
    return f"the run ended at {moment(covered.to_ns)}, before {moment(wanted)}"
