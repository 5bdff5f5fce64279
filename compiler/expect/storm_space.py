"""The space of storms that a `hunt` bounds: what may happen to whom, when, and how much of it.

Input: the model and the end of the timeline. Output: a StormSpace, or None where there is no hunt.
What is wrong goes to the sink: names that are none (TS0406), and bounds with which there is no
storm (TS0341). The plan does not depend on it. Source: docs/tdl.md, "Hunts".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.declare.model import Model
from compiler.expect.subjects import Subjects
from compiler.phrases import moment
from compiler.plan.types import named_direction
from tdl import ast
from tdl.diagnostics import Sink
from tdl.tokens.words import HUNT_CLOCKS, HUNT_DISKS, HUNT_FAULTS, HUNT_LINKS

MOST = 4  # faults of a storm, where nothing is said
SHORTEST_NS = 100_000_000  # that a fault lasts, where nothing is said
STEP_NS = 1_000_000  # moments of faults are whole milliseconds
_LIMITS = ("most", "lasting", "quiet")


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`word`: one of HUNT_KINDS or HUNT_POWER. `targets`: names of instances, of HUNT_LINKS of
    links (`a.0--s1`). Of faults up to `count` are concerned at a time; of all else a value from
    `low` to `high`, in ns or ppb, is drawn for one of them. Of disks it says which of HUNT_DISKS,
    from 1 on."""

    word: str
    targets: tuple[str, ...]
    count: int = 1
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class StormSpace:
    """Faults begin and end from `begin_ns` to `end_ns`, each lasts `shortest_ns` to `longest_ns`,
    and a storm has up to `most` of them. `instances`: the names of all."""

    kinds: tuple[FaultKind, ...]
    most: int
    begin_ns: int
    end_ns: int
    shortest_ns: int
    longest_ns: int
    instances: tuple[str, ...]


def storm_space(model: Model, end_ns: int, sink: Sink) -> StormSpace | None:
    hunts = model.declared.hunts
    if model.oversized or not hunts:
        return None
    for more in hunts[1:]:
        place = ast.said(hunts[0].span.place)
        message = f"there is a hunt already, on {place}"
        sink.error("TS0341", more.span, message, "write all bounds into one")
    reader = _Reader(model, hunts[0], end_ns, sink)
    return reader.space()


class _Reader:
    def __init__(self, model: Model, hunt: ast.Hunt, end_ns: int, sink: Sink) -> None:
        self._hunt, self._end_ns, self._sink = hunt, end_ns, sink
        nodes = model.planned.nodes
        self._names = {at: one.name for at, one in enumerate(nodes) if one.is_instance}
        self._links = [(one.src, one.dst, _both(one.name)) for one in model.planned.links[::2]]
        self._subjects = Subjects(model.declared, model.layout, sink)

    def space(self) -> StormSpace | None:
        limits = self._limits()
        found = [self._kind(one) for one in self._hunt.body if one.kind not in _LIMITS]
        if not found:
            message = "these bounds have limits, and nothing that happens"
            self._wrong(self._hunt.span, message, "add a kind of fault, such as `crash server.*`")
        most = limits["most"].count if "most" in limits else MOST
        if not most:
            self._wrong(
                limits["most"].span, "storms without a fault are the run itself", "at most 1"
            )
        begin_ns, end_ns = self._window(limits)
        lasting = limits.get("lasting")
        low, high = SHORTEST_NS, max((end_ns - begin_ns) // 2, STEP_NS)
        if lasting is not None:
            low, high = lasting.low, min(lasting.high, end_ns - begin_ns)
        kinds = tuple(one for one in found if one is not None)
        if self._sink.failed:
            return None
        instances = tuple(self._names.values())
        shortest = max(min(low, high), STEP_NS)
        return StormSpace(
            kinds, most or 1, begin_ns, end_ns, shortest, max(high, shortest), instances
        )

    def _limits(self) -> dict[str, ast.HuntBound]:
        found: dict[str, ast.HuntBound] = {}
        for one in self._hunt.body:
            if one.kind not in _LIMITS:
                continue
            key = one.kind + one.at
            if key in found:
                place = ast.said(found[key].span.place)
                self._wrong(one.span, f"this is said already, on {place}", "keep one of them")
            found[key] = one
        return found

    def _window(self, limits: dict[str, ast.HuntBound]) -> tuple[int, int]:
        quiet = [limits[key] for key in ("quietstart", "quietend") if key in limits]
        begin_ns = sum(one.low for one in quiet if one.at == "start")
        end_ns = self._end_ns - sum(one.low for one in quiet if one.at == "end")
        lasting = limits.get("lasting")
        least = max(lasting.low if lasting else 0, STEP_NS)
        if end_ns - begin_ns < least:
            span = (quiet[-1] if quiet else lasting or self._hunt).span
            message = f"no fault fits: the experiment ends at {moment(self._end_ns)}"
            if quiet:
                message += f", of which {moment(sum(one.low for one in quiet))} are quiet"
            if lasting:
                message += f", and each lasts {moment(lasting.low)} or more"
            self._wrong(span, message, "make the experiment longer, such as `at 60s quit`")
        return begin_ns, end_ns

    def _kind(self, bound: ast.HuntBound) -> FaultKind | None:
        nodes: Sequence[int] | None = tuple(self._names)
        if bound.subjects:
            nodes = self._subjects.nodes(bound.subjects)
        if nodes is None:
            return None
        if bound.kind in HUNT_LINKS:
            return self._of_links(bound, nodes)
        names = tuple(self._names[node] for node in nodes)
        count = 1 if bound.count is None else bound.count
        if not names or count > len(names):
            message = f"{count} are to fail at a time, of {len(names)}"
            self._wrong(bound.span, message, f"up to {len(names)} can")
        elif not count:
            self._wrong(bound.span, "nobody fails with 0", "leave the line out")
        elif bound.kind == HUNT_FAULTS[0] and count >= len(self._names):
            message = f"with {count} of {len(self._names)} cut off nobody is on the other side"
            self._wrong(bound.span, message, f"up to {len(self._names) - 1} can be")
        elif bound.kind in HUNT_CLOCKS and not bound.high:
            self._wrong(bound.span, "a clock that is off by nothing is right", "leave the line out")
        if bound.kind == "disk":
            return FaultKind(bound.kind, names, count, 1, len(HUNT_DISKS))
        return FaultKind(bound.kind, names, count, bound.low, bound.high)

    def _of_links(self, bound: ast.HuntBound, nodes: Iterable[int]) -> FaultKind:
        ends = set(nodes) if bound.subjects else None
        links = [name for src, dst, name in self._links if ends is None or ends & {src, dst}]
        if not links:
            self._wrong(bound.span, "there is no link there", "leave the names out: any link")
        if not bound.high:
            self._wrong(bound.span, f"a {bound.kind} of nothing changes nothing", "leave it out")
        return FaultKind(bound.kind, tuple(links), 1, bound.low, bound.high)

    def _wrong(self, span: ast.Span, message: str, hint: str) -> None:
        self._sink.error("TS0341", span, message, hint)


def _both(direction: str) -> str:
    """`fast:a.0--s1`, of one of its directions."""
    a, b, called = named_direction(direction)
    return f"{called}:{a}--{b}" if called else f"{a}--{b}"
