"""What a service starts in its image: the one place where an image's configuration and a service's
words become a program, its environment, directory, user, stop signal, and check.

As Kubernetes does it: `entrypoint=` replaces ENTRYPOINT and drops CMD, `command=` replaces CMD.
Every other word of the service wins over what the image says.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from compiler.plan.types import Service
from runtime.errors import RunError
from runtime.images.image_config import ImageConfig
from runtime.system.inroot import text_of

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAX_BYTES = 4 << 20  # of /etc/passwd
_NAME, _UID, _HOME = 0, 2, 5  # of its lines (passwd(5))
_REAL_TIME = re.compile(r"SIGRTMIN\+([0-9]{1,2})")


@dataclass(frozen=True, slots=True)
class Start:
    """`env` is without the service's own. `user` is as written, '' for root. `ready` is () where
    nothing checks whether it is ready."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    directory: str
    user: str
    stop: str
    volumes: tuple[str, ...]
    ready: tuple[str, ...]


def start(config: ImageConfig, service: Service, home: str) -> Start:
    """`home`: that of the user in the image. RunError if there is nothing to start."""
    argv = _argv(config, service)
    if not argv:
        raise RunError(
            f"the image of service {service.name} says not what to start, and neither does the"
            " service",
            'state entrypoint= or command=, such as command="sleep 1h"',
        )
    env = {"PATH": PATH, "HOME": home, **dict(config.env)}
    if not env["PATH"]:
        env["PATH"] = PATH
    return Start(
        argv=argv,
        env=tuple(env.items()),
        directory=service.cwd or _absolute(config.directory),
        user=user(config, service),
        stop=service.stop or _signal(config.stop),
        volumes=tuple(_absolute(path) for path in config.volumes if _absolute(path) != "/"),
        ready=service.ready or config.health,
    )


def user(config: ImageConfig, service: Service) -> str:
    return service.user or config.user


def _argv(config: ImageConfig, service: Service) -> tuple[str, ...]:
    if service.entrypoint:
        return service.entrypoint + service.command
    return config.entrypoint + (service.command or config.command)


def _absolute(path: str) -> str:
    """Without what would lead out of it; '/' for ''."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _signal(text: str) -> str:
    """STOPSIGNAL is a name with or without SIG, or a number; '' is none. RunError."""
    if not text:
        return ""
    if text.isdecimal() and len(text) <= 2:
        number = int(text)
        if number in set(signal.Signals):
            return signal.Signals(number).name
        if signal.SIGRTMIN < number < signal.SIGRTMAX:
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"
    name = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    real_time = _REAL_TIME.fullmatch(name)
    most = signal.SIGRTMAX - signal.SIGRTMIN
    if name in signal.Signals.__members__ or (real_time and int(real_time[1]) <= most):
        return name
    raise RunError(f"the image's STOPSIGNAL {text!r:.40} is no signal", "state stop=SIGTERM")


def home_of(root: Path, name: str) -> str:
    """The home of a user (NAME|UID[:…], '' is root) in a root file system; '/' if it has none."""
    wanted = name.partition(":")[0] or "0"
    rows = [line.split(":") for line in text_of(root, "/etc/passwd", _MAX_BYTES).splitlines()]
    known = [row for row in rows if len(row) > _HOME]
    for field in (_NAME, _UID):
        for row in known:
            if row[field] == wanted:
                return row[_HOME] or "/"
    return "/"
