"""The instances that an expectation names: `db`, `db.*`, `db.0`, `a;b`, `*`; and, where it is about
paths, interfaces of them: `phone.0.eth1`.

Input: a group of subjects, the declarations and the layout. Output: nodes, each once, ascending, or
None after a report (TS0406, TS0408).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.declare.declared import Declared
from compiler.declare.ends import runs
from compiler.declare.topology import Layout
from compiler.phrases import number
from compiler.plan.types import FIRST_INTERFACE
from tdl import ast
from tdl.diagnostics import Sink


class Subjects:
    def __init__(self, declared: Declared, layout: Layout, sink: Sink) -> None:
        self._declared = declared
        self._layout = layout
        self._sink = sink
        nodes = layout.planned.nodes
        self._interfaces = {one.name: at for at, one in enumerate(nodes) if one.owner >= 0}
        owners = dict.fromkeys(one.owner for one in nodes if one.owner >= 0)
        self._interfaces |= {f"{nodes[at].name}.{FIRST_INTERFACE}": at for at in owners}

    def nodes(
        self, group: Iterable[ast.Subject], *, programs: bool = False, ends: bool = False
    ) -> tuple[int, ...] | None:
        """With `programs` those that run one; to name a service without is an error then. With
        `ends` interfaces are among them, by their nodes in the plan."""
        found: set[int] = set()
        failed = False
        for subject in group:
            nodes = list(self._of(subject, programs, ends))
            failed = failed or not nodes
            found.update(nodes)
        return None if failed else tuple(sorted(found))

    def _of(self, subject: ast.Subject, programs: bool, ends: bool) -> Iterator[int]:
        """Nothing after a report."""
        if isinstance(subject, ast.Everyone):
            yield from self._everyone(subject, programs)
            return
        name = subject.name.text
        service = self._declared.services.get(name)
        if ends and name in self._interfaces:
            yield self._interfaces[name]
            return
        if service is None:
            self._unknown(subject, ends)
            return
        if programs and not runs(service):
            message = f"{name!r} has no program"
            self._sink.error("TS0408", subject.span, message, "give it exec= or img=")
            return
        nodes = self._layout.instances[self._layout.service_of[name]]
        if subject.index is None:
            yield from nodes
        elif subject.index < len(nodes):
            yield nodes[subject.index]
        else:
            message = f"there is no '{name}.{subject.index}': {name!r} has "
            message += number(len(nodes), "instance")
            last = f"the last is {name}.{len(nodes) - 1}"
            self._sink.error("TS0406", subject.span, message, last)

    def _everyone(self, subject: ast.Everyone, programs: bool) -> Iterator[int]:
        services = self._declared.services
        chosen = [name for name in services if not programs or runs(services[name])]
        if not chosen:
            what = "no service has a program" if services else "there is no service"
            self._sink.error("TS0408", subject.span, what, "give one of them exec= or img=")
        for name in chosen:
            yield from self._layout.instances[self._layout.service_of[name]]

    def _unknown(self, subject: ast.Element, ends: bool) -> None:
        declared, name = self._declared, subject.name.text
        service, dot, rest = name.partition(".")
        if dot and service in declared.services:
            index = rest.partition(".")[0]
            instance = f"{service}.{index if index.isdecimal() else 0}"
            self._no_interface(subject, instance, ends)
            return
        if name in declared.bridges:
            what = "name a service or one of its instances"
            self._sink.error("TS0406", subject.span, f"{name!r} is a bridge", what)
            return
        tagged = [one for one, service in declared.services.items() if _has(service, name)]
        near = declared.guesses.nearest(name, list(declared.services))
        hint: str | None = None
        if tagged:
            hint = f"{name!r} is a tag: write {';'.join(tagged[:3])}"
        elif near:
            hint = f"did you mean {near!r}?"
        elif declared.services:
            hint = f"services: {', '.join(list(declared.services)[:5])}"
        self._sink.error("TS0406", subject.span, f"there is no service {name!r}", hint)

    def _no_interface(self, subject: ast.Element, instance: str, ends: bool) -> None:
        name = subject.name.text
        own = [one for one in self._interfaces if one.rpartition(".")[0] == instance]
        message = f"there is no interface {name!r}"
        hint = f"{instance} has " + ", ".join(sorted(own))
        if not own:
            hint = "an instance has several where its service says `interfaces`"
        elif not ends:
            message = f"{name!r} is an interface, and programs are of instances"
            hint = f"write {instance}"
        self._sink.error("TS0350", subject.span, message, hint)


def _has(service: ast.ServiceStatement, tag: str) -> bool:
    return any(one.text == tag for one in service.tags)
