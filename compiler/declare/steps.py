"""Pass 4: what each dynamic statement asks for, as far as that is independent of time.

Input: the dynamic statements and a resolver. Output: one `StatementStep` for every statement that
makes sense; the others are reported (TS02xx, TS0304, TS0305) and left out. What they would have
touched is in *doubt* from their time on: the timeline reports no state errors there, as these might
follow from the statement that is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.declare.actions import of_machines, rule, targets_of
from compiler.declare.declared import Declared
from compiler.declare.nodes import externals
from compiler.declare.partition_groups import resolve_groups
from compiler.declare.selectors import EMPTY, Resolver, Selection
from compiler.draws import PPB
from compiler.phrases import end_name
from compiler.plan.packet_class import MAX_ENDS
from tdl import ast
from tdl.diagnostics import Sink
from tdl.tokens.words import BOTTLENECK_PROPERTIES

Group = tuple[int, ...]  # nodes

Member = ast.Counted | ast.Churn  # who is there, runs or is connected


@dataclass(frozen=True, slots=True)
class StatementStep:
    """A dynamic statement with its targets; `order` is its place among the dynamic statements."""

    order: int
    statement: ast.Dynamic
    chosen: Selection
    end_ns: int | None  # of an interval; the quit for an open one
    groups: tuple[Group, ...] = ()
    some: str = ""  # which packets, with instances by name (compiler/plan/packet_class.py)

    @property
    def line(self) -> int:
        return self.statement.span.line

    @property
    def last_ns(self) -> int:
        """The latest moment at which it can change anything."""
        last = max(self.statement.start_ns, self.end_ns or 0)
        return last + (self.statement.drawn.longest_ns if self.statement.drawn else 0)

    @property
    def draws_itself(self) -> bool:
        """Its moment, its length, or which of its targets (compiler/expand/drawing.py)."""
        action, statement = self.statement.action, self.statement
        some = isinstance(action, ast.Partition) and action.count is not None
        return statement.drawn is not None or some or isinstance(statement.selector, ast.Some)

    @property
    def outage(self) -> bool:
        """`from T1 to T2 LINK leave`: they are down from T1 to T2; only which ones may be drawn."""
        action, chosen = self.statement.action, self.chosen
        lasts = isinstance(action, ast.Leave) and self.end_ns is not None and not action.sometime
        return lasts and not (chosen.services or chosen.instances)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a statement with an error would have touched, from its time on."""

    start_ns: int
    order: int
    selection: Selection = EMPTY
    kinds: tuple[str, ...] = ()  # all of these, when the selector could not be resolved


def _doubt(order: int, statement: ast.Dynamic, selection: Selection | None) -> Doubt:
    start = statement.start_ns
    if selection is not None:
        changes_members = isinstance(statement.action, Member)
        touched = selection if changes_members else selection.only(("link",))
        return Doubt(start, order, touched)
    if isinstance(ast.drawn_from(statement.selector), ast.LinkSelector):
        return Doubt(start, order, kinds=("link",))
    return Doubt(start, order, kinds=rule(statement.action).targets)


def build_steps(
    declared: Declared, resolver: Resolver, sink: Sink
) -> tuple[list[StatementStep], list[Doubt]]:
    """The steps in order of the file; the doubts in order of time."""
    quits = [d for d in declared.dynamics if isinstance(d.action, ast.Quit)]
    _check_quits(quits, sink)
    quit_ns = min((d.start_ns for d in quits), default=None)
    steps: list[StatementStep] = []
    doubts = [Doubt(0, -1, resolver.named(name)) for name in sorted(declared.doubtful)]
    repeated = {id(again) for again in quits[1:]}
    for order, written in enumerate(declared.dynamics):
        if id(written) in repeated:
            continue
        before = len(sink.found)
        statement = of_machines(written, sink)
        if not rule(statement.action).targets:
            step = _whole(order, statement, resolver, sink)
            touched: Selection | None = EMPTY
        else:
            touched = resolver.resolve(statement.selector)
            step = _selected(order, statement, touched, quit_ns, resolver, sink)
        failed = any(d.severity.value == "error" for d in sink.found[before:])
        if step is not None and not failed:
            steps.append(step)
        else:
            doubts.append(_doubt(order, statement, touched))
    return steps, sorted(doubts, key=lambda doubt: (doubt.start_ns, doubt.order))


def _check_quits(quits: Sequence[ast.Dynamic], sink: Sink) -> None:
    for again in quits[1:]:
        sink.error(
            "TS0305",
            again.span,
            f"the experiment quits already on {ast.said(quits[0].span.place)}",
            "keep one of them",
        )


