"""The command line by which a command gets into an instance: one for `exec`, setup and readiness.

`place` is what LocalBackend.enter answers of the instance: `directory`, `user_namespace`, and
`user`, '' for who the run is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.system.place import namespace


def command(
    keeper: str, place: Mapping[str, Any], pidfd: int, argv: Sequence[str], *more: str
) -> list[str]:
    """`pidfd`: of the instance's PID 1, which the new process inherits. `more`: options of
    `tstorm-ns enter`."""
    found = [keeper, "enter", "--pidfd", str(pidfd)]
    found += ["--userns"] if place["user_namespace"] != namespace("user") else []
    found += ["--user", str(place["user"])] if place["user"] else []
    return [*found, *more, "--directory", str(place["directory"]), "--", *argv]
