"""What services say of ports of this machine, `publish=`: each of these leads to one instance.

Input: the declarations and how many instances each service has. Of `publish=8080:80` instance k is
at port 8080 + k; `publish=80` takes what is free when the run begins. TS0726, TS0943.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.declare.ends import runs
from compiler.plan.parts.service_words import ports_in
from tdl import ast
from tdl.diagnostics import Sink

MOST_PORT = 65_535
MOST_PUBLISHED = 100  # ports of an experiment: each is a process while it runs


def check(
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
        if last > MOST_PORT:
            what = "there is no port" if count == 1 else f"{count:,} instances would need port"
            return f"{what} {last}", f"ports go to {MOST_PORT}"
        for index in range(count if local else 0):
            other = taken.setdefault(local + index, f"{name}.{index}:{port}")
            if other != f"{name}.{index}:{port}":
                message = f"port {local + index} of this machine leads to {other} already"
                return message, "name another port before the colon"
    return "", ""
