"""`node`: machines with parts become ordinary services, bridges and links.

Input: the tree. Output: the tree in which each machine's parts are declared by names of their own
(`sat.3.iphy`, `sat.3.inner`), and in which names of machines and of parts stand for these: `sat.3`
for all parts of one machine, `sat.iphy` for this part of each, `sat` for all of all. Links, groups
and subjects name each of them; selectors become `ast.Members`. Source: docs/nodes.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

from compiler.declare.nodes import kernel_lans
from compiler.declare.nodes.other_elements import OtherElements
from compiler.phrases import end_name, number
from compiler.plan.format import MAX_INSTANCES, MAX_LINKS
from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean

_NAME = re.compile(r"([^.]+)(?:\.([0-9]+))?(?:\.([^.0-9][^.]*))?")
_OF_ONE = re.compile(r"([^.]+)\.[0-9]+\.([^.]+)")  # as _named() makes it
_SHOWN = 5  # parts that a message names
_Body = ast.ServiceStatement | ast.Bridges | ast.LinkStatement


def parts_of(node: ast.NodeStatement) -> dict[str, int]:
    """By name: how many instances, 0 for a bridge; as a machine of the node has them, and without
    lans of the kernel's, which no link of the plan leads to."""
    found: dict[str, int] = {}
    for statement in node.body:
        if isinstance(statement, ast.ServiceStatement):
            found[statement.name.text] = 1 if statement.replicas is None else statement.replicas
        elif isinstance(statement, ast.Bridges) and not statement.of_kernel:
            found |= dict.fromkeys((name.text for name in statement.names), 0)
    return found


def with_parts(file: ast.File, sink: Sink) -> ast.File:
    """Reports TS0101, TS0202, TS0620 to TS0627 and TS0629; what is wrong is left out."""
    kernel_lans.check_outside(file.statements, sink)
    nodes = [one for one in file.statements if isinstance(one, ast.NodeStatement)]
    if not nodes:
        return file
    names = _outside(file.statements)
    known = {node.name.text: node for node in nodes if _is_usable(node, names, sink)}
    machines = _Machines(known, names, sink)
    own = [one for node in known.values() for one in machines.parts(node)]
    rest = [one for one in file.statements if one not in nodes or one in known.values()]
    links = [one for one in rest if isinstance(one, ast.LinkStatement)]
    outer = {id(link): machines.links(link) for link in links}
    machines.see(one for one in (*own, *(one for found in outer.values() for one in found)))
    statements: list[ast.Statement] = list(own)
    for one in rest:
        statements += outer[id(one)] if id(one) in outer else machines.resolved(one)
    return ast.File(tuple(statements))


def _outside(statements: Iterable[ast.Statement]) -> dict[str, ast.Span]:
    """What is declared beside machines."""
    found: dict[str, ast.Span] = {}
    for one in statements:
        if isinstance(one, ast.ServiceStatement | ast.Bottleneck):
            found.setdefault(one.name.text, one.span)
        elif isinstance(one, ast.Bridges):
            for name in one.names:
                found.setdefault(name.text, name.span)
        elif isinstance(one, ast.LinkStatement) and one.name is not None:
            found.setdefault(one.name.text, one.name.span)
    return found


def _is_usable(node: ast.NodeStatement, names: dict[str, ast.Span], sink: Sink) -> bool:
    """Remembers its name, if it is."""
    before = len(sink.found)
    name = node.name
    if name.text in names:
        message = f"{name.text!r} is declared twice; the other is on "
        message += ast.said(names[name.text].place)
        sink.error("TS0101", name.span, message, "give one of them another name")
    names.setdefault(name.text, name.span)
    seen: set[str] = set()
    for part in _part_names(node):
        if part.text in seen:
            message = f"{part.text!r} is declared twice in machine {name.text!r}"
            sink.error("TS0101", part.span, message, "give one of them another name")
        seen.add(part.text)
    parts = parts_of(node)
    if not any(parts.values()):
        hint = 'write one into its block, such as `service app exec="./app"`'
        sink.error("TS0622", name.span, f"machine {name.text!r} has no part that runs", hint)
    if node.replicas * sum(parts.values()) > MAX_INSTANCES:
        message = f"{number(node.replicas, 'machine')} with {number(sum(parts.values()), 'part')}"
        message += f" each; an experiment has at most {MAX_INSTANCES:,} instances"
        sink.error("TS0624", name.span, message, "write fewer replicas=")
    return len(sink.found) == before


