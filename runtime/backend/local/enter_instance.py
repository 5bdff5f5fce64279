"""How a command gets into an instance, and ends: the same for `exec`, setup and readiness.

`place` is what LocalBackend.enter answers of the instance: `directory`, `user_namespace`, and
`user`, '' for who the run is; `machine` of a machine with parts, as a whole.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.system.process_scope import namespace


def command(
    keeper: str, place: Mapping[str, Any], pidfd: int, argv: Sequence[str], *more: str
) -> list[str]:
    """`pidfd`: of the instance's PID 1, which the new process inherits. `more`: options of
    `tstorm-ns enter`."""
    found = [keeper, "enter", "--pidfd", str(pidfd)]
    found += ["--userns"] if place["user_namespace"] != namespace("user") else []
    found += ["--user", str(place["user"])] if place["user"] else []
    found += ["--apart"] if "machine" in place else []
    return [*found, *more, "--directory", str(place["directory"]), "--", *argv]


async def ended(process: subprocess.Popen[bytes]) -> None:
    """Until it has ended. It is not reaped: `wait` of it answers at once."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, lambda: None if over.done() else over.set_result(None))
    try:
        await over
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def shell_status(code: int) -> int:
    """A return code of subprocess as a shell says it: 128 + signal of what was killed."""
    return code if code >= 0 else 128 - code
