"""An image's configuration, as Docker and OCI write it: what it starts, as whom, where.

OCI's image specification (config.md), and Docker's Healthcheck, which OCI's has not. Foreign data:
shapes are checked, and everything may be missing or null.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import (
    TEXT,
    Each,
    Shape,
    check,
    decoded,
    parse,
)

MAX_BYTES = 8 << 20
REMEDY = "whoever made the image must make it again"


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """'', () and 0 are what is not stated. `health` is an argv; ("NONE",) forbids one."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    directory: str = ""
    user: str = ""
    stop: str = ""
    volumes: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    architecture: str = ""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


_SHELL = ("/bin/sh", "-c")
_NOTHING: dict[str, Any] = {}
_CONFIG = {
    "Entrypoint?": [TEXT],
    "Cmd?": [TEXT],
    "Env?": [TEXT],
    "WorkingDir?": TEXT,
    "User?": TEXT,
    "StopSignal?": TEXT,
    "Volumes?": Each(_NOTHING),
    "Shell?": [TEXT],
    "Healthcheck?": {"Test?": [TEXT]},
}
_KEYS = frozenset(name.removesuffix("?") for name in _CONFIG)
_SHAPE = Shape({"architecture?": TEXT, "os?": TEXT, "config?": _CONFIG})


def read(data: bytes, place: str) -> ImageConfig:
    """Out of an image's own JSON. RunError that begins with `place`."""
    found = _without_nulls(parse(data, place))
    try:
        check(found, _SHAPE, place)
    except RunError as error:
        raise RunError(error.message, REMEDY) from None
    if found.get("os", "linux") != "linux":
        raise RunError(f"{place} is for {found['os']!r:.40}", "images of Linux alone can be run")
    inner = found.get("config", _NOTHING)
    _check_texts({key: inner[key] for key in inner.keys() & _KEYS}, place)
    return ImageConfig(
        entrypoint=tuple(inner.get("Entrypoint", ())),
        command=tuple(inner.get("Cmd", ())),
        env=tuple(_pair(text) for text in inner.get("Env", ()) if text.partition("=")[0]),
        directory=inner.get("WorkingDir", ""),
        user=inner.get("User", ""),
        stop=inner.get("StopSignal", ""),
        volumes=tuple(sorted(inner.get("Volumes", ()))),
        health=_health(inner),
        architecture=found.get("architecture", ""),
    )


def from_record(record: Any, place: str) -> ImageConfig:
    """Out of what `to_record` has written. RunError."""
    return decoded(ImageConfig, record, place)


def _check_texts(value: Any, place: str) -> None:
    """Whatever is started or mounted has these as bytes that end with a NUL. RunError."""
    if type(value) is dict:
        value = [*value, *value.values()]
    if type(value) is list:
        for inner in value:
            _check_texts(inner, place)
    elif type(value) is str and "\0" in value:
        raise RunError(f"{place} holds a NUL character", REMEDY)
    elif type(value) is str and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RunError(f"{place} holds half a character", REMEDY) from None


def _without_nulls(value: Any) -> Any:
    if type(value) is not dict:
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _health(inner: dict[str, Any]) -> tuple[str, ...]:
    """Docker's Test as an argv: its first word says how the rest is meant."""
    test = inner.get("Healthcheck", _NOTHING).get("Test", [])
    if len(test) < 2:
        return ()
    if test[0] == "CMD":
        return tuple(test[1:])
    if test[0] == "CMD-SHELL":
        return (*(inner.get("Shell") or _SHELL), test[1])
    return ()
