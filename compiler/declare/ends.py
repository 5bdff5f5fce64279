"""Which services end the experiment when their programs have ended: `quit when … exits`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tdl import ast
from tdl.diagnostics import Sink

if TYPE_CHECKING:
    from compiler.declare.declared import Declared


def ending(declared: Declared) -> tuple[int, ...]:
    """Positions among the services; what is wrong is left out."""
    if declared.quit is None:
        return ()
    wanted = {name.text for name in declared.quit.services}
    return tuple(
        position
        for position, (name, service) in enumerate(declared.services.items())
        if runs(service) and (not wanted or name in wanted)
    )


def runs(service: ast.ServiceStatement) -> bool:
    """Whether there is a program that can end."""
    outside = any(word.text == "supervisor" for word, _ in service.options)
    return bool(service.exec or service.image) and not outside


def check_ends(declared: Declared, sink: Sink) -> None:
    """Reports what cannot end (TS0132, TS0136) and expectations of nothing (TS0137)."""
    statement = declared.quit
    for name in statement.services if statement else ():
        message, hint = _never(declared, name.text)
        if message:
            sink.error("TS0136", name.span, message, hint)
    if statement and not (statement.services or any(map(runs, declared.services.values()))):
        message = "no service has a program that could end"
        sink.error("TS0136", statement.span, message, "give one of them exec= or img=")
    for service, word in _idle(declared):
        message = f"{word}= is about the program of {service.name.text!r}, which has none"
        hint = f"add exec= or img=, or leave {word}= out"
        sink.error("TS0137", service.name.span, message, hint)


def _never(declared: Declared, name: str) -> tuple[str, str | None]:
    """Why nothing of this name ends, and what to do."""
    if name in declared.services:
        if runs(declared.services[name]):
            return "", None
        return f"{name!r} has no program that could end", "give it exec= or img="
    if name in declared.bridges:
        return f"{name!r} is a bridge and has no program", "name a service, or write all"
    near = declared.guesses.nearest(name, list(declared.services))
    return f"there is no service {name!r}", f"did you mean {near!r}?" if near else None


def _idle(declared: Declared) -> Iterator[tuple[ast.ServiceStatement, str]]:
    """Services without a program, with a property that is about one."""
    for service in declared.services.values():
        if runs(service):
            continue
        for word in ("ready", "expect", "stop", "grace"):
            field = "grace_ns" if word == "grace" else word
            if getattr(service, field) is not None:
                yield service, word
