"""What services say by words that a plan carries as options: after= and alias=."""

from __future__ import annotations

from compiler.plan.types import Service

READY, STARTED, ENDED = "", "start", "exit"  # what a service waits for of another


def after(service: Service) -> tuple[tuple[str, str], ...]:
    """The services that it starts after, each with READY, STARTED or ENDED."""
    found = (one.partition(":") for one in _listed(service, "after"))
    return tuple((name, what) for name, _, what in found)


def aliases(service: Service) -> tuple[str, ...]:
    """Other names of the host or hosts that it is."""
    return _listed(service, "alias")


def _listed(service: Service, word: str) -> tuple[str, ...]:
    said = dict(service.options).get(word, "")
    return tuple(said.split(";")) if said else ()
