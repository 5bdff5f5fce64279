"""Commands of the run's own in the container of an instance, by the API server's exec: what
`expect run` asks for in a cluster.

As with `tstorm exec` there, a command has the user, directory and variables of the container, which
are not those of a program that tstorm-hold has started.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing

from compiler.plan.types import Node
from runtime.backend.instance import FolderEntry, Incarnation, Ran, UnreachableError
from runtime.backend.k8s.api import Api, ApiError
from runtime.backend.k8s.exec_status import (
    ENDED,
    ENTER_FAILED,
    STDERR,
    STDOUT,
    how_ended,
)
from runtime.backend.k8s.pods import INSTANCE
from runtime.backend.runwords import replaced
from runtime.errors import RunError

LINES = 10  # of a command's output that are kept
LINE_BYTES, LINE_CHARACTERS = 4096, 200


class PodCommands:
    """See runtime.backend.instance (CommandRunner). `goes_on`: waits while it is paused. What runs
    in its container has the limits of that, and is paused with it."""

    def __init__(
        self,
        api: Api,
        pod: str,
        env: Mapping[str, str],
        goes_on: Callable[[Incarnation], Awaitable[None]],
    ) -> None:
        self._api = api
        self._pod = pod
        self._env = env
        self._goes_on = goes_on

    def resolved(self, argv: Sequence[str]) -> tuple[str, ...]:
        return replaced(argv, self._env)

    def listed(self, _incarnation: Incarnation, folder: str, /) -> tuple[FolderEntry, ...]:
        raise UnreachableError(f"in a cluster nobody looks into {folder} of an instance")

    async def run(
        self, incarnation: Incarnation, argv: Sequence[str], *, seconds: float | None = None
    ) -> Ran:
        """A life that is over may have another one in its place."""
        last, ended = _Last(), b""
        try:
            async with asyncio.timeout(seconds):
                await self._goes_on(incarnation)
                if incarnation.gone.done():
                    raise RunError("the instance is dead")
                execution = self._api.execute(self._pod, INSTANCE, argv)
                async with aclosing(execution) as parts:
                    async for channel, data in parts:
                        if channel in (STDOUT, STDERR):
                            last.take(data)
                        elif channel == ENDED:
                            ended += data
        except TimeoutError:
            return Ran(None, last.lines())
        except ApiError as error:
            raise UnreachableError(error.message, error.remedy) from error
        if not ended:
            raise UnreachableError("the connection broke before the command had ended")
        how = how_ended(ended)
        if how.status == ENTER_FAILED and how.refusal:
            raise RunError(how.refusal)
        return Ran(how.status, (*last.lines(), *filter(None, [how.refusal[:LINE_CHARACTERS]])))


class _Last:
    """The last lines of an output that are not empty; of a line without an end its beginning."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES)
        self._rest = b""

    def take(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line for line in whole if line.strip())
        self._rest = self._rest[:LINE_BYTES]

    def lines(self) -> tuple[str, ...]:
        found = [*self._lines, *filter(bytes.strip, [self._rest])][-LINES:]
        return tuple(one.decode(errors="replace").strip()[:LINE_CHARACTERS] for one in found)


def variables(node: Node, seed: int, digest: str, addresses: tuple[str, str]) -> dict[str, str]:
    """Of an instance, as its program has them in a cluster."""
    service, _, index = node.name.rpartition(".")
    found = {
        "TSTORM_INSTANCE": node.name,
        "TSTORM_SERVICE": service,
        "TSTORM_INDEX": index,
        "TSTORM_SEED": str(seed),
        "TSTORM_EXPERIMENT": digest,
        "TSTORM_IPV4": addresses[0],
        "TSTORM_IPV6": addresses[1],
    }
    return {name: value for name, value in found.items() if value}
