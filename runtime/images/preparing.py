"""Before a run: which of its services run images, and each of these images unpacked and held.

With `images` of a run's options: where a service states no exec= (alone), wherever it states img=
(preferred), or never. What a recorded run had is taken by its digest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from compiler.plan.reader import Plan
from compiler.plan.types import Service
from runtime.errors import MachineError, RunError
from runtime.images import (
    entrypoint,
    fetching,
    ids,
    image_cache,
    image_tools,
    references,
)
from runtime.images.entrypoint import Start
from runtime.images.image_cache import Image
from runtime.images.references import Reference
from runtime.options import NEVER, PREFERRED, VIRTUAL, RunOptions, RunPlaces

_TRIES = 5  # somebody else may remove an image just then

Tell = Callable[[str, bool], None]  # what is being done, or, with True, a warning


@dataclass(frozen=True, slots=True)
class Prepared:
    """A service's image: `start` is what an instance of it starts."""

    service: str
    reference: str
    image: Image
    start: Start


def wanted(plan: Plan, options: RunOptions) -> list[Service]:
    """The services that run their images, in the order of the plan."""
    if options.images == NEVER:
        return []
    return [
        service
        for service in plan.topology.services
        if service.image and service.replicas and (not service.exec or options.images == PREFERRED)
    ]


@contextmanager
def prepared(
    plan: Plan, options: RunOptions, places: RunPlaces, tell: Tell
) -> Iterator[list[Prepared]]:
    """The images of a run, which nobody removes until the end of the block. RunError says which
    service cannot have its image, and what to do."""
    services = wanted(plan, options)
    if not services:
        yield []
        return
    _check(services)
    # In virtual time a guest has one user id, whoever runs it.
    available = ids.ONE if options.time == VIRTUAL else ids.available()
    if available == ids.ONE and options.time != VIRTUAL:
        tell(f"{ids.WARNING}; {ids.REMEDY}", True)
    held: list[int] = []
    try:
        found = _images(services, places, available, held, tell)
        yield [_prepare(service, found[service.image]) for service in services]
    finally:
        for descriptor in held:
            os.close(descriptor)


def digests(found: list[Prepared]) -> dict[str, str]:
    """For the run's manifest: what every img= was."""
    return {one.reference: one.image.digest for one in found}


def _check(services: list[Service]) -> None:
    lacking = image_tools.lacking()
    if lacking:
        names = ", ".join(service.name for service in services)
        missing = image_tools.missing(lacking)
        raise MachineError(
            f"{missing.message}, and {names} would run one",
            f"{missing.remedy}; with --programs services without exec= are idle",
        )


def _images(
    services: list[Service], places: RunPlaces, available: str, held: list[int], tell: Tell
) -> dict[str, Image]:
    known = _recorded(places)
    found: dict[str, Image] = {}
    for service in services:
        if service.image not in found:
            reference = references.parse(service.image, places.source_directory)
            found[service.image] = _held(reference, known, available, held, tell)
    return found


def _recorded(places: RunPlaces) -> Mapping[str, str]:
    """By the reference's name, however it is written."""
    found = {}
    for written, digest in places.digests.items():
        with suppress(RunError):
            found[references.parse(written, places.source_directory).name] = digest
    return found


def _held(
    reference: Reference, known: Mapping[str, str], available: str, held: list[int], tell: Tell
) -> Image:
    """Somebody may remove it before it is held: then it is fetched again."""

    def step(text: str) -> None:
        tell(text, False)

    for _ in range(_TRIES):
        digest = known.get(reference.name, "")
        image = (
            fetching.fetched(reference, digest, available, step)
            if digest
            else fetching.get(reference, available, step)
        )
        descriptor = image_cache.use(image)
        if descriptor is not None:
            held.append(descriptor)
            return image
    raise MachineError(
        f"the image {reference.name} cannot be held where it is kept, {image.folder}",
        "`tstorm image prune --all` removes what is there; then it is fetched again",
    )


def _prepare(service: Service, image: Image) -> Prepared:
    user = entrypoint.user(image.config, service)
    home = entrypoint.home_of(image.root, user)
    return Prepared(
        service.name, service.image, image, entrypoint.start(image.config, service, home)
    )
