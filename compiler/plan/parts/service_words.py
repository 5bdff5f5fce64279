"""What services say by words that a plan carries as options: after=, alias= and publish=."""

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


def published(service: Service) -> tuple[tuple[str, int, int], ...]:
    """Ports of its instances that a run makes reachable on its machine: instance, port, and the one
    of the machine, 0 for any."""
    ports = ports_in(dict(service.options).get("publish", ""))
    return tuple(
        (f"{service.name}.{index}", port, local and local + index)
        for index in range(service.replicas)
        for local, port in ports
    )


def ports_in(value: str) -> tuple[tuple[int, int], ...]:
    """Of `8080:80;443`: the port of the machine for the first instance, 0 for any, and the
    program's."""
    found = (one.rpartition(":") for one in value.split(";") if value)
    return tuple((int(local or 0), int(port)) for local, _, port in found)


def _listed(service: Service, word: str) -> tuple[str, ...]:
    said = dict(service.options).get(word, "")
    return tuple(said.split(";")) if said else ()
