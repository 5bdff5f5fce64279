"""How many instances a service has, and whether each of them has a link and its published ports.

`replicas=` says it. Where it is not given it is 1, or as many as links name (`link server.3--s1`:
four), and joins raise it: `at 0s server join 5` makes five. Input: the declarations. Output: a
number for every service, which for services without `replicas=` is what their links and joins
certainly need (a lower bound: who has left by then may depend on draws, so the walk through time
has the last word).
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.declare.actions import rule
from compiler.declare.declared import Declared
from compiler.declare.ends import runs
from compiler.declare.nodes import kernel_lans
from compiler.phrases import declared_as
from compiler.plan.format import MAX_INSTANCES, MAX_LINKS, MAX_NODES
from compiler.plan.packet_class import MAX_PORT
from compiler.plan.parts.action_texts import number_of
from compiler.plan.parts.service_words import ports_in
from compiler.plan.routes.core import MAX_CELLS
from tdl import ast
from tdl.diagnostics import Sink

SHOWN = 3  # instances that a message names


def count(declared: Declared, raised: Mapping[str, int]) -> dict[str, int]:
    """Replicas by service, at least `raised`."""
    needs = _needs(declared)
    found: dict[str, int] = {}
    for name, statement in declared.services.items():
        if statement.replicas is not None:
            found[name] = statement.replicas
        else:
            found[name] = raised.get(name, needs.get(name, 1))
    return found


def at_first(declared: Declared) -> dict[str, int]:
    """Instances by service before any join: `replicas=`, or what links name, or 1."""
    found = {name: service.replicas or 1 for name, service in declared.services.items()}
    for link in declared.links:
        for name, index in ((link.a.text, link.a_index), (link.b.text, link.b_index)):
            if index is not None:
                found[name] = max(found[name], index + 1)
    return found


def _needs(declared: Declared) -> dict[str, int]:
    """Certain needs: joins add up until anything may have been removed."""
    joined = dict.fromkeys(declared.services, 0)
    need = at_first(declared)
    removed: set[str] = set()
    planned = (one for one in declared.dynamics if not number_of(one.span.file))
    for dynamic in sorted(planned, key=lambda d: d.start_ns):
        action = dynamic.action
        if rule(action).removes:
            if len(removed) < len(declared.services):
                removed.update(_may_touch(dynamic.selector, declared))
        elif isinstance(action, ast.Join) and isinstance(dynamic.selector, ast.Element):
            name = dynamic.selector.name.text
            if name in declared.services and dynamic.selector.index is None:
                more = _asked(action, need[name] - joined[name])
                need[name] = max(need[name], more + (0 if name in removed else joined[name]))
                if dynamic.end_ns is None and name not in removed:
                    joined[name] += more
    return need


def _asked(action: ast.Join, absent: int) -> int:
    if action.count is None:
        return max(absent, 0)
    return action.count.value if action.count.unit is ast.Unit.NUMBER else 0


def _may_touch(selector: ast.Selector, declared: Declared) -> list[str]:
    match selector:
        case ast.Element(name=name):
            if name.text in declared.services:
                return [name.text]
            return list(declared.services) if name.text in declared.tags else []
        case ast.LinkSelector():
            return []
        case _:
            return list(declared.services)


def _others(declared: Declared) -> dict[str, dict[int | None, list[str]]]:
    """What each service is linked to: by instance, and under None what all of it is linked to."""
    found: dict[str, dict[int | None, list[str]]] = {name: {} for name in declared.services}
    for link in declared.links:
        a, b = (link.a.text, link.a_index), (link.b.text, link.b_index)
        for (end, index), (other, _) in ((a, b), (b, a)):
            if end in found:
                found[end].setdefault(index, []).append(other)
    return found


def _table(declared: Declared, counts: Mapping[str, int]) -> tuple[int, int]:
    """Rows and columns of the plan's routing table (plan.routes.core), without making it."""
    core = 0
    anchors: set[str] = set()
    for name, others in _others(declared).items():
        every = others.pop(None, [])
        groups = [(1, every + own) for own in others.values()]
        groups.append((counts[name] - len(others), every))
        for count, linked in groups:
            if len(linked) == 1 and linked[0] in declared.bridges:
                anchors.update(linked if count > 0 else ())
            else:
                core += max(count, 0)
    return len(declared.bridges) + core, len(anchors) + core


def _directions(link: ast.LinkStatement, counts: Mapping[str, int]) -> int:
    a = counts.get(link.a.text, 1) if link.a_index is None else 1
    if link.is_mesh:
        return a * (a - 1)
    b = counts.get(link.b.text, 1) if link.b_index is None else 1
    return 2 * a * b


def _interfaces(declared: Declared, counts: Mapping[str, int]) -> int:
    """Interfaces after the first of each instance."""
    wanted = {name for name, service in declared.services.items() if service.own_interfaces}
    ends = dict.fromkeys(wanted, 0)
    for link in declared.links:
        for name in (link.a.text, link.b.text):
            if name in wanted:
                ends[name] += _directions(link, counts) // 2
    return sum(max(count - counts[name], 0) for name, count in ends.items())


