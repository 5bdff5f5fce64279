"""A coordinator with agents that are none, and what it was told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from runtime.coordinator.agent_link import Host
from runtime.coordinator.coordinator import AgreedExperiment, Coordinator
from runtime.coordinator.placement import Placement
from runtime.coordinator.says import Message
from runtime.options import RunOptions
from tests.doubles.agent import DEADLINE_SECONDS, KEY, FakeAgent

PLACED = Placement(
    (0, 1, 0, -1),
    (("10.1.0.1", ""), ("", "fd01::1"), ("10.1.0.2", "")),
    ("10.1.0.0/24", "fd01::/64"),
)
EXPERIMENT = AgreedExperiment("run1", "d1", PLACED, RunOptions())


class Stage:
    """Agents, a coordinator, and what it was told."""

    def __init__(self, agents: list[FakeAgent]) -> None:
        self.agents = agents
        self.said: list[tuple[int, Message]] = []
        self.lost: list[tuple[int, str]] = []
        self.notices: list[tuple[int, str]] = []
        self.coordinators: list[Coordinator] = []

    def coordinator(
        self, key: bytes = KEY, hosts: list[Host] | None = None, **options: Any
    ) -> Coordinator:
        found = Coordinator(
            hosts or [agent.host for agent in self.agents],
            key,
            lambda host, message: self.said.append((host, message)),
            lambda host, reason: self.lost.append((host, reason)),
            lambda host, text: self.notices.append((host, text)),
            **options,
        )
        self.coordinators.append(found)
        return found

    async def ready(self, **options: Any) -> Coordinator:
        found = self.coordinator(**options)
        await found.connect(DEADLINE_SECONDS / 4)
        await found.prepare(EXPERIMENT)
        return found

    async def running(self, **options: Any) -> Coordinator:
        found = await self.ready(**options)
        await found.start(lead_ns=30_000_000_000)  # nobody waits for it
        return found


def played(play: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """The test that plays this with two agents."""

    def test() -> None:
        act(play)

    test.__doc__ = play.__doc__
    return test


def act(
    play: Callable[[Stage], Coroutine[Any, Any, None]], agents: list[FakeAgent] | int = 2
) -> None:
    """Plays with listening agents; ends everything."""
    made = [FakeAgent(n) for n in range(agents)] if isinstance(agents, int) else agents

    async def whole() -> None:
        stage = Stage(made)
        for agent in made:
            await agent.listen()
        try:
            await asyncio.wait_for(play(stage), DEADLINE_SECONDS)
        finally:
            for coordinator in stage.coordinators:
                await coordinator.close()
            for agent in made:
                await agent.die()

    asyncio.run(whole())
