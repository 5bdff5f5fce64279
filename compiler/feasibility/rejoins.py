"""TS0922: an instance comes back whose program a cluster does not know, and so comes back late.

Without `entrypoint=` kubelet starts the image as it is. After a leave or a crash it makes the pod's
containers anew, and delays those that end repeatedly by 10 s, 20 s and so on (docs/kubernetes.md).
Asked for where a plan is to run on Kubernetes only; one with a service without image never does.

Input: services, events in order, and the statements of the text. One warning a line. Linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.feasibility.statement_places import Makers
from compiler.phrases import moment, number
from compiler.plan.event_kinds import ENDINGS
from compiler.plan.reader import Plan
from compiler.plan.types import Event, Service
from compiler.sources import RecordedFiles
from tdl import ast
from tdl.diagnostics import Diagnostic, Sink, sort
from tdl.parser import parse_partial

_SHOWN = 3  # services that the hint names

Maker = Callable[[Event], ast.Dynamic | None]


@dataclass(slots=True)
class _Late:
    """What comes back by one line: the first of it, all services, how many rejoins."""

    first: Event
    services: dict[str, None] = field(default_factory=dict)
    count: int = 0


def warn(services: Sequence[Service], events: Iterable[Event], maker: Maker, sink: Sink) -> None:
    for (file, line), late in _by_place(services, events).items():
        statement = maker(late.first)
        span = statement.span if statement else ast.Span(line, 1, line, 1, file)
        message = (
            f"{late.first.target!r} comes back at {moment(late.first.at_ns)}; without its "
            "`entrypoint=` Kubernetes takes about 1s for that, and 10s or more after several "
            "restarts"
        )
        if late.count > 1:
            message += f"; {number(late.count - 1, 'more rejoin')} like it"
        names = [repr(name) for name in late.services]
        shown = ", ".join(names[:_SHOWN])
        if len(names) > _SHOWN:
            shown += f" and {number(len(names) - _SHOWN, 'more service')}"
        hint = f"give {shown} an `entrypoint=`, and the image's own arguments as `command=`"
        sink.warning("TS0922", span, message, hint)


def of_plan(plan: Plan) -> tuple[Diagnostic, ...]:
    """The warnings about a finished plan, at the places of its own text."""
    services = plan.topology.services
    if all(service.entrypoint for service in services):
        return ()
    sink = Sink()
    if _by_place(services, plan.events):
        warn(services, plan.events, Makers(_dynamics(plan)).maker, sink)
    return sort(sink.found)


def _dynamics(plan: Plan) -> Iterable[ast.Dynamic]:
    statements = parse_partial(plan.source, RecordedFiles(plan), plan.params).file.statements
    return (statement for statement in statements if isinstance(statement, ast.Dynamic))


def _by_place(
    services: Sequence[Service], events: Iterable[Event]
) -> Mapping[tuple[str, int], _Late]:
    if not all(service.image for service in services):
        return {}
    unknown = {service.name for service in services if not service.entrypoint}
    gone: set[str] = set()
    found: dict[tuple[str, int], _Late] = {}
    for event in events:
        if event.kind in ENDINGS:
            gone.add(event.target)
        elif event.kind == "join" and event.target in gone:
            service = event.target.rpartition(".")[0]
            if service in unknown:
                late = found.setdefault(event.place, _Late(event))
                late.services[service] = None
                late.count += 1
    return found