def check_linked(declared: Declared, counts: Mapping[str, int], sink: Sink) -> None:
    """Reports TS0123 for services of which some instances have a link and others have none."""
    broken = {name for pair in declared.broken for name in pair}
    found = _others(declared)
    for name, index, lan in kernel_lans.linked(declared.machines):
        found[name].setdefault(index, []).append(lan)
    for name, others in found.items():
        alone = counts[name] == 1 and name not in broken
        if alone and {other for found in others.values() for other in found} == {name}:
            message = (
                f"'{name}.0' has no link: there is no other instance that it could be linked to"
            )
            hint = f"declare `service {declared_as(name)} replicas=2`, or link it to something else"
            sink.error("TS0123", declared.services[name].name.span, message, hint)
        if None in others or not others or name in broken:
            continue
        missing = [index for index in range(counts[name]) if index not in others]
        if not missing:
            continue
        words = ", ".join(repr(f"{name}.{index}") for index in missing[:SHOWN])
        if len(missing) > SHOWN:
            words += f" and {len(missing) - SHOWN:,} more"
        message = f"{words} {'has' if len(missing) == 1 else 'have'} no link"
        if declared.services[name].replicas is None and missing[-1] >= at_first(declared)[name]:
            message += f"; joins raise {name!r} to {counts[name]:,} instances"
        place = next(iter(others.values()))[0]
        hint = f"`link {name}.{missing[0]}--{place}`, or `link {name}--{place}` for every instance"
        sink.error("TS0123", declared.services[name].name.span, message, hint)


def too_many(declared: Declared, counts: Mapping[str, int], sink: Sink) -> bool:
    """Reports TS0112 when the address range or the plan's format cannot hold so many."""
    instances, further = sum(counts.values()), _interfaces(declared, counts)
    links = sum(_directions(link, counts) for link in declared.links)
    largest = max(counts, key=lambda name: counts[name], default="")
    hint = f"most instances belong to {largest!r}: {counts[largest]:,}" if largest else ""
    ends = instances + further
    if ends > MAX_INSTANCES or ends + len(declared.bridges) > MAX_NODES:
        more = f", {further:,} interfaces beside the first of each," if further else ""
        message = (
            f"{instances:,} instances{more} and {len(declared.bridges):,} bridges; "
            f"an experiment has at most {MAX_INSTANCES:,} instances and {MAX_NODES:,} nodes"
        )
    elif links > MAX_LINKS:
        message = f"{links:,} link directions; an experiment has at most {MAX_LINKS:,}"
    elif (table := _table(declared, counts))[0] * table[1] > MAX_CELLS:
        hint = "give services one link to a bridge each, or declare fewer bridges"
        message = (
            f"routes from {table[0]:,} bridges and instances with several links to {table[1]:,} "
            f"places of instances; their product is at most {MAX_CELLS:,}"
        )
    else:
        return False
    if largest:
        span = declared.services[largest].name.span
    else:
        span, hint = next(iter(declared.bridges.values())).name.span, "declare fewer bridges"
    sink.error("TS0112", span, message, hint)
    return True


# What services say of ports of this machine, `publish=`: each of these leads to one instance.
#
# Input: the declarations and how many instances each service has. Of `publish=8080:80` instance k
# is at port 8080 + k; `publish=80` takes what is free when the run begins. TS0726, TS0943.

MOST_PUBLISHED = 100  # ports of an experiment: each is a process while it runs


def check_published(
    services: Mapping[str, ast.ServiceStatement], counts: Mapping[str, int], sink: Sink
) -> None:
    """The first mistake of each service, and whether there is anybody to listen."""
    taken: dict[int, str] = {}
    left = MOST_PUBLISHED
    for name, service in services.items():
        for word, value in service.options:
            if word.text != "publish":
                continue
            ports = ports_in(value)
            left -= len(ports) * counts[name]
            message, hint = _mistake(name, ports, counts[name], taken)
            if left < 0 and not message:
                message = f"more than {MOST_PUBLISHED} ports of this machine are published"
                hint = "tstorm forward leads to single instances of a run"
            if message:
                sink.error("TS0726", word.span, message, hint)
            elif not runs(service):
                message = f"{name!r} has no program that could listen at a published port"
                sink.warning("TS0943", word.span, message, "add exec= or img=")


def _mistake(
    name: str, ports: tuple[tuple[int, int], ...], count: int, taken: dict[int, str]
) -> tuple[str, str]:
    """What is wrong and what to do, or two empty texts. `taken`: who is at ports of this machine,
    to which this service is added."""
    for local, port in ports:
        last = max(port, local + count - 1 if local else 0)
        if last > MAX_PORT:
            what = "there is no port" if count == 1 else f"{count:,} instances would need port"
            return f"{what} {last}", f"ports go to {MAX_PORT}"
        for index in range(count if local else 0):
            other = taken.setdefault(local + index, f"{name}.{index}:{port}")
            if other != f"{name}.{index}:{port}":
                message = f"port {local + index} of this machine leads to {other} already"
                return message, "name another port before the colon"
    return "", ""
