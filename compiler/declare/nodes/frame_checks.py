"""What must hold of routers and lans before there are nodes: TS0600, TS0603 and TS0605."""

from __future__ import annotations

from compiler.declare.declared import Declared
from compiler.declare.nodes.frames import FrameProblem, carries_frames
from tdl import ast
from tdl.diagnostics import Sink


def report(problem: FrameProblem, sink: Sink) -> None:
    say = sink.warning if problem.is_warning else sink.error
    say(problem.code, problem.span, problem.message, problem.hint)


def check(declared: Declared, sink: Sink) -> None:
    root: dict[str, str] = {}
    for link in declared.links:
        if not carries_frames(declared, link):
            _addresses_nowhere(link, sink)
            continue
        for end, other in ((link.a, link.b), (link.b, link.a)):
            bridge = declared.bridges.get(end.text)
            if bridge is not None and not bridge.lan:
                what = "a lan" if other.text in declared.bridges else "a router"
                message = f"{end.text!r} is a bridge, which forwards packets by the plan's routes,"
                message += f" and {other.text!r} is {what}, which is sent frames"
                hint = f"write `lan {end.text}` in place of the bridge"
                sink.error("TS0600", end.span, message, hint)
        if link.path is not None:
            message = "a path is measured between programs, and a router forwards"
            sink.error("TS0600", link.span, message, "write it as a link")
        _lan_loop(declared, link, root, sink)


def _addresses_nowhere(link: ast.LinkStatement, sink: Sink) -> None:
    for said in (link.address_a, link.address_b):
        if said is not None:
            message = "address= is of links at a router or a lan; elsewhere instances have theirs"
            sink.error("TS0605", said.span, message, "leave it out, or write `lan` or `router`")
            return
    if link.gateway is not None:
        message = "gateway= is of links at a router or a lan"
        sink.error("TS0605", link.span, message, "leave it out")


def _lan_loop(
    declared: Declared, link: ast.LinkStatement, root: dict[str, str], sink: Sink
) -> None:
    """Lans know no spanning tree: a second way between two would carry broadcasts for ever."""
    ends = [declared.bridges.get(end.text) for end in (link.a, link.b)]
    if not all(ends) or all(end.air for end in ends if end):
        return  # what a radio hears it does not send on

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    a, b = find(link.a.text), find(link.b.text)
    if a == b:
        message = (
            f"{link.a.text!r} and {link.b.text!r} are joined already: this makes a loop of lans"
        )
        hint = "frames to all would go round for ever: leave one of the links out"
        sink.error("TS0603", link.span, message, hint)
    root[a] = b
