"""`when` statements become the plan's reactions, and what happens in them is checked.

Input: the model. Output: `PlannedReaction`s in the order of the file. Nobody knows beforehand when
a reaction happens, nor in which state, but of whom it may be: its statements are looked up with an
instance of each of these services for `it`. What is wrong goes to the sink, once (TS0333, and what
is wrong with an action anywhere). Source: docs/tdl.md, "Reactions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from compiler.declare.model import Model
from compiler.declare.selectors import Resolver
from compiler.declare.steps import build_steps
from compiler.expect.subjects import Subjects
from compiler.plan.parts.action_texts import number_of
from compiler.plan.parts.planned_reactions import DEFAULT_MOST
from compiler.plan.types import PlannedReaction
from tdl import ast
from tdl.diagnostics import Sink
from tdl.formatter import format_statement
from tdl.tokens.words import IT


def about(when: ast.When, instance: str) -> list[ast.Dynamic]:
    """Its body with this instance for `it`; times still count from the firing."""
    service, _, index = instance.rpartition(".")
    found: list[ast.Dynamic] = [_put(one, service, int(index)) for one in when.body]
    return found


def _put(node: Any, service: str, index: int) -> Any:
    """The same tree, with another element."""
    if isinstance(node, ast.Element) and node.name.text == IT and node.index is None:
        return replace(node, name=replace(node.name, text=service), index=index)
    if isinstance(node, tuple) and not hasattr(node, "_fields"):
        return tuple(_put(one, service, index) for one in node)
    if not is_dataclass(node) or isinstance(node, type | ast.Span | ast.Name):
        return node
    parts = {field.name: getattr(node, field.name) for field in fields(node)}
    changed = {name: _put(part, service, index) for name, part in parts.items()}
    return replace(node, **changed)


def reactions(model: Model, sink: Sink) -> tuple[PlannedReaction, ...]:
    whens = model.declared.whens
    if model.oversized or not whens:
        return ()
    declared = model.declared
    if IT in declared.services or IT in declared.bridges:
        message = f"'{IT}' is the instance that a when is about: no element can be called so"
        sink.error("TS0333", whens[0].span, message, "give that element another name")
        return ()
    subjects = Subjects(declared, model.layout, sink)
    found = []
    for statement in whens:
        nodes = subjects.nodes(statement.subjects, programs=True)
        if nodes is not None:
            _check(statement, nodes, model, sink)
            found.append(_planned(statement, nodes))
    return tuple(found)


def _planned(statement: ast.When, nodes: tuple[int, ...]) -> PlannedReaction:
    return PlannedReaction(
        kind=statement.kind,
        nodes=nodes,
        pattern=statement.pattern,
        status=-1 if statement.status is None else statement.status,
        every=statement.every,
        most=(statement.most or DEFAULT_MOST) if statement.every else 1,
        after_ns=statement.after_ns,
        text=format_statement(statement),
        file=statement.span.file,
        line=statement.span.line,
    )


def _check(statement: ast.When, nodes: Iterable[int], model: Model, sink: Sink) -> None:
    reported: set[tuple[ast.Span, str]] = set()
    for node in _one_of_each(nodes, model):
        own = Sink()
        resolver = Resolver(model.declared, model.layout, own)
        body = about(statement, model.topology.nodes[node].name)
        planned = [
            one
            for one in model.declared.dynamics
            if isinstance(one.action, ast.Quit) and not number_of(one.span.file)
        ]
        build_steps(replace(model.declared, dynamics=[*planned[:1], *body]), resolver, own)
        _check_files(body, own)
        for one in own.found:
            if (one.span, one.code) not in reported:
                reported.add((one.span, one.code))
                sink.found.append(one)


def _one_of_each(nodes: Iterable[int], model: Model) -> Iterator[int]:
    """The first of each service."""
    services: set[int] = set()
    for node in nodes:
        service = model.topology.nodes[node].service
        if service not in services:
            services.add(service)
            yield node


def _check_files(body: Iterable[ast.Dynamic], sink: Sink) -> None:
    """What a link is to follow, or draw from, is read when the text is compiled."""
    for one in body:
        if not isinstance(one.action, ast.Set):
            continue
        for item in one.action.assignments:
            if item.trace is not None or item.delays is not None:
                message = f"a when sets no {item.prop.text}= from a file"
                hint = "write it `at` a time, or set other properties here"
                sink.error("TS0333", item.span, message, hint)