def _verb(action: ast.Action) -> str:
    if isinstance(action, ast.SetClock):
        return "set clock" if action.offset_ns is not None else "set drift"
    if isinstance(action, ast.SetDisk):
        return "set disk"
    if isinstance(action, ast.Set) and action.verb != "set":
        return action.verb if action.only is None else f"{action.verb} only=…"
    return type(action).__name__.lower()


# --- partition, heal, quit ----------------------------------------------------------------------


def _whole(
    order: int, statement: ast.Dynamic, resolver: Resolver, sink: Sink
) -> StatementStep | None:
    if not isinstance(statement.action, ast.Partition):
        return StatementStep(order, statement, EMPTY, statement.end_ns)
    groups = resolve_groups(statement.action, resolver, sink)
    some = _some_packets(statement.action, resolver, sink)
    if groups is None:
        return None
    return StatementStep(order, statement, EMPTY, statement.end_ns, groups, some)


# --- everything else ----------------------------------------------------------------------------


def _selected(
    order: int,
    statement: ast.Dynamic,
    chosen: Selection | None,
    quit_ns: int | None,
    resolver: Resolver,
    sink: Sink,
) -> StatementStep | None:
    end_ns = _end(statement, quit_ns, sink)
    if chosen is None:
        return None
    if chosen is not EMPTY:
        if not _check_kind(statement, chosen, resolver.declared, sink):
            return None
        if chosen.neck and not chosen.links:
            return None  # warned of where it is declared
        chosen = chosen.only(targets_of(statement))
    externals.refuse_programs(statement, chosen, resolver.layout, sink)
    _check_meaning(statement, chosen, sink)
    _check_count(statement, chosen, sink)
    _check_down(statement, chosen, sink)
    _check_bottleneck(statement, chosen, sink)
    some = _some_packets(statement.action, resolver, sink)
    return StatementStep(order, statement, chosen, end_ns, some=some)


def _some_packets(action: ast.Action, resolver: Resolver, sink: Sink) -> str:
    """What `only=` names, each service as all its instances; '' where it is not there or none."""
    if not isinstance(action, ast.Set | ast.Ramp | ast.Partition) or action.only is None:
        return ""
    words = [*action.only.protocols]
    planned = resolver.layout.planned.nodes
    for head, elements in (("from", action.only.sources), ("to", action.only.dests)):
        names: dict[str, None] = {}
        for element in elements:
            names |= dict.fromkeys(_instances_of(element, resolver, sink))
        further = sum(node.owner >= 0 and planned[node.owner].name in names for node in planned)
        if len(names) + further > MAX_ENDS:
            more = f" with {further} further interfaces" if further else ""
            message = f"{head}: names {len(names)} instances{more}, and an only= has {MAX_ENDS}"
            message += " at most"
            sink.error("TS0248", action.only.span, message, "name the other side instead")
        words += [f"{head}:{name}" for name in names]
    return ";".join(words)


def _instances_of(element: ast.Element, resolver: Resolver, sink: Sink) -> list[str]:
    found = resolver.resolve(element)
    if found is None:
        return []
    nodes = {*found.instances}
    for service in found.services:
        nodes |= {*resolver.layout.instances[service]}
    if found.bridges or found.links or not nodes:
        message = f"no packets are from or to {end_name(element.name, element.index)!r}"
        sink.error("TS0248", element.span, message, "name services or instances")
    return [resolver.layout.topology.nodes[node].name for node in sorted(nodes)]


def _end(statement: ast.Dynamic, quit_ns: int | None, sink: Sink) -> int | None:
    """The end of the interval; None for an instant."""
    if isinstance(statement.action, ast.Disconnect | ast.Pause):
        length = statement.action.for_ns
        return statement.end_ns if length is None else statement.start_ns + length
    if not statement.open_ended:
        return statement.end_ns
    if quit_ns is None:
        verb = _verb(statement.action)
        message = f"{verb!r} without an end goes on until `quit`, which is missing"
        sink.error("TS0304", statement.span, message, "add `at T quit`, or write `from … to …`")
        return None
    return max(quit_ns, statement.start_ns + 1)  # after the quit nothing of it is left


