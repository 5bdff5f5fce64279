"""TS0940: programs that are not on this machine. TS0941: shell syntax in a command without a shell.

A command line is split into words and started as it is (docs/run.md), so `&&`, `|`, `>` and
variables of a shell reach the program as words. The `$TSTORM_…` variables of a run are put in by
the run itself. Words in single quotes mean themselves in a shell, too.

Input: the declarations, and for TS0940 somebody who knows the machine. Linear.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from compiler.declare.model import Model
from compiler.phrases import number
from compiler.plan.types import NO_CHECK, TCP_CHECK, Service
from tdl import ast
from tdl.diagnostics import Sink
from tdl.tokens.words import RUN_VARIABLES

# What is missing and what to do, about a program of a service; None if it is there.
Finder = Callable[[Service, str], tuple[str, str] | None]

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"))
_STARTERS = frozenset(("env", "exec", "nice", "nohup", "setsid", "stdbuf", "timeout", "time"))
_OPERATOR = re.compile(r"&&|\|\|?|&|;|[0-9]?(?:>>?|<)(?:&[0-9-])?[^\s<>()]*|.*[^\\];")
_VARIABLE = re.compile(rf"\$\{{?(?!{RUN_VARIABLES})[A-Za-z_][A-Za-z0-9_]*|\$\(|`")


def warn(model: Model, find: Finder | None, sink: Sink) -> None:
    for statement in model.declared.services.values():
        for word, line in _lines(statement):
            syntax = shell_syntax(line)
            if syntax is not None:
                message = f"{syntax!r} in {word}= is for a shell, and no shell reads this line"
                hint = f"""write {word}="sh -c '…'", with $TSTORM_… as they are"""
                sink.warning("TS0941", statement.name.span, message, hint)
    if find is not None:
        _missing(model, find, sink)


def _lines(statement: ast.ServiceStatement) -> Iterator[tuple[str, str]]:
    """The command lines of a service, by their properties."""
    for word, line in (
        ("setup", statement.setup),
        ("exec", statement.exec),
        ("ready", statement.ready),
    ):
        if line is not None:
            yield word, line


def shell_syntax(line: str) -> str | None:
    """The first word of a command line that only a shell would understand."""
    try:
        words = shlex.split(line, posix=False)
    except ValueError:
        return None
    programs = [PurePosixPath(word).name for word in words]
    first = next((name for name in programs if name not in _STARTERS), "")
    if first in _SHELLS or (programs[:1] and programs[0] in _STARTERS and _SHELLS & {*programs}):
        return None
    for word in words[1:]:
        if word.startswith("'"):
            continue
        if _OPERATOR.fullmatch(word) or _VARIABLE.search(word):
            return word
    return None


def _programs(service: Service) -> Iterator[str]:
    """What a run starts on this machine for a service. An image has programs of its own."""
    if service.exec:
        ready = service.ready if service.ready[:1] != (NO_CHECK,) else ()
        for argv in (service.setup, service.exec, ready):
            if argv and not argv[0].startswith(TCP_CHECK):
                yield argv[0]


def _missing(model: Model, find: Finder, sink: Sink) -> None:
    """Once for each program."""
    found: dict[str, list[str]] = {}
    said: dict[str, tuple[str, str]] = {}
    for service in model.topology.services:
        for program in _programs(service):
            problem = find(service, program)
            if problem is not None:
                found.setdefault(program, []).append(service.name)
                said.setdefault(program, problem)
    for program, services in found.items():
        message, hint = said[program]
        others = len({*services}) - 1
        if others:
            message += f" (for {number(others + 1, 'service')})"
        span = model.declared.services[services[0]].name.span
        sink.warning("TS0940", span, message, hint)
