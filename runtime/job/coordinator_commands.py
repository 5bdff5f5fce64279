"""The commands of `tstorm-coordinator`; errors are the last line on stderr."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime.errors import RunError, unexpected
from runtime.job import requests
from runtime.job.container_paths import ContainerPaths
from runtime.job.follow import JobFollower, read_request

if TYPE_CHECKING:
    from runtime.job.job import BackendOf

USAGE = "usage: tstorm-coordinator [follow | state | stop | fetched | probe]"
WRONG_USAGE = 2


def call(argv: Sequence[str], places: ContainerPaths, backend_of: BackendOf) -> int:
    """Carries out one command; without one, it is the Job. Returns the exit status."""
    try:
        match list(argv):
            case []:
                return asyncio.run(_job(places, backend_of))
            case ["follow"]:
                return _follow(places)
            case ["state"]:
                print(json.dumps(requests.state(places)))  # noqa: T201 - its product
            case ["stop"]:
                requests.stop(places)
            case ["fetched"]:
                requests.fetched(places)
            case _:
                return _refuse(USAGE, WRONG_USAGE)
    except RunError as error:
        return _refuse(f"error: {error}", error.exit_code)
    except OSError as error:
        return _refuse(f"error: {unexpected(error)}", 1)
    return 0


async def _job(places: ContainerPaths, backend_of: BackendOf) -> int:
    from runtime.job.job import Job  # not above: a command needs no driver

    return await Job(places, backend_of).run(os.environ)


def _follow(places: ContainerPaths) -> int:
    try:
        JobFollower(places, read_request(sys.stdin.buffer), sys.stdout.buffer).run()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for its flush at exit
        return 1  # nobody listens any more
    return 0


def _refuse(text: str, status: int) -> int:
    print(text, file=sys.stderr)  # noqa: T201 - this is a program of its own
    return status
