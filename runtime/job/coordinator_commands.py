"""The commands of `tstorm-coordinator`; errors are the last line on stderr."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from runtime.errors import RunError, unexpected
from runtime.job.container_paths import ContainerPaths
from runtime.job.follow import JobFollower, read_request
from runtime.job.steering_session import SteeringSession
from runtime.rpc.control import ask

if TYPE_CHECKING:
    from runtime.job.job import BackendOf


# What the commands of a coordinator's container ask the Job, or the driver in it.


def state(places: ContainerPaths) -> dict[str, Any]:
    """Everything `tstorm inspect` shows. RunError if the run has not begun, or has ended."""
    place = places.control if places.control.exists() else places.socket
    return ask(place, {"ask": "state"})[0]


def stop(places: ContainerPaths) -> None:
    """The run winds down, as after ^C. RunError."""
    ask(places.socket, {"ask": "stop"})


def fetched(places: ContainerPaths) -> None:
    """The results need not be kept any longer. RunError if there are none yet."""
    ask(places.socket, {"ask": "fetched"})


USAGE = "usage: tstorm-coordinator [follow | steer | state | stop | fetched | probe]"
WRONG_USAGE = 2


def call(argv: Sequence[str], places: ContainerPaths, backend_of: BackendOf) -> int:
    """Carries out one command; without one, it is the Job. Returns the exit status."""
    try:
        match list(argv):
            case []:
                return asyncio.run(_job(places, backend_of))
            case ["follow"]:
                return _follow(places)
            case ["steer"]:
                SteeringSession(places, sys.stdin.buffer, sys.stdout.buffer).run()
            case ["state"]:
                print(json.dumps(state(places)))  # noqa: T201 - its product
            case ["stop"]:
                stop(places)
            case ["fetched"]:
                fetched(places)
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
