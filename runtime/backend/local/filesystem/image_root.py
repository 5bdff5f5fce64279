"""An unpacked image, as the instances of a service run it on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImageRoot:
    """What the image and the service say together, where both do. It travels as its asdict()."""

    lower: str  # the unpacked root file system: an absolute directory, which nothing writes to
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]  # without the service's own
    user: str = ""  # as written; '' is root
    cwd: str = "/"  # in it, absolute; made where it is missing
    stop: str = ""  # 'SIGQUIT'; '' = SIGTERM
    volumes: tuple[str, ...] = ()  # absolute paths
    ready: tuple[str, ...] = ()  # argv of its check; () = none


def image_root(record: Mapping[str, Any]) -> ImageRoot:
    """From its asdict(), as JSON has it."""
    found: dict[str, Any] = dict(record)
    for name in ("argv", "volumes", "ready"):
        found[name] = tuple(record[name])
    found["env"] = tuple((name, value) for name, value in record["env"])
    return ImageRoot(**found)
