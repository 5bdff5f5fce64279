"""What a plan may say and Compose cannot carry, found before anything is written.

All findings of a plan are reported together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.plan.capabilities import COMPOSE
from compiler.plan.types import Service, Topology
from manifests import images, unsupported
from manifests.refusal import ManifestError, raise_all


def image(what: str, reference: str, hint: str = "") -> None:
    """Raises ManifestError for an image that no machine could pull."""
    raise_all(_image(what, reference, hint))


def topology(found: Topology, names: Mapping[str, str]) -> None:
    """Raises ManifestError. `names`: what the services are called in the file."""
    errors = [error for service in found.services for error in _service(service)]
    errors += _names(found, names)
    errors += unsupported.refusals(found, COMPOSE)
    raise_all(errors)


def _service(service: Service) -> Iterator[ManifestError]:
    who = f"service {service.name!r}"
    if not service.image:
        yield ManifestError(f"{who} has no image, and a container needs one", "add img=IMAGE")
    else:
        yield from _image(f"{who}: its image", service.image)
    for name, _ in service.env:
        if not name or "=" in name:
            yield ManifestError(
                f"{who}: {name!r:.80} cannot be the name of a variable", "choose another name"
            )


def _image(what: str, reference: str, hint: str = "") -> Iterator[ManifestError]:
    if reason := images.problem(reference):
        yield ManifestError(f"{what} {reference!r:.80} is not an image reference", hint or reason)


def _names(found: Topology, names: Mapping[str, str]) -> Iterator[ManifestError]:
    """In a network of Docker the names of services and of instances are of one kind."""
    by_name = {names[service.name]: service for service in found.services}
    for service in found.services:
        base, _, index = service.name.rpartition("-")
        other = by_name.get(base)
        if other and index in {str(number) for number in range(other.replicas)}:
            yield ManifestError(
                f"service {service.name!r} is called like an instance of {other.name!r}, and "
                "Compose could not tell them apart",
                f"rename {service.name!r}",
            )