def _part_names(node: ast.NodeStatement) -> Iterator[ast.Name]:
    for one in node.body:
        if isinstance(one, ast.ServiceStatement):
            yield one.name
        elif isinstance(one, ast.Bridges):
            yield from one.names


def _link_names(node: ast.NodeStatement) -> Iterator[str]:
    for one in node.body:
        if isinstance(one, ast.LinkStatement) and one.name is not None:
            yield one.name.text


class _Named(NamedTuple):
    """What a name means: machines of a node, or a part of them ('': all parts)."""

    node: ast.NodeStatement
    machines: range
    part: str

    def elements(self, element: ast.Element) -> list[ast.Element]:
        """Each by its full name; an index behind the name of a part is kept."""
        words = (self.part,) if self.part else parts_of(self.node)
        index = element.index if self.part else None
        return [
            replace(element, name=_named(element.name, self.node, at, word), index=index)
            for at in self.machines
            for word in words
        ]


def _named(name: ast.Name, node: ast.NodeStatement, at: int, part: str) -> ast.Name:
    return ast.Name(f"{node.name.text}.{at}.{part}", name.span)


def kind_of_part(service: str) -> tuple[str, str] | None:
    """The node and its part that a service is of one machine (`sat.3.gnab`: sat, gnab)."""
    found = _OF_ONE.fullmatch(service)
    return None if found is None else (found[1], found[2])


def _ends(link: ast.LinkStatement) -> tuple[ast.Element, ast.Element]:
    a, b = link.a, link.b
    return ast.Element(a, a.span, link.a_index), ast.Element(b, b.span, link.b_index)


