"""Which words of the language a way of running a plan does not carry out yet.

A plan that uses one is refused there by name, before anything is started: nothing is ignored.
Whoever carries a word out removes the way from its row, and the row with its last way. What
Kubernetes and Compose carry out under conditions only is in manifests/unsupported.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.plan.parts.planned_reactions import are_waited_for
from compiler.plan.parts.service_words import after, aliases, published
from compiler.plan.rules.datapath_fit import Misfit, of_links
from compiler.plan.types import REACTIONS, Event, Service, Topology

if TYPE_CHECKING:
    from compiler.plan.reader import Plan

LOCAL = "local"  # `tstorm run` on one machine, also with several local hosts, and in virtual time
KUBERNETES = "k8s"  # rendered for Kubernetes, and `tstorm run --backend k8s`
COMPOSE = "compose"  # `tstorm render --format compose`
_ALL = frozenset((LOCAL, KUBERNETES, COMPOSE))
_LOCAL = frozenset((LOCAL,))
_ELSEWHERE = frozenset((KUBERNETES, COMPOSE))
_COMPOSE = frozenset((COMPOSE,))
_KUBERNETES = frozenset((KUBERNETES,))
_OF_PATHS = frozenset((KUBERNETES, COMPOSE))  # between their hosts a path is one queue


# In the canonical text of a `when`, a line of its block.
_SETS_CLOCK = re.compile(r"^ .* set (clock[+-]?=|drift=)", re.MULTILINE)
SETS_DISK = re.compile(r"^ .* set disk=", re.MULTILINE)
FAILS_CALLS = re.compile(r"^ .* set disk=error:", re.MULTILINE)
FAILS_POWER = re.compile(r"^ .* crash (\S+ )?power( and |$)", re.MULTILINE)


# Kinds of `when` that a way does not wait for.
_REACTIONS_LACKING = {COMPOSE: REACTIONS}


@dataclass(frozen=True, slots=True)
class CapabilityRow:
    word: str  # as it is written
    stated: Callable[[Service], object]  # true where a service has it
    lacking: frozenset[str] = _ALL  # ways that do not carry it out


def _on_the_machine(service: Service) -> bool:
    """Files that would be put into the machine's own file system: `exec=` wins over the image,
    and without fs=private there is no other. They are never written there."""
    outside = service.cwd or any(file.path.startswith("/") for file in service.files)
    imaged = service.image and not service.exec
    return bool(service.files and outside and not imaged and not service.fs)


SERVICE_WORDS = (
    CapabilityRow(
        "files= outside of an instance's own folder without fs=private", _on_the_machine, _LOCAL
    ),
    CapabilityRow("after=", after, _ELSEWHERE),
    CapabilityRow("alias=", aliases, _ELSEWHERE),
    CapabilityRow("publish=", published, _ELSEWHERE),
)


@dataclass(frozen=True, slots=True)
class Setting:
    word: str
    stated: Callable[[Topology], object]
    lacking: frozenset[str] = _ALL


SETTINGS = (
    Setting("network ipv6", lambda topology: topology.network == "ipv6", _COMPOSE),
    Setting("start when ready", lambda topology: topology.start_when_ready, _COMPOSE),
)


@dataclass(frozen=True, slots=True)
class ServiceEvents:
    """A kind of event that a way carries out for no service, or not for those of `what`."""

    kind: str
    lacking: frozenset[str]
    of: Callable[[Service], object] = lambda _: True
    what: str = ""


EVENTS = (
    ServiceEvents("kill", _COMPOSE),
    # The container of a program that nobody knows ends with it, and is started again at once.
    ServiceEvents("kill", _KUBERNETES, lambda s: not s.entrypoint, ", which has no entrypoint="),
)


def own_clock(plan: Plan) -> Misfit | None:
    """The first statement by which an instance has a real-time clock of its own."""
    what = "a clock of its own for {} (set clock=, drift=)"
    return _first(plan, lambda event: event.kind == "clock", _SETS_CLOCK, what)


def _first(
    plan: Plan, concerns: Callable[[Event], bool], pattern: re.Pattern[str], what: str
) -> Misfit | None:
    """Of such events, and of what a `when` has with this pattern in its text. `what` is with whom
    it is about left out."""
    for event in plan.events:
        if concerns(event):
            said = what.format(event.target)
            return Misfit(said, 1, 0, "", event.at_ns, "", event.line, event.file)
    for reaction in plan.topology.reactions:
        if pattern.search(reaction.text):
            said = what.format("an instance")
            return Misfit(said, 1, 0, "", 0, "", reaction.line, reaction.file)
    return None


def reacting(plan: Plan, kinds: Collection[str]) -> Misfit | None:
    """The first `when` of these kinds that a run of the plan waits for."""
    if are_waited_for(plan):
        for one in plan.topology.reactions:
            if one.kind in kinds:
                what = "when" if len(kinds) > 1 else f"when {one.kind}"
                return Misfit(what, 1, 0, "", 0, "", one.line, one.file)
    return None


def _out_of_reach(plan: Plan) -> Misfit | None:
    """The first `when file` about instances whose directory no agent knows: those of a program that
    no tstorm-hold starts, or that begins wherever its image says."""
    topology = plan.topology
    for one in topology.reactions if are_waited_for(plan) else ():
        for node in one.nodes if one.kind == "file" else ():
            service = topology.services[topology.nodes[node].service]
            missing = "" if service.entrypoint else "entrypoint="
            missing = missing or ("" if service.cwd else "cwd=")
            if missing:
                what = f"when file (of service {service.name}, which has no {missing})"
                return Misfit(what, 1, 0, "", 0, "", one.line, one.file)
    return None


def power_failure(plan: Plan) -> Misfit | None:
    """The first statement by which the power of an instance fails."""
    what = "a power failure of {} (crash power)"
    return _first(plan, lambda event: "power_seed" in event.args, FAILS_POWER, what)


def disk_fault(plan: Plan) -> Misfit | None:
    """The first statement by which the disk of an instance has a fault."""
    what = "a disk of its own for {} (set disk=)"
    return _first(plan, lambda event: event.kind == "disk", SETS_DISK, what)


def refusal(plan: Plan, way: str) -> str:
    """What of the plan this way does not carry out, as a sentence; '' if it carries out all."""
    return _words(_not_carried(plan, way), way)


def to_blame(plan: Plan, way: str) -> Misfit | None:
    """The first of that, where it is something that a line of the text asks for."""
    found = of_links(plan, "user") if way in _OF_PATHS else None
    if found is not None and not found.limit:
        return found
    kinds = _REACTIONS_LACKING.get(way, ())
    found = reacting(plan, kinds) or (_out_of_reach(plan) if way == KUBERNETES else None)
    if found is None and way in _ELSEWHERE:
        return own_clock(plan) or power_failure(plan) or disk_fault(plan)
    return found


def _not_carried(plan: Plan, way: str) -> Iterable[str]:
    topology = plan.topology
    unfit = to_blame(plan, way)
    if unfit is not None:
        yield unfit.what.removeprefix("the ")
    for row in SERVICE_WORDS:
        whose = next((one.name for one in topology.services if row.stated(one)), None)
        if whose is not None and way in row.lacking:
            yield f"{row.word} (of service {whose})"
    for setting in SETTINGS:
        if way in setting.lacking and setting.stated(topology):
            yield setting.word
    for kind in EVENTS:
        if way in kind.lacking:
            yield from _events_of(plan, kind)


def _events_of(plan: Plan, row: ServiceEvents) -> Iterable[str]:
    """Of the first service whose instances have such events."""
    whose = {event.target.rpartition(".")[0] for event in plan.events if event.kind == row.kind}
    for service in plan.topology.services:
        if service.name in whose and row.of(service):
            yield f"{row.kind} (of service {service.name}{row.what})"
            return


_WAYS = {
    LOCAL: "a run on one machine",
    KUBERNETES: "Kubernetes",
    COMPOSE: "a file for Compose",
}


def _words(found: Iterable[str], way: str) -> str:
    words = ", ".join(found)
    return words and f"{_WAYS[way]} does not carry out {words} yet"
