"""Files of services as ConfigMaps, each content once, and where pods mount them.

Input: a bundle. Output: ConfigMaps `tstorm-files-000`, … with contents by digest, and the volumes
and mounts of each service. A file is mounted by itself (subPath), so that what the image has beside
it stays. ConfigMaps are as large as plain `kubectl apply` can carry; a larger file has one of its
own, which needs a server-side apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.plan.storage.plan_shards import SHARD_BYTES
from compiler.plan.types import Service
from manifests import unsupported
from manifests.bundle import Bundle
from manifests.refusal import ManifestError

MAX_FILE = 1 << 20  # of a ConfigMap: the API server's limit
_NAME = "tstorm-files-{:03}"


@dataclass(frozen=True, slots=True)
class Carried:
    """`maps`: contents by digest of each ConfigMap by name; `where`: the ConfigMap of a digest."""

    maps: Mapping[str, Mapping[str, bytes]]
    where: Mapping[str, str]


def refusals(bundle: Bundle) -> Iterator[ManifestError]:
    """Files that no ConfigMap can carry."""
    contents = bundle.plan.attached.contents
    for service in bundle.plan.topology.services:
        for file in service.files:
            size = len(contents[file.digest])
            if size > MAX_FILE:
                yield ManifestError(
                    f"service {service.name!r}: the file {file.path!r} has {size} bytes, and a "
                    f"ConfigMap carries at most {MAX_FILE}",
                    "put it into the image, or have the program fetch it",
                )


def carry(bundle: Bundle) -> Carried:
    """In the order of digests, so that it depends on the contents alone."""
    maps: dict[str, dict[str, bytes]] = {}
    where: dict[str, str] = {}
    room = 0
    for digest, content in sorted(bundle.plan.attached.contents.items()):
        if len(content) > room or not maps:
            maps[_NAME.format(len(maps))] = {}
            room = SHARD_BYTES
        name = next(reversed(maps))
        maps[name][digest] = content
        where[digest] = name
        room -= len(content)
    return Carried(maps, where)


def volumes(service: Service, carried: Carried) -> list[dict[str, object]]:
    """One for each ConfigMap that the service has files of; an item for each file."""
    found: dict[str, list[dict[str, object]]] = {}
    for number, file in enumerate(service.files):
        item: dict[str, object] = {"key": file.digest, "path": str(number), "mode": file.mode}
        found.setdefault(carried.where[file.digest], []).append(item)
    return [{"name": name, "items": items} for name, items in sorted(found.items())]


def mounts(service: Service, carried: Carried) -> list[dict[str, str]]:
    return [
        {
            "name": carried.where[file.digest],
            "path": unsupported.file_path(service, file.path),
            "within": str(number),
        }
        for number, file in enumerate(service.files)
    ]
