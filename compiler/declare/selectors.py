"""Pass 3: selectors become sets of targets.

Input: a selector, the declarations and the layout. Output: a `Selection`, or None when the selector
does not name anything that exists (reported: TS0201, TS0202, TS0203, TS0901). Each selector text is
resolved once.

A *target* is what one count of `leave 3` stands for: an instance, a bridge, or a link between two
nodes (one direction of it for `a->b`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice

from compiler.declare.declared import Declared
from compiler.declare.topology import Layout
from compiler.phrases import declared_as, end_name, link_name
from tdl import ast
from tdl.diagnostics import Sink
from tdl.formatter import format_selector
from tdl.tokens.words import IT


@dataclass(frozen=True, slots=True)
class Selection:
    """What a selector covers. Services stand for all their instances, now or later.

    A link target is a tuple of directions: (there, back) as the selector is oriented, or (one,).
    """

    what: str  # how messages call it: "'server' instances"
    services: tuple[int, ...] = ()
    instances: tuple[int, ...] = ()  # single ones, by node
    bridges: tuple[int, ...] = ()  # by node
    links: tuple[tuple[int, ...], ...] = ()
    neck: str = ""  # the bottleneck that is named; the links are those of its paths
    named: bool = False  # one element by its own name, as against a tag or everything
    single: bool = False  # named, and can only be one target
    machines: tuple[Selection, ...] = ()  # of machines as a whole: what each of them has
    _parts: dict[tuple[str, ...], Selection] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def kinds(self) -> tuple[str, ...]:
        found = []
        if self.services or self.instances:
            found.append("service")
        if self.bridges:
            found.append("bridge")
        if self.neck:
            found.append("bottleneck")
        elif self.links:
            found.append("link")
        return tuple(found)

    def only(self, kinds: tuple[str, ...]) -> Selection:
        """The part of these kinds, the same one each time."""
        if kinds not in self._parts:
            members = "service" in kinds
            self._parts[kinds] = Selection(
                self.what,
                self.services if members else (),
                self.instances if members else (),
                self.bridges if "bridge" in kinds else (),
                self.links if ("bottleneck" if self.neck else "link") in kinds else (),
                self.neck,
                self.named,
                self.single,
                tuple(one.only(kinds) for one in self.machines),
            )
        return self._parts[kinds]


EMPTY = Selection("nothing")


class Resolver:
    """Resolves selectors against one layout."""

    def __init__(self, declared: Declared, layout: Layout, sink: Sink) -> None:
        self.declared = declared
        self.layout = layout
        self.sink = sink
        self._known: dict[object, Selection] = {}
        self._tagged: dict[str, Selection] | None = None
        self._everything: Selection | None = None

    def resolve(self, selector: ast.Selector) -> Selection | None:
        """None: reported already (or names a link whose declaration was). EMPTY: undeclared tag."""
        match selector:
            case ast.Everything():
                return self._all()
            case ast.Element():
                return self._element(selector)
            case ast.LinkSelector():
                return self._link(selector)
            case ast.Tagged():
                return self._tags(selector)
            case ast.Members():
                return self._members(selector)
            case ast.Some():
                return self.resolve(selector.of)

    # --- names ---------------------------------------------------------------------------------

    def _element(self, element: ast.Element) -> Selection | None:
        key = (element.name.text, element.index)
        if key not in self._known:
            found = self._find_element(element)
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    def named(self, name: str) -> Selection:
        """A declared service or bridge."""
        if name in self.declared.services:
            service = self.layout.service_of[name]
            return Selection(f"{name!r} instances", services=(service,), named=True)
        node = self.layout.node_of[name]
        return Selection(f"{name!r}", bridges=(node,), named=True, single=True)

    def _find_element(self, element: ast.Element) -> Selection | None:
        name = element.name.text
        if self.declared.knows(name) and element.index is None:
            return self.named(name)
        if name in self.declared.called:
            return self._named_link(element)
        if name in self.declared.services:
            node = self._instance(element)
            if node is None:
                return None
            label = f"{name}.{element.index}"
            return Selection(f"{label!r}", instances=(node,), named=True, single=True)
        if name in self.declared.bridges:
            self.sink.error(
                "TS0203",
                element.span,
                f"{name!r} is a bridge and has no instances",
                f"write `{name}`",
            )
            return None
        if name in self.declared.necks:
            return self._bottleneck(element)
        if name in self.declared.tags and element.index is None:
            # The public dialect and partition groups name tags without `tags=`.
            return self._tags(ast.Tagged((element.name,), element.span))
        self._unknown(element)
        return None

    def _bottleneck(self, element: ast.Element) -> Selection | None:
        """Both directions of its paths, whose terms are one thing."""
        name = element.name.text
        if element.index is not None:
            message = f"{name!r} is a bottleneck and has no instances"
            self.sink.error("TS0203", element.span, message, f"write `{name}`")
            return None
        links = self.layout.topology.links
        found = tuple(
            (there, there + 1)
            for there in range(0, len(links), 2)
            if any(name == links[way].state.neck.partition(".")[0] for way in (there, there + 1))
        )
        what = f"the bottleneck {name!r}"
        return Selection(what, links=found, neck=name, named=True, single=True)

    def _named_link(self, element: ast.Element) -> Selection | None:
        """Both directions, as its statement is written."""
        name = element.name.text
        positions = self.declared.called[name]
        if element.index is not None:
            link = link_name(self.declared.links[positions[0]])
            message = f"{name!r} is a link and has no instances"
            self.sink.error("TS0203", element.span, message, f"write `{name}`, or `{link}`")
            return None
        pairs = [pair for position in positions for pair in self.layout.pairs[position]]
        what = f"{name!r}" if len(pairs) == 1 else f"links of {name!r}"
        links = tuple((2 * pair, 2 * pair + 1) for pair in pairs)
        return Selection(what, links=links, named=True, single=len(pairs) == 1)

    def _instance(self, element: ast.Element) -> int | None:
        name = element.name.text
        nodes = self.layout.instances[self.layout.service_of[name]]
        assert element.index is not None
        if element.index < len(nodes):
            return nodes[element.index]
        count = len(nodes)
        self.sink.error(
            "TS0203",
            element.span,
            f"{name!r} has {count} instance{'s' if count > 1 else ''}, "
            f"{name}.0{f' to {name}.{count - 1}' if count > 1 else ''}",
            f"declare `service {declared_as(name)} replicas={element.index + 1}`",
        )
        return None

    def _unknown(self, element: ast.Element) -> None:
        name = element.name.text
        if name == IT:
            message, hint = "'it' is nobody here", "it is an instance in the block of a `when`"
            self.sink.error("TS0333", element.span, message, hint)
            return
        message = f"{name!r} is neither a service nor a bridge of this file"
        if self.declared.called:
            message = f"{name!r} is neither a service, a bridge nor a link of this file"
        self.sink.error("TS0201", element.span, message, self._unknown_hint(name, element.index))

    def _unknown_hint(self, name: str, index: int | None) -> str | None:
        if name in self.declared.tags:
            return f"{name!r} is a tag and has no instances" if index is not None else None
        if name == "power":  # `crash power`
            return "say whose power fails: `db crash power`, `crash db power`, or `crash 1 power`"
        for at, letter in enumerate(name):
            if letter == "-" and (name[:at], name[at + 1 :]) in self.declared.pairs:
                return f"a link has two hyphens: `{name[:at]}--{name[at + 1 :]}`"
        if "." in name:
            return "a dot is for instances (server.3), and for parts of machines (sat.3.app)"
        service = name.rstrip("0123456789")
        if service != name and service in self.declared.services:
            number = name[len(service) :]
            return f"instances have a dot: {service}.{number}, and several {service}.[0..{number}]"
        known = [*self.declared.names(), *self.declared.necks, *self.declared.called]
        near = self.declared.guesses.nearest(name, known)
        if near is not None:
            return f"did you mean {near!r}?"
        tag = self.declared.guesses.nearest(name, list(self.declared.tags))
        return f"did you mean `tags={tag}`?" if tag else None

    def _members(self, selector: ast.Members) -> Selection | None:
        """All that a name of machines or parts stands for, as if each were named by itself."""
        if selector not in self._known:
            parts = [self.resolve(one) for one in selector.found]
            if not all(parts):
                return None
            what, known = repr(format_selector(selector)), [one for one in parts if one]
            if selector.whole:
                machines = tuple(_machines(selector, known))
                found = replace(_union(f"parts of {what}", known, named=True), machines=machines)
            else:
                found = _union(f"those of {what}", known, named=True)
            self._known[selector] = found
        return self._known[selector]

    # --- links ---------------------------------------------------------------------------------

    def _link(self, selector: ast.LinkSelector) -> Selection | None:
        a, b = selector.a, selector.b
        called = selector.name.text if selector.name else ""
        key = (called, a.name.text, a.index, b.name.text, b.index, selector.directed)
        if key not in self._known:
            found = self._find_link(selector)
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    def _find_link(self, selector: ast.LinkSelector) -> Selection | None:
        a, b = selector.a, selector.b
        missing = [end for end in (a, b) if not self.declared.knows(end.name.text)]
        for end in missing:
            if (a.name.text, b.name.text) not in self.declared.broken:
                self._unknown(end)
        if missing:
            return None
        if (a.name.text, b.name.text) not in self.declared.pairs or not self._is_called(selector):
            self._no_link(selector)
            return None
        first, second = self._end(a), self._end(b)
        if first is None or second is None:
            return None
        pairs = self._directions(selector, first, second)
        if not pairs:
            self._no_link(selector)
            return None
        links: tuple[tuple[int, ...], ...] = pairs
        if selector.directed:
            links = tuple((there,) for there, _ in pairs)
        arrow = "->" if selector.directed else "--"
        called = f"{selector.name.text}:" if selector.name else ""
        label = f"{called}{_label(a)}{arrow}{_label(b)}"
        services = [end for end in (a, b) if end.index is None and self._is_service(end)]
        single = not services and len(links) == 1
        what = f"{label!r}" if single else f"links of {label!r}"
        return Selection(what, links=links, named=True, single=single)

    def _is_called(self, selector: ast.LinkSelector) -> bool:
        return selector.name is None or selector.name.text in self.declared.called

    def _is_service(self, end: ast.Element) -> bool:
        return end.name.text in self.declared.services

    def _end(self, end: ast.Element) -> range | None:
        """The nodes this end allows; None if it names an instance that does not exist."""
        if end.index is not None and self._find_element(end) is None:
            return None
        return self._nodes_of(end.name.text, end.index)

    def _directions(
        self, selector: ast.LinkSelector, a: range, b: range
    ) -> tuple[tuple[int, int], ...]:
        """There and back, of every link between these nodes, in the order of declaration."""
        found: list[tuple[int, int]] = []
        for position in self.declared.pairs[selector.a.name.text, selector.b.name.text]:
            if selector.name and position not in self.declared.called[selector.name.text]:
                continue
            link = self.declared.links[position]
            rows = self._nodes_of(link.a.text, link.a_index)
            columns = self._nodes_of(link.b.text, link.b_index)
            start = self.layout.pairs[position].start
            if link.is_mesh:
                found += _of_mesh(start, rows, a, b)
                continue
            for turned, first, second in ((0, a, b), (1, b, a)):
                for row in _common(rows, first):
                    for column in _common(columns, second):
                        pair = start + (row - rows.start) * len(columns) + column - columns.start
                        found.append((2 * pair + turned, 2 * pair + 1 - turned))
        return tuple(found)

    def _nodes_of(self, name: str, index: int | None = None) -> range:
        """The nodes that a declared name stands for, or one instance of it."""
        if name in self.declared.services:
            nodes = self.layout.instances[self.layout.service_of[name]]
            return nodes if index is None else nodes[index : index + 1]
        node = self.layout.node_of[name]
        return range(node, node + 1)

    def _no_link(self, selector: ast.LinkSelector) -> None:
        a, b = selector.a.name.text, selector.b.name.text
        if (a, b) in self.declared.broken:
            return
        declared = self.declared
        if selector.name is not None and not self._is_called(selector):
            name = selector.name.text
            guess = declared.guesses.nearest(name, list(declared.called))
            advice = f"did you mean {guess!r}?" if guess else f"a link is called so by name={name}"
            self.sink.error("TS0202", selector.name.span, f"no link is called {name!r}", advice)
            return
        at = (declared.at.get(name, ()) for name in (a, b))
        near = dict.fromkeys(islice(declared.pairs.get((a, b)) or merge(*at), 6))
        some = [link_name(declared.links[position]) for position in islice(near, 3)]
        hint = f"there is {', '.join(f'`{name}`' for name in some)}" if some else None
        called = f" {selector.name.text!r}" if selector.name else ""
        ends = f"{_label(selector.a)!r} and {_label(selector.b)!r}"
        message = f"there is no link{called} between {ends}"
        self.sink.error("TS0202", selector.span, message, hint)

    # --- tags and everything -------------------------------------------------------------------

    def _tags(self, selector: ast.Tagged) -> Selection:
        tags = tuple(dict.fromkeys(tag.text for tag in selector.tags))
        for tag in selector.tags:
            if tag.text not in self.declared.tags:
                self._undeclared(tag)
        if tags not in self._known:
            index = self._by_tag()
            known = [index[tag] for tag in tags if tag in index]
            what = f"elements with the tags {', '.join(repr(tag) for tag in tags)}"
            found = _union(what, known) if len(known) > 1 else (*known, EMPTY)[0]
            self._known[tags] = found
        return self._known[tags]

    def _undeclared(self, tag: ast.Name) -> None:
        near = self.declared.guesses.nearest(tag.text, list(self.declared.tags))
        hint = f"did you mean {near!r}?" if near else None
        if near is None and self.declared.knows(tag.text):
            hint = f"{tag.text!r} is an element, not a tag: write it without `tags=`"
        self.sink.warning("TS0901", tag.span, f"nothing has the tag {tag.text!r}", hint)

    def _by_tag(self) -> dict[str, Selection]:
        if self._tagged is None:
            topology = self.layout.topology
            services = _by_word((i, s.tags) for i, s in enumerate(topology.services))
            bridges = _by_word((i, topology.nodes[i].tags) for i in self.layout.bridges)
            links = _by_word((k, topology.links[k].tags) for k in range(0, len(topology.links), 2))
            self._tagged = {
                tag: Selection(
                    f"elements with the tag {tag!r}",
                    services=tuple(services.get(tag, ())),
                    bridges=tuple(bridges.get(tag, ())),
                    links=tuple((k, k + 1) for k in links.get(tag, ())),
                )
                for tag in self.declared.tags
            }
        return self._tagged

    def _all(self) -> Selection:
        """All but what is marked as `supervisor`, and its links."""
        if self._everything is None:
            topology = self.layout.topology
            services = topology.services
            apart = {i for i, s in enumerate(services) if ("supervisor", "true") in s.options}
            other = {i for i, node in enumerate(topology.nodes) if node.service in apart}
            links = range(0, len(topology.links), 2)
            ends = ((k, topology.links[k].src, topology.links[k].dst) for k in links)
            self._everything = Selection(
                "elements",
                services=tuple(i for i in range(len(services)) if i not in apart),
                bridges=tuple(self.layout.bridges),
                links=tuple((k, k + 1) for k, a, b in ends if a not in other and b not in other),
            )
        return self._everything


def _of_mesh(start: int, nodes: range, a: range, b: range) -> Iterator[tuple[int, int]]:
    """There and back between `a` and `b`, of a link that has each two of `nodes` from pair `start`
    on: 0 and 1, 0 and 2, …, 1 and 2, …"""
    for row in a:
        for column in b:
            if row == column or (a == b and row > column):
                continue
            low, high = sorted((row - nodes.start, column - nodes.start))
            pair = start + low * len(nodes) - low * (low + 1) // 2 + high - low - 1
            turned = int(row > column)
            yield 2 * pair + turned, 2 * pair + 1 - turned


def _label(end: ast.Element) -> str:
    return end_name(end.name, end.index)


def _common(a: range, b: range) -> range:
    return range(max(a.start, b.start), min(a.stop, b.stop))


def _by_word(tagged: Iterable[tuple[int, tuple[str, ...]]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, words in tagged:
        for word in words:
            found.setdefault(word, []).append(index)
    return found


def _machines(selector: ast.Members, known: Sequence[Selection]) -> Iterator[Selection]:
    """Of each machine what its parts cover, by the parts' full names (sat.3.app), or the links that
    leave it. A link between two of them is one of each."""
    assert isinstance(selector.written, ast.Element)
    node = selector.written.name.text
    by_machine: dict[int, list[Selection]] = {}
    for part, covered in zip(selector.found, known, strict=True):
        ends = (part,) if isinstance(part, ast.Element) else (part.a, part.b)
        for words in (end.name.text.split(".") for end in ends):
            if words[0] == node and len(words) > 1:
                by_machine.setdefault(int(words[1]), []).append(covered)
    for at, found in sorted(by_machine.items()):
        yield _union(f"{node}.{at}", found, named=True)


def _union(what: str, parts: Sequence[Selection], *, named: bool = False) -> Selection:
    return Selection(
        what,
        services=tuple(sorted({i for part in parts for i in part.services})),
        instances=tuple(sorted({i for part in parts for i in part.instances})),
        bridges=tuple(sorted({i for part in parts for i in part.bridges})),
        links=tuple(sorted({i for part in parts for i in part.links})),
        named=named,
    )
