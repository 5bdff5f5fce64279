"""All agents of a run: gathers them, starts them at one moment, watches them, ends them.

Order of calls: connect, prepare, (requests), start, (requests), stop, close. Nothing is started
before every agent is there, has the same plan, is ready, and has a clock that is known well enough.
Times without a host are CLOCK_MONOTONIC of this process, ns. docs/agent.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runtime.coordinator import clock_offsets
from runtime.coordinator.agent_link import (
    ANSWER_SECONDS,
    AgentError,
    AgentLink,
    Host,
    LostError,
    OnLost,
    OnSay,
)
from runtime.coordinator.clock_offsets import EXCHANGES, Offset
from runtime.coordinator.placement import Placement
from runtime.errors import RunError
from runtime.options import DEFAULTS, RunOptions
from runtime.rpc.calls import Request
from runtime.say import some

CONNECT_SECONDS = 10.0
PREPARE_SECONDS = 120.0
REJOIN_SECONDS = 10.0
STOP_SECONDS = 10.0
MEASURE_SECONDS = 1.0  # from one look at a clock to the next, where there are not too many hosts
AT_A_TIME = 4  # clocks that are measured side by side
PATIENCE_SECONDS = 10.0  # for a clock that is not known well enough at first
DELIVERIES = 16  # long messages that are on their way at one time: each takes memory here
LEAD_NS = 1_000_000_000  # for all agents to hear of it, on machines that are busy
REASONS, NAMES = 3, 8  # hosts in one error: with their reasons, and after them without

FirstMoment = Callable[[int], int]  # T0, of the earliest that is possible
OnNotice = Callable[[int, str], None]
Resume = Callable[[], Mapping[str, object]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgreedExperiment:
    """What all agents have to agree on."""

    run: str
    digest: str
    placement: Placement
    options: RunOptions
    shards: tuple[Request, ...] = ()  # that bring the plan to an agent which does not have it


@dataclass(frozen=True, slots=True)
class Stopped:
    """Last answers by host, and why there is none from the others."""

    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


def _ignore(_host: int, _text: str) -> None:
    return


class Coordinator:
    """Knows hosts by their position in `hosts`.

    on_say     what an agent said (checked by runtime.coordinator.says)
    on_lost    an agent that was there is gone, and why; once for each time it is lost
    on_notice  something about an agent that is worth telling
    """

    def __init__(
        self,
        hosts: Sequence[Host],
        key: bytes,
        on_say: OnSay,
        on_lost: OnLost = _ignore,
        on_notice: OnNotice = _ignore,
        clock_budget_ns: int = DEFAULTS.clock_budget_ns,
    ) -> None:
        self.hosts = tuple(hosts)
        self.t0_ns = 0
        self._key = key
        self._on_notice = on_notice
        self._budget_ns = clock_budget_ns
        self._links = [AgentLink(n, host, on_say, on_lost) for n, host in enumerate(self.hosts)]
        self._starts = [1] * len(self.hosts)  # which start of each agent is the present one
        self._experiment: AgreedExperiment | None = None
        self._start: dict[int, Offset] = {}  # by which each agent's T0 was converted
        self._away: dict[int, int] = {}  # by host: how far, at least, its clock was off T0's
        self._watches: list[asyncio.Task[None]] = []
        self._few = asyncio.Semaphore(AT_A_TIME)

    # -- before the start -----------------------------------------------------------------------

    async def connect(self, seconds: float = CONNECT_SECONDS) -> None:
        """Waits for all agents. Raises RunError that names those that did not come."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        if not self._watches:  # from the first connection on: who is silent may be replaced
            self._watches = [loop.create_task(self._watch(link)) for link in self._links]
        found = await self._all(lambda link: link.connect(self._key, deadline))
        late = {n: error for n, error in found.items() if isinstance(error, RunError)}
        if late:
            names = [self.hosts[number].name for number in late]
            reasons = [error.message for error in late.values()][:REASONS]
            what = f"{len(late)} of {len(self.hosts)} agents did not come within {seconds:g} s"
            told = "; ".join([*reasons, *_some(names[REASONS:])])
            raise RunError(f"{what}: {told}", next(iter(late.values())).remedy)

    async def prepare(
        self, experiment: AgreedExperiment, seconds: float = PREPARE_SECONDS
    ) -> list[dict[str, Any]]:
        """Makes all agents ready for step 0; returns what they tell of themselves, by host.

        Raises AgentError if one refuses, is lost, or has another plan.
        """
        self._experiment = experiment
        shared = Request.of(self._preparation(experiment))
        few = asyncio.Semaphore(DELIVERIES)

        async def one(link: AgentLink) -> dict[str, Any]:
            async with few:
                request = shared.extended({"host": link.number})
                work = asyncio.create_task(self._prepare(experiment, link, request, seconds))
                await asyncio.sleep(0)  # it is sent
                await link.drained()
            return await work

        return list((await self._everyone(one)).values())

    async def _prepare(
        self, experiment: AgreedExperiment, link: AgentLink, request: Request, seconds: float
    ) -> dict[str, Any]:
        wanted = experiment.digest
        answer = await link.ask(request, seconds)
        digest = answer.get("digest")
        if digest != wanted:
            raise AgentError(
                link.number,
                f"{link.host.name} has another plan: its digest is {digest!r:.80}, the run's is"
                f" {wanted!r}",
                "give every host the plan of this run",
            )
        return answer

    def _preparation(self, experiment: AgreedExperiment) -> dict[str, object]:
        """What all agents get: the larger part, so it is encoded once."""
        placement = experiment.placement
        return {
            "do": "prepare",
            "run": experiment.run,
            "digest": experiment.digest,
            "hosts": [{"name": host.name, "address": host.address} for host in self.hosts],
            "starts": list(self._starts),
            "placement": list(placement.hosts),
            "addresses": [list(pair) for pair in placement.addresses],
            "networks": list(placement.networks),
            "options": experiment.options.to_record(),
        }

    def follow(self, experiment: AgreedExperiment) -> None:
        """Agents that come back are prepared for this one."""
        self._experiment = experiment

    async def deliver(self, shards: Sequence[Request], seconds: float) -> None:
        """Brings a plan to all agents, each request within so many seconds. Raises AgentError."""
        few = asyncio.Semaphore(DELIVERIES)

        async def one(link: AgentLink) -> None:
            async with few:
                for shard in shards:
                    await link.ask(shard, seconds)

        await self._everyone(one)

    async def measure(self) -> list[Offset]:
        """The clocks of all agents, now, by host. Raises AgentError above the budget."""
        return list((await self._everyone(self._measure)).values())

    async def _measure(self, link: AgentLink) -> Offset:
        """Tries again for a while: a machine that is busy now is not one that cannot be known.

        Returns the last measurement, which is good enough.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        offset = await self._look(link)
        while offset.bound_ns > self._budget_ns and loop.time() < deadline:
            offset = min(offset, await self._look(link), key=lambda found: found.bound_ns)
        if offset.bound_ns > self._budget_ns:
            raise AgentError(
                link.number,
                f"the clock of {link.host.name} is not known well enough: it is"
                f" {_ms(offset.offset_ns)} away, give or take {_ms(offset.bound_ns)}; the budget is"
                f" {_ms(self._budget_ns)}",
                "look for what delays messages to it, or allow more (--clock-budget)",
            )
        return offset

    async def _look(self, link: AgentLink, exchanges: int = EXCHANGES) -> Offset:
        """One measurement. Only few at a time: they would wait for each other in this process."""
        async with self._few:
            return await link.measure(exchanges)

    async def start(self, first_moment: FirstMoment = int, lead_ns: int = LEAD_NS) -> int:
        """Measures the clocks, then fixes T0, `lead_ns` from now, or what `first_moment` makes of
        that. Returns T0.

        Every agent has confirmed, before T0, that step 0 will take effect then. Raises AgentError
        otherwise; some may begin in that case, so stop() is what has to follow.
        """
        offsets = dict(enumerate(await self.measure()))
        t0_ns = first_moment(time.monotonic_ns() + lead_ns)
        self._start = offsets
        await self._everyone(
            lambda link: link.ask({"do": "start", "t0_ns": offsets[link.number].there(t0_ns)})
        )
        late_ns = time.monotonic_ns() - t0_ns
        if late_ns > 0:
            raise RunError(
                f"the start was confirmed by all agents only {_ms(late_ns)} after it",
                "the machines or the network are too busy: try again",
            )
        self.t0_ns = t0_ns
        return t0_ns

    # -- while it runs --------------------------------------------------------------------------

    async def request(
        self, host: int, request: Mapping[str, object], seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """Asks one agent. Raises AgentError, a LostError if it is not there."""
        return await self._links[host].ask(request, seconds)

    async def broadcast(
        self,
        request: Mapping[str, object],
        seconds: float = ANSWER_SECONDS,
        *,
        everyone: bool = True,
    ) -> dict[int, dict[str, Any]]:
        """Asks all agents at once; returns when all have answered, answers by host.

        Raises AgentError for the first that refuses or (with `everyone`) is lost; without
        `everyone` the lost ones are left out: what they missed must be in their rejoin().
        """
        encoded = Request.of(request)
        found = await self._all(lambda link: link.ask(encoded, seconds))
        answers: dict[int, dict[str, Any]] = {}
        for number, result in found.items():
            if not isinstance(result, RunError):
                answers[number] = result
            elif everyone or not isinstance(result, LostError):
                raise result
        return answers

    @property
    def lost(self) -> dict[int, str]:
        """Hosts whose agent is not there now, and why."""
        return {link.number: link.lost for link in self._links if link.lost}

    async def rejoin(
        self, host: int, resume: Resume, seconds: float = REJOIN_SECONDS
    ) -> dict[str, Any] | None:
        """Takes up with an agent that was lost during the run.

        A process that is still the same only gets its connection back (None is returned), and
        hears what numbers the starts of others have by now. A new one has the next number, which
        the others are told too, and is prepared with what `resume()` returns; that is called in
        the moment in which the request leaves, and other requests reach the agent after it, so
        nothing falls between. Raises AgentError.
        """
        link = self._links[host]
        experiment = self._experiment
        if experiment is None or not self.t0_ns:
            raise RunError(f"{link.host.name} was lost before the start: {link.lost}")
        end = asyncio.get_running_loop().time() + seconds
        if not await link.connect(self._key, end, shut=True):
            link.open()
            await self._announce([link])
            return None
        offset = await self._measure(link)
        self._start[host] = offset
        self._starts[host] += 1
        others = [other for other in self._links if other is not link]
        for shard in experiment.shards:
            await link.ask_shut(shard)
        # On its way before the new one has anything to say: that has to prepare first.
        told = asyncio.create_task(self._announce(others))
        link.open()
        state = {**resume(), "t0_ns": offset.there(self.t0_ns)}
        shared = Request.of(self._preparation(experiment))
        request = shared.extended({"host": host, "resume": state})
        # It is there: however long that took, it has time enough for the rest.
        left = max(end - asyncio.get_running_loop().time(), seconds / 2)
        try:
            return await self._prepare(experiment, link, request, left)
        finally:
            await told

    async def _announce(self, to: Iterable[AgentLink]) -> None:
        """Tells agents which starts to believe the datagrams of (docs/metadata.md). One that is
        lost is told when it is back."""
        request = Request.of({"do": "starts", "starts": self._starts})

        async def one(link: AgentLink) -> None:
            with suppress(LostError):
                await link.ask(request)

        await asyncio.gather(*map(one, to))

    async def _watch(self, link: AgentLink) -> None:
        """Measures an agent's clock again and again, which also shows whether it lives."""
        exchanges, seconds = clock_offsets.watching(len(self._links), MEASURE_SECONDS)
        await asyncio.sleep(seconds * link.number / len(self._links))  # not all at once
        while True:
            await asyncio.sleep(seconds)
            try:
                if not link.lost:
                    await self._look(link, exchanges)
                    self._check_clock(link)
            except LostError:
                continue  # on_lost has been told

    def _check_clock(self, link: AgentLink) -> None:
        """Tells, once, of a clock that has left the budget since the start was converted by it."""
        start = self._start.get(link.number)
        if start is None:
            return
        away = link.clock.away_ns(start)
        before = self._away.get(link.number, 0)
        self._away[link.number] = max(before, away)
        if before <= self._budget_ns < away:
            self._on_notice(
                link.number,
                f"the clock of {link.host.name} has moved by {_ms(away)} since the start: its"
                " changes take effect that much early or late",
            )

    def here_ns(self, host: int, unix_ns: int) -> tuple[int, int] | None:
        """What our clock shows when the wall clock of that host shows this, and within which bound;
        None if neither is known."""
        link = self._links[host]
        offset = link.clock.last
        if link.wall_ns is None or offset is None:
            return None
        return offset.here(unix_ns - link.wall_ns), offset.bound_ns

    def offsets(self) -> list[dict[str, object]]:
        """What was measured of the clocks, for the run's records; by host. `away_ns`: how far each
        has moved since the start at most, as far as that is sure."""
        return [
            {"host": link.host.name, **link.clock.as_record(), "away_ns": self._away.get(number, 0)}
            for number, link in enumerate(self._links)
        ]

    # -- the end --------------------------------------------------------------------------------

    async def stop(self, seconds: float = STOP_SECONDS) -> Stopped:
        """Ends all agents that are there. Never raises: who did not answer is named."""
        self._stop_watching()
        for link in self._links:
            link.leaving = True
        found = await self._all(lambda link: link.ask({"do": "stop"}, seconds))
        stopped = Stopped()
        for number, result in found.items():
            if isinstance(result, RunError):
                stopped.missing[number] = result.message
            else:
                stopped.answers[number] = result
        return stopped

    async def close(self) -> None:
        """Ends all connections. Agents that were not stopped take it as a lost coordinator."""
        self._stop_watching()
        await asyncio.gather(*(link.close() for link in self._links))

    def _stop_watching(self) -> None:
        for task in self._watches:
            task.cancel()
        self._watches.clear()

    # -- all at once ----------------------------------------------------------------------------

    async def _all(
        self, ask: Callable[[AgentLink], Coroutine[Any, Any, T]]
    ) -> dict[int, T | RunError]:
        """Does something with every link side by side; results or errors by host."""

        async def one(link: AgentLink) -> T | RunError:
            try:
                return await ask(link)
            except RunError as error:
                return error

        results = await asyncio.gather(*(one(link) for link in self._links))
        return dict(enumerate(results))

    async def _everyone(self, ask: Callable[[AgentLink], Coroutine[Any, Any, T]]) -> dict[int, T]:
        """The same; raises the first error, by host, once all are done."""
        answers: dict[int, T] = {}
        for number, result in (await self._all(ask)).items():
            if isinstance(result, RunError):
                raise result
            answers[number] = result
        return answers


def _some(names: Sequence[str]) -> list[str]:
    """The rest of a list: names without reasons, and how many more when there are many."""
    if not names:
        return []
    return [f"nor did {some(names, NAMES)}"]


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3f} ms"
