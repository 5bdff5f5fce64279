"""Pass 1: what the file declares, by name.

Input: the tree. Output: `Declared`, in which every name is unique and every link has two declared
ends. What is wrong is reported and left out; links left out are remembered in `broken`, so that
events that name them are not reported a second time. Source: docs/tdl.md (static part).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from compiler import path_queues
from compiler.declare import start_order
from compiler.declare.bottlenecks import DeclaredBottleneck, through
from compiler.declare.common import shares
from compiler.declare.ends import check_ends
from compiler.declare.nodes import kernel_lans
from compiler.phrases import declared_as, end_name, link_name, moment
from compiler.phrases import number as count
from tdl import ast, quantities
from tdl.diagnostics import Sink
from tdl.suggest import Guesses


@dataclass(frozen=True, slots=True)
class DeclaredBridge:
    name: ast.Name
    tags: tuple[ast.Name, ...]
    lan: bool = False
    air: bool = False


@dataclass(slots=True)
class Declared:
    """The declarations, in the order of the file."""

    services: dict[str, ast.ServiceStatement] = field(default_factory=dict)
    bridges: dict[str, DeclaredBridge] = field(default_factory=dict)
    necks: dict[str, DeclaredBottleneck] = field(default_factory=dict)  # bottlenecks
    links: list[ast.LinkStatement] = field(default_factory=list)
    pairs: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # both ways -> links
    called: dict[str, list[int]] = field(default_factory=dict)  # by name= -> links of a statement
    broken: set[tuple[str, str]] = field(default_factory=set)  # both orientations
    doubtful: set[str] = field(default_factory=set)  # declared twice: which one is meant?
    tags: dict[str, None] = field(default_factory=dict)
    bootstrapper: ast.Bootstrapper | None = None
    seed: ast.Seed | None = None
    routing: ast.Routing | None = None
    network: ast.Network | None = None
    hops: ast.Hops | None = None
    auto_addresses: ast.AutoAddresses | None = None
    dialect: ast.Dialect | None = None
    start: ast.StartWhenReady | None = None
    quit: ast.QuitWhen | None = None
    machines: list[ast.NodeStatement] = field(default_factory=list)
    dynamics: list[ast.Dynamic] = field(default_factory=list)
    expects: list[ast.Expect] = field(default_factory=list)
    figures: list[ast.Figure] = field(default_factory=list)
    whens: list[ast.When] = field(default_factory=list)
    hunts: list[ast.Hunt] = field(default_factory=list)
    guesses: Guesses = field(default_factory=Guesses)
    at: dict[str, list[int]] = field(default_factory=dict)  # name -> its links
    taken: dict[tuple[object, ...], int] = field(default_factory=dict)  # see _linked_already
    halves: dict[tuple[object, ...], int] = field(default_factory=dict)  # of one direction, by ends

    def links_at(self, name: str) -> Iterator[ast.LinkStatement]:
        """The links with an end there, in the order of the file."""
        return (self.links[position] for position in self.at.get(name, ()))

    def names(self) -> list[str]:
        return [*self.services, *self.bridges]

    def knows(self, name: str) -> bool:
        return name in self.services or name in self.bridges


def declare(file: ast.File, sink: Sink) -> Declared:
    """Collects all declarations; reports TS0101-TS0109 and the warnings about names."""
    found = Declared()
    links: list[ast.LinkStatement] = []
    for statement in file.statements:
        match statement:
            case ast.ServiceStatement():
                _service(found, statement, sink)
            case ast.Bridges():
                _bridges(found, statement, sink)
            case ast.Bottleneck():
                if _is_new(found, statement.name, sink):
                    found.necks[statement.name.text] = DeclaredBottleneck(statement)
            case ast.LinkStatement():
                links.append(statement)
            case ast.NodeStatement():
                found.machines.append(statement)
            case (
                ast.Dynamic()
                | ast.Expect()
                | ast.Figure()
                | ast.When()
                | ast.Hunt()
                | ast.HuntBound()
            ):
                _collect(found, statement)
            case _:
                _setting(found, statement, sink)
    for link in links:
        _link(found, link, sink)
    for position in found.halves.values():
        _half(found.links[position], sink)
    _check_connected(found, sink)
    start_order.check(found.services, sink, waits=found.start is not None)
    _collect_tags(found, sink)
    check_ends(found, sink)
    return found


_Collected = ast.Dynamic | ast.Expect | ast.Figure | ast.When | ast.Hunt | ast.HuntBound


def _collect(found: Declared, statement: _Collected) -> None:
    """What declares nothing, in the order of the file. Bounds stand in hunts only."""
    match statement:
        case ast.Dynamic():
            found.dynamics.append(statement)
        case ast.Expect():
            found.expects.append(statement)
        case ast.Figure():
            found.figures.append(statement)
        case ast.When():
            found.whens.append(statement)
        case ast.Hunt():
            found.hunts.append(statement)


_SETTINGS: Mapping[type, tuple[str, str]] = {  # attribute, and what it is called
    ast.Bootstrapper: ("bootstrapper", "bootstrapper"),
    ast.Seed: ("seed", "seed"),
    ast.Routing: ("routing", "routing"),
    ast.Network: ("network", "network"),
    ast.Hops: ("hops", "hops"),
    ast.AutoAddresses: ("auto_addresses", "addresses"),
    ast.Dialect: ("dialect", "dialect"),
    ast.StartWhenReady: ("start", "start when"),
    ast.QuitWhen: ("quit", "quit when"),
}


def _setting(found: Declared, statement: ast.Setting | ast.Mobility, sink: Sink) -> None:
    if isinstance(statement, ast.Mobility):
        return  # it is there only where nobody has read its file (pipeline.py)
    attribute, word = _SETTINGS[type(statement)]
    first = getattr(found, attribute)
    if first is not None:
        sink.error(
            "TS0109",
            statement.span,
            f"{word!r} is given twice; the first is on {ast.said(first.span.place)}",
            "keep one of them",
        )
        return
    setattr(found, attribute, statement)


def _service(found: Declared, statement: ast.ServiceStatement, sink: Sink) -> None:
    if _is_new(found, statement.name, sink):
        found.services[statement.name.text] = statement


def _bridges(found: Declared, statement: ast.Bridges, sink: Sink) -> None:
    for name in statement.names:
        if _is_new(found, name, sink):
            found.bridges[name.text] = DeclaredBridge(
                name, statement.tags, statement.lan, statement.air
            )


def _is_new(found: Declared, name: ast.Name, sink: Sink) -> bool:
    if name.text in found.services:
        kind, span = "service", found.services[name.text].span
    elif name.text in found.bridges:
        kind, span = "bridge", found.bridges[name.text].name.span
    elif name.text in found.necks:
        kind, span = "bottleneck", found.necks[name.text].statement.span
    elif name.text in found.called:
        kind, span = "link", found.links[found.called[name.text][0]].span
    else:
        return True
    if found.knows(name.text):
        found.doubtful.add(name.text)
    sink.error(
        "TS0101",
        name.span,
        f"{name.text!r} is declared twice; it is a {kind} on {ast.said(span.place)}",
        "give one of them another name",
    )
    return False


def _link(found: Declared, link: ast.LinkStatement, sink: Sink) -> None:
    a, b = link.a.text, link.b.text
    known = [
        _known_end(found, name, index, sink)
        for name, index in ((link.a, link.a_index), (link.b, link.b_index))
    ]
    if all(known) and link.directed and _other_half(found, link):
        return
    is_new = link.name is None or _goes_on(found, link) or _is_new(found, link.name, sink)
    first = _linked_already(found, link) if all(known) else None
    if first is not None:
        other = found.links[first]
        ends = " and ".join(repr(end) for end in link_name(replace(link, name=None)).split("--"))
        message = f"{ends} are linked already, on {ast.said(other.span.place)}"
        sink.error("TS0108", link.span, message, _told_apart(other, link))
    elif a == b and a in found.bridges:
        message, hint = f"this link goes from {a!r} to itself", "name another end"
        owner = found.services.get(a.removesuffix("-share"))
        if owner is not None and shares(owner):
            message = f"all instances of {owner.name.text!r} share one link already"
            hint = "leave out `share`, or this link between them"
        sink.error("TS0107", link.span, message, hint)
    elif all(known):
        if link.path is not None:
            link = through(found, link, sink)
            _check_path(found, link, sink)
        for names in dict.fromkeys(((a, b), (b, a))):
            found.pairs.setdefault(names, []).append(len(found.links))
            found.at.setdefault(names[0], []).append(len(found.links))
        if link.directed:
            found.halves[_ends(link)] = len(found.links)
        if link.name is not None and is_new:
            found.called.setdefault(link.name.text, []).append(len(found.links))
        found.links.append(link)
        return
    found.broken.update(((a, b), (b, a)))


def _goes_on(found: Declared, link: ast.LinkStatement) -> bool:
    """Whether the name is that of its own statement, which stands for a link of each machine."""
    assert link.name is not None
    first = found.called.get(link.name.text)
    return link.several and first is not None and found.links[first[0]].span == link.span


def _check_path(found: Declared, link: ast.LinkStatement, sink: Sink) -> None:
    terms = link.path
    assert terms is not None
    for end in (link.a, link.b):
        if end.text in found.bridges:
            message = f"{end.text!r} is a bridge: a path is measured between services"
            sink.error("TS0185", end.span, message, "write it as a link, or name a service")
    try:
        for back in (False, True):
            path_queues.direction(terms, back=back)
    except path_queues.PathProblem as problem:
        sink.error("TS0186", link.span, f"{problem.what} {problem.why}", problem.hint)
        return
    if terms.neck_up is None and terms.neck_down is None:
        _check_queues(link, terms, path_queues.derive(terms), sink)


def _check_queues(
    link: ast.LinkStatement, terms: ast.PathTerms, derived: path_queues.DerivedPath, sink: Sink
) -> None:
    """Of queues that are stated: what is available cannot be reached behind them."""
    if terms.queue_up is None and terms.queue_down is None:
        return
    delay_ns, spare_ns = path_queues.spare_time(terms, derived)
    if delay_ns > spare_ns:
        message = f"full queues delay {moment(delay_ns)}, and windows of"
        message += (
            f" {quantities.size(derived.wmax_bytes)} fill the path up to {moment(max(spare_ns, 0))}"
        )
        sink.warning("TS0952", link.span, message, "leave queue= out, or write queue=auto")


def _known_end(found: Declared, name: ast.Name, index: int | None, sink: Sink) -> bool:
    """Reports an end that is not declared, or an instance that there is not."""
    if not found.knows(name.text):
        near = found.guesses.nearest(name.text, found.names())
        hint = f"did you mean {near!r}?" if near else f"declare it: `bridge {name.text}`"
        sink.error("TS0102", name.span, f"{name.text!r} is not declared", hint)
        return False
    if index is None:
        return True
    label, at = end_name(name, index), name.span
    span = at
    if at.end_col - at.col == len(name.text):  # else the name is what a variable stands for
        span = at.over(at.line, at.col, at.line, at.col + len(label))
    if name.text in found.bridges:
        message = f"{name.text!r} is a bridge and has no instances"
        sink.error("TS0203", span, message, f"write `{name.text}`")
        return False
    replicas = found.services[name.text].replicas
    if replicas is not None and index >= replicas:
        message = f"there is no {label!r}: {name.text!r} has {count(replicas, 'instance')}"
        hint = f"declare `service {declared_as(name.text)} replicas={index + 1}`"
        sink.error("TS0203", span, message, hint)
        return False
    return True


def _other_half(found: Declared, link: ast.LinkStatement) -> bool:
    """Whether a `link b->a` stands before this `link a->b`: then they are one link."""
    there, back, called = _ends(link)
    position = found.halves.pop((back, there, called), None)
    if position is None:
        return False
    first = found.links[position]
    found.links[position] = replace(first, back=link, tags=(*first.tags, *link.tags))
    return True


def _ends(link: ast.LinkStatement) -> tuple[object, ...]:
    called = link.name.text if link.name else ""
    return (link.a.text, link.a_index), (link.b.text, link.b_index), called


def _half(link: ast.LinkStatement, sink: Sink) -> None:
    a, b = end_name(link.a, link.a_index), end_name(link.b, link.b_index)
    message = f"the way back is not declared: there is no link {b}->{a}"
    hint = f"add it, or write {a}--{b} for both directions; `at 0s {b}->{a} leave` then"
    hint += " lets nothing back"
    sink.error("TS0119", link.span, message, hint)


def _told_apart(first: ast.LinkStatement, second: ast.LinkStatement) -> str:
    if (first.path is None) != (second.path is None):
        words = "leave one of the two out, or give each a name="
        return f"a path is all that lies between its ends: {words}"
    wider = [link for link in (first, second) if link.a_index is None or link.b_index is None]
    if first.span.place == second.span.place:
        return "a loop over pairs takes each of them once: for i < j in 0..3 {"
    if link_name(first) != link_name(second) and wider and _single(first) + _single(second):
        every = link_name(replace(wider[0], name=None))
        return f"`{every}` links every instance: leave one of the two out, or give each a name="
    kind = "link" if first.path is None else "path"
    if first.name is not None:
        return f"several {kind}s are told apart by names: add name=…, which nothing else has"
    if second.name is not None:
        place = ast.said(first.span.place)
        return f"give the {kind} on {place} a name, too: add name=… to it"
    return f"several {kind}s are told apart by names: add name=fast to one, name=slow to the other"


def _single(link: ast.LinkStatement) -> bool:
    return link.a_index is not None or link.b_index is not None


_EVERY, _ANY = "every", "any"


def _linked_already(found: Declared, link: ast.LinkStatement) -> int | None:
    """The first link that shares a pair of nodes with this one, unless both have names; remembers
    this one if none does.

    Each link is kept under its two ends (an instance, or every instance), and with either or both
    of them replaced by "any", so that one question finds what overlaps among any number of links.
    """
    one = (link.a.text, _EVERY if link.a_index is None else link.a_index)
    two = (link.b.text, _EVERY if link.b_index is None else link.b_index)
    (a, i), (b, k) = sorted((one, two), key=lambda end: (end[0], str(end[1])))
    has_name = link.name is not None
    hits = [
        found.taken[named, a, left, b, right]
        for named in ((False,) if has_name else (False, True))
        for left in ((_ANY,) if i == _EVERY else (i, _EVERY))
        for right in ((_ANY,) if k == _EVERY else (k, _EVERY))
        if (named, a, left, b, right) in found.taken
    ]
    if hits:
        return min(hits)
    for left in (i, _ANY):
        for right in (k, _ANY):
            found.taken.setdefault((has_name, a, left, b, right), len(found.links))
    return None


def _check_connected(found: Declared, sink: Sink) -> None:
    linked = {name for pair in (*found.pairs, *found.broken) for name in pair}
    linked.update(name for name, *_ in kernel_lans.linked(found.machines))
    for name, service in found.services.items():
        if name not in linked and not any(word.text == "supervisor" for word, _ in service.options):
            some = next(iter(found.bridges), "s1")
            sink.error(
                "TS0103",
                service.name.span,
                f"service {name!r} has no link",
                f"give it one: `link {name}--{some} latency=1ms`",
            )
    for name, bridge in found.bridges.items():
        if name not in linked and not found.broken:
            sink.warning("TS0909", bridge.name.span, f"bridge {name!r} has no link")


def _collect_tags(found: Declared, sink: Sink) -> None:
    for service in found.services.values():
        _add_tags(found, service.tags, sink)
    for link in found.links:
        _add_tags(found, link.tags, sink)
    for bridge in found.bridges.values():
        _add_tags(found, bridge.tags, sink)
    for name, positions in found.called.items():
        if name in found.tags:
            own = found.links[positions[0]].name
            assert own is not None
            message = f"{name!r} is the name of a link, and a tag"
            sink.error("TS0101", own.span, message, "give the link another name")


def _add_tags(found: Declared, tags: Iterable[ast.Name], sink: Sink) -> None:
    for tag in tags:
        if found.knows(tag.text) and tag.text not in found.tags:
            sink.warning(
                "TS0910",
                tag.span,
                f"the tag {tag.text!r} has the name of an element",
                f"`tags={tag.text}` selects by tag, `{tag.text}` alone is the element",
            )
        found.tags[tag.text] = None
