"""The datapath of one host, over the path protocol (docs/tcal.md): an agent's side of it.

Times are the agent's; they become the machine's here.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence

from runtime.agent.clock import Clock
from runtime.agent.vocabulary import Moved, Usage
from runtime.datapath import dialect
from runtime.datapath.pktd import (
    NOW,
    PROTOCOL,
    Engine,
    EngineAnswer,
    EngineError,
    keeps_digests,
)
from runtime.errors import MachineError

NAMES = ("pktd", "tcald")
TOKEN_BYTES = 8

OnApplied = Callable[[int], None]  # when, on the agent's clock
OnEvent = Callable[[str], None]


class Datapath:
    """One connection. `on_event` gets what the datapath says on its own, commits aside."""

    def __init__(self, clock: Clock, on_event: OnEvent) -> None:
        self._clock = clock
        self.engine = Engine(on_event)
        self.facts: dict[str, str] = {}  # what `hello` told
        self.name = ""

    async def connect(self, descriptor: int) -> None:
        """Takes the connection over and greets. EngineError, or MachineError for a stranger."""
        # Closed with the process only; whoever started it has another copy.
        connection = socket.socket(fileno=descriptor)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self.engine, sock=connection)
        await self.engine.sync(os.urandom(TOKEN_BYTES).hex())
        answer = await self.engine.call(f"hello {PROTOCOL}")
        facts = answer.values()
        if answer.words[:1] not in ([name] for name in NAMES) or facts.get("paths") != "1":
            raise MachineError(
                f"the datapath does not know collapsed paths: it says {' '.join(answer.words)!r}",
                "build this release's: make -C tcal_c",
            )
        self.name, self.facts = answer.words[0], facts

    async def stage(self, lines: Sequence[str]) -> None:
        """Lines without a commit, for before the start. Raises EngineError."""
        await self.engine.stage(lines)

    async def commit(
        self, lines: Sequence[str], at_ns: int = NOW, on_applied: OnApplied | None = None
    ) -> None:
        """Returns when the datapath has taken the commit, for then or NOW. Raises EngineError.

        At most a few hundred lines, so that nobody waits for long.
        """
        clock = self._clock
        machine_ns = NOW if at_ns == NOW else max(clock.machine_ns(at_ns), 1)
        heard = None if on_applied is None else lambda at: on_applied(clock.agent_ns(at))
        await self.engine.commit(lines, machine_ns, heard)

    async def usage(self, *, everything: bool = False) -> list[Usage]:
        """Paths that moved since this was last asked, or all that ever did."""
        answer = await self.engine.call("usage all" if everything else "usage")
        return usages(answer)

    async def moved(self) -> Moved:
        """The same, and what belongs into a sample."""
        questions = ["usage", "stats pairs"] + ["digests"] * keeps_digests(self.facts)
        usage, pairs, *digests = await self.engine.batch(questions)
        return Moved(usages(usage), pairs.body, [line for one in digests for line in one.body])

    async def epoch(self, at_ns: int) -> None:
        """From then on the jitter and the digests of pktd count time; tcald has neither."""
        if self.name == "pktd":
            await self.engine.call(f"epoch {max(self._clock.machine_ns(at_ns), 0)}")

    async def capture(
        self, pipe: str, places: Sequence[tuple[str, bool, str]], *, probes: bool
    ) -> None:
        """Writes packets there until its reader goes. EngineError."""
        await self.engine.call(dialect.capture_line(pipe, places, probes=probes))

    async def lease(self, duration_ns: int) -> None:
        await self.engine.call(f"lease {duration_ns}")

    async def totals(self) -> dict[str, str]:
        """What `stats engine` tells."""
        return (await self.engine.call("stats engine")).values()

    async def ports(self) -> dict[int, int]:
        """Attached ports, each with the inode of its network namespace."""
        answer = await self.engine.call("ports")
        found = {}
        for row in answer.body:
            words = row.split()
            found[int(words[0])] = int(words[3])
        return found


def usages(answer: EngineAnswer) -> list[Usage]:
    try:
        return [Usage(*[int(word) for word in line.split()]) for line in answer.body]
    except (TypeError, ValueError) as error:
        raise EngineError(f"the datapath's usage is not as it should be: {error}") from error