class _Machines:
    def __init__(
        self, nodes: Mapping[str, ast.NodeStatement], outside: Mapping[str, ast.Span], sink: Sink
    ) -> None:
        self._nodes = nodes
        self._outside = outside
        self._sink = sink
        self._links: dict[str, list[ast.LinkSelector]] = {}  # by an end
        self._parts = {name: parts_of(node) for name, node in nodes.items()}
        self._called = {name: frozenset(_link_names(node)) for name, node in nodes.items()}
        self._apart = {name: kernel_lans.lans_of(node) for name, node in nodes.items()}

    # --- parts ---

    def parts(self, node: ast.NodeStatement) -> Iterator[_Body]:
        """Those of all machines of a node, by machine."""
        apart = self._apart[node.name.text]
        kernel_lans.check(node, self._parts[node.name.text], self._sink)
        inside = [one for one in node.body if self._is_inside(one, node)]
        body = [one for one in inside if not kernel_lans.is_apart(one, apart)]
        for at in range(node.replicas):
            for statement in body:
                yield self._part(statement, node, at)

    def _is_inside(self, one: _Body, node: ast.NodeStatement) -> bool:
        """Whether both ends of a link are parts of the machine; reported if not."""
        wrong = [
            end
            for end in ((one.a, one.b) if isinstance(one, ast.LinkStatement) else ())
            if end.text not in self._parts[node.name.text]
            and end.text not in self._apart[node.name.text]
        ]
        for end in wrong:
            self._not_inside(end, node)
        return not wrong

    def _not_inside(self, end: ast.Name, node: ast.NodeStatement) -> None:
        name, parts = node.name.text, self._parts[node.name.text]
        if "." in end.text or end.text in self._outside:
            message = f"{end.text!r} is no part of machine {name!r}, and its block links parts only"
            hint = f"write the link behind the block: `link {name}.{next(iter(parts))}--{end.text}`"
            self._sink.error("TS0625", end.span, message, hint)
            return
        near = did_you_mean(end.text, list(parts))
        self._sink.error("TS0620", end.span, f"machine {name!r} has no part {end.text!r}", near)

    def _part(self, one: _Body, node: ast.NodeStatement, at: int) -> _Body:
        """As it is declared for one machine."""
        match one:
            case ast.ServiceStatement():
                name = _named(one.name, node, at, one.name.text)
                options = tuple((word, self._option(word, text, node, at))
                                for word, text in one.options)  # fmt: skip
                count = 1 if one.replicas is None else one.replicas
                tags = (*one.tags, *node.tags)
                return replace(one, name=name, options=options, replicas=count, tags=tags)
            case ast.Bridges():
                names = tuple(_named(name, node, at, name.text) for name in one.names)
                return replace(one, names=names, tags=(*one.tags, *node.tags))
            case ast.LinkStatement():
                a, b = (_named(end, node, at, end.text) for end in (one.a, one.b))
                called = one.name and _named(one.name, node, at, one.name.text)
                return replace(one, a=a, b=b, name=called)

    def _option(self, word: ast.Name, text: str, node: ast.NodeStatement, at: int) -> str:
        """`after=` names parts of the same machine as the block has them, and others in full."""
        if word.text != "after":
            return text
        parts, found = self._parts[node.name.text], []
        for one in text.split(";"):
            name, colon, rest = one.partition(":")
            inside = f"{node.name.text}.{at}.{name}" if name in parts else ""
            full = [inside] if inside else self._waited_for(name, word.span)
            found += [one + colon + rest for one in full]
        return ";".join(dict.fromkeys(found))

    def _outer(self, service: ast.ServiceStatement) -> ast.ServiceStatement:
        """One beside machines, which may start after parts of them."""
        options = tuple(
            (word, self._after(text, word.span) if word.text == "after" else text)
            for word, text in service.options
        )
        return replace(service, options=options)

    def _after(self, text: str, span: ast.Span) -> str:
        said = (one.partition(":") for one in text.split(";"))
        found = [
            full + colon + rest
            for name, colon, rest in said
            for full in self._waited_for(name, span)
        ]
        return ";".join(dict.fromkeys(found))

    def _waited_for(self, name: str, span: ast.Span) -> list[str]:
        """The services that a name in `after=` stands for."""
        node, dot, index = name.partition(".")
        at = int(index) if dot and index.isdecimal() and node in self._nodes else None
        element = ast.Element(ast.Name(name if at is None else node, span), span, at)
        return [one.name.text for one in self._running(element)]

    # --- names ---

    def _find(self, element: ast.Element, *, links: bool = False) -> _Named | None:
        """None where it names no machine, or nothing after a report. With `links` it may name one
        in the block, too."""
        text = element.name.text
        match = _NAME.fullmatch(text)
        node = self._nodes.get(match[1]) if match else None
        if match is None or node is None:
            self._check_outside(element)
            return None
        part, index = match[3] or "", match[2]
        at = element.index if not part else None if index is None else int(index)
        if at is not None and at >= node.replicas:
            name = node.name.text
            message = f"there is no machine '{name}.{at}': {name!r} has "
            message += number(node.replicas, "machine")
            hint = f"the last is {name}.{node.replicas - 1}"
            self._sink.error("TS0626", element.span, message, hint)
            return None
        parts = self._parts[node.name.text]
        if part in self._apart[node.name.text]:
            message = f"{text!r} is a lan of the kernel's, and no part of the emulated network: no "
            message += "event, no expectation and no link from outside of the block is about it"
            hint = "name a part at it: what `disconnect` cuts off is cut off from the lan, too"
            self._sink.error("TS0629", element.span, message, hint)
            return None
        called = self._called[node.name.text] if links else frozenset()
        if part and part not in parts and part not in called:
            message = f"machine {node.name.text!r} has no part {part!r}"
            shown = f"its parts: {', '.join([*parts][:_SHOWN])}"
            hint = did_you_mean(part, [*parts, *sorted(called)]) or shown
            self._sink.error("TS0620", element.span, message, hint)
            return None
        return _Named(node, range(node.replicas) if at is None else range(at, at + 1), part)

    def _check_outside(self, element: ast.Element) -> None:
        """A part, or a link, by the name that it has in its block only."""
        text = element.name.text
        found = (
            (name, kind)
            for kind, names in (("part", self._parts), ("link", self._called))
            for name in names
            if text in names[name]
        )
        owner, kind = next(found, ("", ""))
        if not owner or text in self._outside:
            return
        rest = "" if element.index is None else f".{element.index}"
        message = f"{text!r} is a {kind} of machine {owner!r}, and has its name there only"
        hint = f"write {owner}.{text}{rest} for all of them, {owner}.0.{text}{rest} for one"
        self._sink.error("TS0627", element.span, message, hint)

    def _elements(self, element: ast.Element) -> list[ast.Element]:
        found = self._find(element)
        return [element] if found is None else found.elements(element)

    # --- links ---

    def links(self, link: ast.LinkStatement) -> list[ast.LinkStatement]:
        """Each that a link outside of machines stands for."""
        ends = _ends(link)
        before = len(self._sink.found)
        named = [self._find(end) for end in ends]
        for end, found in zip(ends, named, strict=True):
            if found is not None and not found.part:
                name = end_name(end.name, end.index)
                hint = f"link a part of it, such as {name}.{next(iter(self._parts[end.name.text]))}"
                message = f"{name!r} is a machine: its parts have links, and it has none itself"
                self._sink.error("TS0623", end.span, message, hint)
        if len(self._sink.found) > before:
            return []
        one, other = ([end] if found is None else found.elements(end)
                      for end, found in zip(ends, named, strict=True))  # fmt: skip
        if not self._is_affordable(link, len(one) * len(other)):
            return []
        pairs: Iterable[tuple[ast.Element, ast.Element]] = product(one, other)
        first, second = named
        several = first is not None and second is not None and first.node is second.node
        same = (ends[0].name.text, ends[0].index) == (ends[1].name.text, ends[1].index)
        if several and same and one[0].name.text != link.a.text:
            pairs = combinations(one, 2)  # of one kind of part: each two machines
            if len(one) < 2:
                message = f"{link.a.text!r} is in one machine only, which this links with itself"
                self._sink.error("TS0625", link.span, message, "write replicas=2 or more")
        elif several and len(one) > 1 and len(other) > 1 and first is not None:
            self._sink.error(
                "TS0625",
                link.span,
                f"this links each {link.a.text!r} with every {link.b.text!r}",
                f"write it in the block of node {first.node.name.text}, for each machine",
            )
            return []
        if not self._is_by_parts(link, first, second):
            return []
        each = replace(link, several=len(one) * len(other) > 1)
        return [
            replace(each, a=a.name, b=b.name, a_index=a.index, b_index=b.index) for a, b in pairs
        ]

    def _is_by_parts(
        self, link: ast.LinkStatement, one: _Named | None, other: _Named | None
    ) -> bool:
        """Whether it leads into the network within a machine from no other machine."""
        if one is None or other is None:
            return True
        within = one.node is other.node and one.machines == other.machines
        if within and len(one.machines) == 1:
            return True
        for end, found in zip(_ends(link), (one, other), strict=True):
            if not self._parts[found.node.name.text][found.part]:
                message = f"{end.name.text!r} is within a machine, and this is a link from another"
                hint = "link parts of both machines, or parts of both with a bridge outside"
                self._sink.error("TS0625", end.span, message, hint)
                return False
        return True

    def _is_affordable(self, link: ast.LinkStatement, count: int) -> bool:
        if 2 * count <= MAX_LINKS:
            return True
        message = f"this stands for {count:,} links; an experiment has at most {MAX_LINKS // 2:,}"
        self._sink.error("TS0624", link.span, message, "put a bridge between them")
        return False

    def see(self, statements: Iterable[ast.Statement]) -> None:
        """Remembers the links that there are."""
        for one in statements:
            if isinstance(one, ast.LinkStatement):
                a, b = _ends(one)
                for first, second in ((a, b), (b, a)):
                    selector = ast.LinkSelector(first, second, False, one.span, one.name)
                    self._links.setdefault(first.name.text, []).append(selector)

    def _leaving(self, found: _Named) -> tuple[ast.LinkSelector, ...]:
        """The links between parts of one of these machines and anything else, each once."""
        links: dict[tuple[str, ...], ast.LinkSelector] = {}
        for at in found.machines:
            inside = f"{found.node.name.text}.{at}."
            for part in self._parts[found.node.name.text]:
                for link in self._links.get(inside + part, ()):
                    ends = [end_name(end.name, end.index) for end in (link.a, link.b)]
                    if not ends[1].startswith(inside):
                        called = "" if link.name is None else link.name.text
                        links.setdefault((*sorted(ends), called), link)
        return tuple(links.values())

    # --- everything else ---

    def resolved(self, statement: ast.Statement) -> list[ast.Statement]:
        match statement:
            case ast.Dynamic() | ast.Expect() | ast.Figure() | ast.When() | ast.Hunt():
                selectors = OtherElements(lambda one: self._selector(one.selector), self._running)
                return [selectors.of(statement)]
            case ast.ServiceStatement():
                return [self._outer(statement)]
            case ast.QuitWhen():
                names = (ast.Element(name, name.span) for name in statement.services)
                found = [one.name for name in names for one in self._running(name)]
                return [replace(statement, services=tuple(found))]
        return [statement]

    def _running(self, element: ast.Element) -> Iterator[ast.Element]:
        """Those of its elements that are services, where it stands for several."""
        found = self._elements(element)
        for one in found:
            node, _, part = one.name.text.partition(".")
            count = self._parts.get(node, {}).get(part.partition(".")[2], 1)
            if count or len(found) == 1:
                yield one

    def _selector(self, selector: ast.Selector) -> ast.Selector:
        if isinstance(selector, ast.LinkSelector):
            return self._link(selector)
        if isinstance(selector, ast.Some):
            of = self._selector(selector.of)
            assert not isinstance(of, ast.Everything | ast.Some)
            return replace(selector, of=of)
        if not isinstance(selector, ast.Element):
            return selector
        found = self._find(selector, links=True)
        if found is None:
            return selector
        elements = found.elements(selector)
        if not found.part:
            leaving = self._leaving(found)
            return ast.Members(selector, tuple(elements), selector.span, True, leaving)
        return (
            elements[0]
            if len(elements) == 1
            else ast.Members(selector, tuple(elements), selector.span)
        )

    def _link(self, selector: ast.LinkSelector) -> ast.LinkSelector | ast.Members:
        ends = [self._elements(end) for end in (selector.a, selector.b)]
        names = self._names(selector)
        if len(ends[0]) == len(ends[1]) == len(names) == 1:
            return replace(selector, a=ends[0][0], b=ends[1][0], name=next(iter(names.values())))
        wanted = {end.name.text: end for end in ends[1]}
        found = {
            (a.name.text, link.b.name.text, called): replace(
                selector, a=a, b=wanted[link.b.name.text], name=names[called]
            )
            for a in ends[0]
            for link in self._links.get(a.name.text, ())
            for called in [link.name.text if link.name and selector.name else ""]
            if link.b.name.text in wanted and called in names
        }
        if not found:
            one, other = (end_name(end.name, end.index) for end in (selector.a, selector.b))
            which = f" {selector.name.text!r}" if selector.name else ""
            message = f"there is no link{which} between {one!r} and {other!r}"
            self._sink.error("TS0202", selector.span, message)
        return ast.Members(selector, tuple(found.values()), selector.span)

    def _names(self, selector: ast.LinkSelector) -> dict[str, ast.Name | None]:
        """What links that it may mean are called; '' where it does not say."""
        if selector.name is None:
            return {"": None}
        element = ast.Element(selector.name, selector.name.span)
        found = self._find(element, links=True)
        names = [selector.name] if found is None else [one.name for one in found.elements(element)]
        return {name.text: name for name in names}
