"""TS0918: services and instances that never join. TS0919: tags that look like a slip of another.
TS0935: `start when ready` without anything that could be waited for. TS0936: `after=` a service of
which nobody can say when it is ready.

Tags also tell people and other programs what an element is, so that most tags of a file may be
selected by no event. Only one that is nearly the same as a tag that an event does select (`clients`
beside `client`, `wset` beside `west`) is worth a word: its element is missed by that event.

Input: a model without errors and its timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.declare.model import Model
from compiler.expand.timeline import Timeline
from compiler.feasibility.wording import Names, lines
from compiler.phrases import moment, number
from tdl import ast
from tdl.diagnostics import Sink


def warn(model: Model, timeline: Timeline, sink: Sink) -> None:
    _never_joined(model, timeline, sink)
    _tags(model, sink)
    _start(model, sink)


# --- joins --------------------------------------------------------------------------------------


def _never_joined(model: Model, timeline: Timeline, sink: Sink) -> None:
    """A whole service always; some of its instances only where a join of theirs comes too late."""
    joined = {event.target for event in timeline.events if event.kind == "join"}
    nodes = model.topology.nodes
    for position, statement in enumerate(model.declared.services.values()):
        instances = model.layout.instances[position]
        absent = [node for node in instances if nodes[node].name not in joined]
        late = sorted(_late_joins(model, timeline, position, absent)) if absent else []
        if not absent or (len(absent) < len(instances) and not late):
            continue
        name = statement.name.text
        if len(absent) == len(instances):
            what = f"service {name!r} never joins"
        else:
            what = f"{Names(model.topology, ()).of(absent)} never join{'s' * (len(absent) == 1)}"
        hint = f"add `at 0s {name} join`, or remove the service"
        if late:
            end = moment(timeline.end_ns)
            hint = f"the join of {lines(late)} comes after the end at {end}: move it before"
        sink.warning("TS0918", statement.name.span, what, hint)


def _late_joins(
    model: Model, timeline: Timeline, service: int, absent: Sequence[int]
) -> Iterator[tuple[str, int]]:
    """Places of joins of the service, or of those of it that are absent, that the end of the
    experiment has cut off or left out."""
    if not timeline.events or timeline.events[-1].kind != "quit":
        return
    for step in model.steps:
        statement = step.statement
        if not isinstance(statement.action, ast.Join):
            continue
        theirs = service in step.chosen.services or any(n in absent for n in step.chosen.instances)
        last = statement.start_ns if step.end_ns is None else step.end_ns
        if theirs and last > timeline.end_ns:
            yield statement.span.place


# --- tags ---------------------------------------------------------------------------------------


def _tags(model: Model, sink: Sink) -> None:
    """Where an event selects a tag that nobody has, TS0901 says so."""
    declared, dynamics = model.declared, model.declared.dynamics
    used = {name for statement in dynamics for name in _selected(statement)} & {*declared.tags}
    slips: dict[str, str] = {}
    for tag in sorted(used):
        for form in _forms(tag):
            slips.setdefault(form, tag)
    first = _first_uses(model)
    for tag in declared.tags:
        meant = next((slips[form] for form in _forms(tag) if form in slips), None)
        if meant is None or tag in used:
            continue
        place, count = first[tag]
        also = f" (it stands on {number(count, 'declaration')})" if count > 1 else ""
        message = f"no event selects the tag {tag!r}{also}, and one selects {meant!r}"
        sink.warning("TS0919", place.span, message, f"if it is the same, write {meant!r}")


def _forms(tag: str) -> Iterator[str]:
    """What two tags share that differ by case, hyphens, two letters swapped or an `s` at the end.

    Shorter words than `west` are too often alike by chance; digits tell one from another.
    """
    plain = tag.lower().replace("-", "").replace("_", "")
    yield plain
    if len(plain) > 3:
        yield plain.removesuffix("s")
        if plain.isalpha():
            yield plain[0] + "".join(sorted(plain[1:]))


def _selected(statement: ast.Dynamic) -> Iterator[str]:
    """The words of a statement that may be tags."""
    action = statement.action
    selectors: list[ast.Selector] = [ast.drawn_from(statement.selector)]
    if isinstance(action, ast.Partition):
        selectors += [member for group in action.groups for member in group]
    for selector in selectors:
        if isinstance(selector, ast.Tagged):
            yield from (tag.text for tag in selector.tags)
        elif isinstance(selector, ast.Element):
            yield selector.name.text  # the public dialect names tags without `tags=`


def _first_uses(model: Model) -> dict[str, tuple[ast.Name, int]]:
    """Where each tag stands first, and on how many declarations."""
    declared = model.declared
    carriers = [service.tags for service in declared.services.values()]
    carriers += [link.tags for link in declared.links]
    carriers += [bridge.tags for bridge in declared.bridges.values()]
    found: dict[str, tuple[ast.Name, int]] = {}
    for carrier in carriers:
        for tag in carrier:
            name, count = found.get(tag.text, (tag, 0))
            found[tag.text] = (min(name, tag, key=lambda each: each.span), count + 1)
    return found


# --- start when ready ---------------------------------------------------------------------------


def _may_be_asked(service: ast.ServiceStatement) -> bool:
    """Whether there is a check; an image that is run may have a health check."""
    if service.ready is not None:
        return service.ready != "none"
    return bool(service.image and not service.exec)


def _start(model: Model, sink: Sink) -> None:
    start, services = model.declared.start, model.declared.services
    waits = list(_waits(services.values()))
    if start is not None and not waits and not any(map(_may_be_asked, services.values())):
        hint = "add ready=tcp:PORT or a command to what others connect to; they start after it"
        sink.warning("TS0935", start.span, "nothing is waited for: no service has a check", hint)
    for word, name, what in waits:
        if not what and name in services and not _may_be_asked(services[name]):
            message = f"'{name}' has no check: it counts as ready when its programs are started"
            hint = f"add ready=tcp:PORT or a command to {name}; or say so: after={name}:start"
            sink.warning("TS0936", word.span, message, hint)


def _waits(services: Iterable[ast.ServiceStatement]) -> Iterator[tuple[ast.Name, str, str]]:
    """The word `after`, whom a service starts after, and what of it: '' is that it is ready."""
    for service in services:
        for word, value in service.options:
            if word.text == "after":
                for one in value.split(";"):
                    name, _, what = one.partition(":")
                    yield word, name, what