def _check_kind(statement: ast.Dynamic, chosen: Selection, declared: Declared, sink: Sink) -> bool:
    kinds = targets_of(statement)
    if any(kind in kinds for kind in chosen.kinds):
        return True
    verb = _verb(statement.action)
    if not chosen.named:
        hint = f"{verb!r} applies to {' and '.join(f'{kind}s' for kind in kinds)}"
        message = f"there is nothing here that can {verb}" if verb != "set" else "nothing to set"
        sink.error("TS0219", statement.span, message, hint)
        return False
    kind = chosen.kinds[0] if chosen.kinds else "link"
    message = f"{verb!r} does not apply to a {kind}"
    sink.error("TS0204", statement.action.span, message, _kind_hint(statement, kind, declared))
    return False


def _kind_hint(statement: ast.Dynamic, kind: str, declared: Declared) -> str:
    verb = _verb(statement.action)
    selector = ast.drawn_from(statement.selector)
    if isinstance(statement.action, ast.SetClock):
        return "clocks are of instances: name a service or one of them"
    if isinstance(statement.action, ast.SetDisk):
        return "disks are of instances: name a service or one of them"
    if kind == "bottleneck":
        return "name its paths; of a bottleneck `set` and `ramp` change capacity= and queue="
    if kind != "service" and isinstance(statement.action, Member):
        other = {"reconnect": "join", "resume": "join"}.get(verb, "leave")
        return f"a {kind} can `leave` and `join`: write `{other}`"
    if isinstance(selector, ast.Element):
        name, index = selector.name.text, selector.index
        for link in declared.links_at(name):
            ends = ((link.a, link.a_index), (link.b, link.b_index))
            if any(end.text == name and own in (None, index) for end, own in ends):
                words = [end_name(e, index if e.text == name else own) for e, own in ends]
                words = [words[0], name] if link.is_mesh else words
                more = "" if verb == "reject" or "only=" in verb else " …"
                return f"{verb!r} applies to links: write `{words[0]}--{words[1]} {verb}{more}`"
    return f"{verb!r} applies to {' and '.join(f'{k}s' for k in rule(statement.action).targets)}"


def _check_meaning(statement: ast.Dynamic, chosen: Selection, sink: Sink) -> None:
    """In an interval instances leave at drawn moments, and links and bridges for as long."""
    action = statement.action
    if not isinstance(action, ast.Leave) or action.sometime:
        return
    if statement.drawn is not None and "service" in chosen.kinds:
        message = "an instance that leaves is gone for good: 'for' is of links and bridges"
        hint = "write `restart after`, or when it joins again"
        sink.error("TS0221", action.span, message, hint)
        return
    if statement.end_ns is None:
        return
    if "service" in chosen.kinds and len(chosen.kinds) > 1:
        others = " and ".join(f"{kind}s" for kind in chosen.kinds[1:])
        message = f"in an interval instances leave at drawn moments, but {others} from end to end"
        hint = "name them apart, or write `leave sometime`: each at a drawn moment, for good"
        sink.error("TS0223", action.span, message, hint)


def _check_count(statement: ast.Dynamic, chosen: Selection, sink: Sink) -> None:
    """A bridge or a link by itself has no count (the parser says so of instances)."""
    action = statement.action
    if not isinstance(action, Member) or action.count is None or not chosen.single:
        return
    percent = action.count.unit is ast.Unit.PERCENT
    if action.count.value != (PPB if percent else 1):
        message = f"{chosen.what} is one thing, a count makes no sense"
        sink.error("TS0209", action.count.span, message, "leave the number out")


def _check_bottleneck(statement: ast.Dynamic, chosen: Selection, sink: Sink) -> None:
    """It has a capacity and a queue; everything else its paths have."""
    action = statement.action
    if not chosen.neck or not isinstance(action, ast.Set | ast.Ramp):
        return
    other = [one for one in action.assignments if one.prop.text not in BOTTLENECK_PROPERTIES]
    if other or action.only is not None:
        what = f"no {other[0].prop.text!r}" if other else "no classes of packets"
        span = other[0].span if other else action.span
        hint = "name its paths; of a bottleneck `set` and `ramp` change capacity= and queue="
        sink.error("TS0204", span, f"{chosen.what} has {what}", hint)


def _check_down(statement: ast.Dynamic, chosen: Selection, sink: Sink) -> None:
    """`a->b set down=…` names the direction that it has left out."""
    if not isinstance(statement.action, ast.Set | ast.Ramp):
        return
    if not any(len(link) == 1 for link in chosen.links):
        return
    for assignment in statement.action.assignments:
        if assignment.prop.text == "down":
            message = "`down` is the direction that `a->b` leaves out"
            sink.error("TS0204", assignment.prop.span, message, "write `rate=`, or select `a--b`")
