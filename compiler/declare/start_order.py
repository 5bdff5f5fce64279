"""Whom services start after: names that are not declared, and waits in a circle."""

from __future__ import annotations

from collections.abc import Mapping

from tdl import ast
from tdl.diagnostics import Sink
from tdl.suggest import did_you_mean


def check(
    services: Mapping[str, ast.ServiceStatement],
    sink: Sink,
    *,
    waits: bool,
) -> None:
    """`waits`: the file says `start when ready`."""
    after: dict[str, tuple[ast.Name, list[str]]] = {}
    for service in services.values():
        for word, value in service.options:
            if word.text == "after":
                names = [one.partition(":")[0] for one in value.split(";")]
                after[service.name.text] = (word, names)
                _check_names(word, names, services, sink)
                if not waits:
                    message = "without `start when ready` all start at once"
                    sink.error("TS0139", word.span, message, "add a line `start when ready`")
    _check_circles(after, sink)


def _check_names(
    word: ast.Name, names: list[str], services: Mapping[str, ast.ServiceStatement], sink: Sink
) -> None:
    for name in names:
        if name not in services:
            hint = did_you_mean(name, list(services))
            sink.error("TS0139", word.span, f"there is no service '{name}' to start after", hint)


def _check_circles(after: Mapping[str, tuple[ast.Name, list[str]]], sink: Sink) -> None:
    """Takes away whoever waits for nobody that is left; those that stay wait for each other."""
    left = {name: {one for one in names if one in after} for name, (_, names) in after.items()}
    while free := {name for name, names in left.items() if not names}:
        left = {name: names - free for name, names in left.items() if name not in free}
    for name in left:
        message = f"'{name}' starts after itself"
        hint = f"of these each waits for another: {', '.join(sorted(left)[:8])}"
        sink.error("TS0139", after[name][0].span, message, hint)
        return
