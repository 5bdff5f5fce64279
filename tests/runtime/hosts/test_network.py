"""The network of a run over hosts that are not of this machine: it asks its Hosts for everything
that differs, and agents for the rest."""

from __future__ import annotations

import asyncio
import io
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compiler.extension import extend
from compiler.pipeline import compile_source
from compiler.plan.reader import decode
from compiler.plan.storage.delivery import ArrivingPlan
from runtime.agent.process.orders import EchoesOrder, EchoOrder, PodsOrder
from runtime.backend.base import Change, Effect, RunContext
from runtime.backend.hosts.agent_network import AgentNetwork
from runtime.backend.hosts.restarts import AgentRestarts
from runtime.coordinator.agent_link import Host, LostError
from runtime.coordinator.placement import NO_HOST, Placement
from runtime.coordinator.says import HoldReport, InstanceReport
from runtime.errors import RunError
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.doubles.agent import DEADLINE_SECONDS, FakeAgent, refuse
from tests.doubles.hosts import FakeHosts
from tests.waiting import until

TEXT = (
    "service a\nservice b replicas=2\nbridge s\n"
    "link a--s latency=1\nlink b--s latency=1\n"
    "at 3s b.1 crash\nat 4s b.1 join\nat 9s quit\n"
)
POD_ADDRESSES = (("10.244.1.9", ""), ("10.244.0.4", ""), ("10.244.1.3", ""))
PLACED = Placement((1, 0, 1, NO_HOST), POD_ADDRESSES, ("10.244.0.0/16",))


class Run:
    """An AgentNetwork over two such hosts, with agents that are not."""

    def __init__(self, agents: list[FakeAgent]) -> None:
        self.agents = agents
        self.plan = compile_source(TEXT).plan
        self.timeline = Schedule(self.plan, RunOptions(hosts=2))
        self.effects: list[tuple[int, Effect | None]] = []
        self.events: list[Mapping[str, object]] = []
        self.notices: list[str] = []
        self.files: list[tuple[str, str, str, int]] = []
        context = RunContext(
            run_id="run1",
            directory=Path("/nowhere"),
            plan=self.plan,
            schedule=self.timeline,
            options=RunOptions(hosts=2),
            log=io.BytesIO(),
            log_name="nowhere",
            record=self.events.append,
            notice=self.notices.append,
            warn=lambda _text: None,
            on_effect=lambda number, effect: self.effects.append((number, effect)),
            on_ended=lambda _instance, _ended, _asked, _help: None,
            on_killed=lambda _instance, _what: None,
            on_overdue=lambda _instance, _grace_ns: None,
            on_oom_kill=lambda _name, _processes: None,
            cannot_write=lambda _text: None,
            on_file=lambda *change: self.files.append(change),
        )
        self.hosts = FakeHosts(
            [Host(f"node-{one.number}", one.host.address, one.port) for one in agents], PLACED
        )
        self.network = AgentNetwork(context, self.hosts)

    async def applied(self, step: int, *, at_ns: tuple[int, int]) -> None:
        for agent, elapsed in zip(self.agents, at_ns, strict=True):
            agent.say(say="applied", step=step, elapsed_ns=elapsed, late=False)
        await until(lambda: any(number == step for number, _ in self.effects), f"step {step}")


def play(scene: Any) -> None:
    async def whole() -> None:
        agents = [FakeAgent(0), FakeAgent(1)]
        for agent in agents:
            await agent.listen()
        try:
            await asyncio.wait_for(scene(Run(agents)), DEADLINE_SECONDS)
        finally:
            for agent in agents:
                await agent.die()

    asyncio.run(whole())


def test_agents_are_told_what_the_hosts_have_learnt() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        (prepared,) = run.agents[1].asked("prepare")
        assert prepared["placement"] == [1, 0, 1, NO_HOST]
        assert prepared["addresses"] == [list(pair) for pair in POD_ADDRESSES]
        assert prepared["networks"] == ["10.244.0.0/16"]
        facts = run.network.facts["hosts"]
        assert [(one["name"], one["instances"]) for one in facts] == [
            ("node-0", ["b.0"]),
            ("node-1", ["a.0", "b.1"]),
        ]
        assert run.network.pids == []
        found = await run.network.end()
        assert found["refused"] == [{"instance": "a.0", "source": 1}]
        assert [host["away_ns"] for host in found["hosts"]] == [0, 0]
        assert str(run.network.fault) == "a datapath was tired"
        assert run.hosts.told == [0, 1]

    play(scene)


def test_steps_are_agreed_on_and_wired_by_the_hosts() -> None:
    async def scene(run: Run) -> None:
        assert run.hosts.network.elapsed() == 0
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        assert run.hosts.wired == [{0: 10, 1: 11, 2: 12}]
        await run.applied(0, at_ns=(100, 300))
        assert run.effects == [(0, Effect(300, 200))]
        crash, join = run.timeline.steps[1:3]
        assert await run.network.stage(Change(1, crash, {}, [2], [])) == {}
        await run.network.stage(Change(2, join, {2: 13}, [], []))
        assert [agent.asked("bind")[-1]["bind"] for agent in run.agents] == [[[2, 13]]] * 2
        assert run.agents[0].asked("bind")[-2]["unbind"] == [2]
        await run.applied(1, at_ns=(5, 5))
        await run.applied(2, at_ns=(6, 6))  # not before it is wired, at its time
        assert run.hosts.wired[1:] == [{2: 13}]
        assert await run.network.cut(1, frozenset())
        assert run.agents[0].asked("cut") == [{"do": "cut", "nodes": [1]}]
        await run.network.end()

    play(scene)


def test_an_agent_that_is_gone_is_waited_for_where_its_host_restarts_it() -> None:
    """Its process is not ours: the host's part is asked, and the one that answers is resumed."""

    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.applied(0, at_ns=(1, 1))
        await run.agents[0].die()
        await run.agents[0].listen()  # another process: its supervisor was quick
        await until(lambda: len(run.agents[0].asked("prepare")) == 2, "the resume")
        resume = run.agents[0].asked("prepare")[-1]["resume"]
        assert (resume["applied"], resume["held"]) == (1, [])
        await until(lambda: [e for e in run.events if e["kind"] == "agent_back"], "its return")
        assert [event["target"] for event in run.events] == ["node-0", "node-0"]
        assert run.hosts.parts[0].restarts == 0
        assert not run.network.closed.done()
        await run.network.end()

    play(scene)


def test_an_agent_that_resumes_is_told_which_orders_nobody_has_confirmed() -> None:
    """A step counts as applied while its leaves and joins may still go on."""

    async def scene(run: Run) -> None:
        await run.network.start()
        run.hosts.network.agent_state.lives.update({0: 70, 1: 71, 2: 72})
        await run.network.begin({0: 10, 1: 11, 2: 12})
        life = {"say": "life", "node": 0, "what": "join", "elapsed_ns": 1, "status": ""}
        run.agents[1].say(**life, step=0)
        for step in range(3):
            await run.applied(step, at_ns=(1, 1))
        await run.agents[1].die()
        await run.agents[1].listen()
        await until(lambda: len(run.agents[1].asked("prepare")) == 2, "the resume")
        resume = run.agents[1].asked("prepare")[-1]["resume"]
        assert resume["applied"] == 3
        assert resume["orders"] == [[0, 2, "join"], [1, 2, "crash"], [2, 2, "join"]]
        await run.network.end()

    play(scene)


def test_an_agent_that_refuses_to_measure_when_it_is_back_ends_nothing() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.applied(0, at_ns=(1, 1))
        order = EchoesOrder((EchoOrder(0, 1, "10.244.1.9", 9, 9, 9, 0),))
        await run.network.echo({0: order}, lambda _rows: None)
        await run.agents[0].die()
        run.agents[0].behave["echo"] = refuse
        await run.agents[0].listen()
        await until(lambda: len(run.agents[0].asked("echo")) == 2, "what it is told again")
        words = "paths from node-0 are not measured any more: node-0 cannot echo: no room"
        await until(lambda: words in run.notices or run.network.closed.done(), "the notice")
        assert not run.network.closed.done()
        await run.network.end()

    play(scene)


def test_who_asks_a_lost_agent_at_the_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody brings it back: asking again and again would let nothing else run."""

    async def waits(_restarts: AgentRestarts, number: int) -> None:
        raise AssertionError(f"host {number} is waited for")

    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.network.end()
        monkeypatch.setattr(AgentRestarts, "there", waits)
        with pytest.raises(LostError, match="node-0"):
            await run.hosts.network.ask(0, PodsOrder({}, ""))

    play(scene)


def test_a_datapath_that_died_is_named_though_its_agent_speaks_first() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        run.agents[1].say(say="failed", text="pktd ended before it answered")
        await run.network.closed
        why = asyncio.ensure_future(run.network.why())
        await asyncio.sleep(0)
        run.hosts.parts[1].datapath.ended.set_result(-9)
        assert (await why).message == "the datapath of node-1 ended with signal 9"

    play(scene)


def test_an_agent_that_fails_by_itself_ends_the_run() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        run.agents[1].say(say="failed", text="its plan is damaged")
        await run.network.closed
        why = await run.network.why()
        assert why.message == "the agent of node-1 failed: its plan is damaged"

    play(scene)


def test_what_agents_do_to_their_own_instances_is_handed_on() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        life = {"step": 1, "node": 2, "what": "crash", "elapsed_ns": 3_000_000_100, "status": ""}
        run.agents[1].say(say="life", **life)
        await until(lambda: run.hosts.lives, "the word of the agent")
        assert run.hosts.lives == [(1, InstanceReport(1, 2, "crash", 3_000_000_100, ""))]
        report = {"node": 2, "line": 3, "event": "ended", "elapsed_ns": 5, "signal": 9}
        run.agents[1].say(say="report", **report)
        await until(lambda: run.hosts.reports, "the report")
        assert run.hosts.reports == [(1, HoldReport(2, 3, "ended", 5, signal=9))]
        run.agents[1].say(say="file", node=2, path="data/x", how="made", elapsed_ns=7)
        await until(lambda: run.files, "the change of a file")
        assert run.files == [(run.plan.topology.nodes[2].name, "data/x", "made", 7)]
        assert not run.network.closed.done()
        run.agents[0].say(say="life", **life)
        await asyncio.wait_for(run.network.closed, DEADLINE_SECONDS)
        words = "the agent of node-0 speaks for node 2, which is not its"
        assert str(await run.network.why()) == words
        assert len(run.hosts.lives) == 1
        await run.network.end()

    play(scene)


def test_all_agents_go_over_to_a_longer_plan_or_none_does() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.applied(0, at_ns=(100, 300))
        before = run.plan.digest
        longer = extend(run.plan, 1, "a--s set latency=9ms", 2_000_000_000).plan
        left = Path("run/.do.7-0.tmp")
        told = {"do": "extend", "base": before, "digest": longer.digest, "left": left.name}

        run.agents[0].behave["extend"] = lambda _request: {"left_ns": 10_000_000_000}
        run.agents[1].behave["extend"] = refuse
        with pytest.raises(RunError, match=r"agent of node-1 does not take it: .*no room"):
            await run.network.offer(longer, before, left)
        await run.network.withdraw()
        assert [agent.asked("extend") for agent in run.agents] == [[told]] * 2
        assert [len(agent.asked("forget")) for agent in run.agents] == [1, 1]

        run.agents[1].behave["extend"] = lambda _request: {"left_ns": 0}
        assert "node-1" in await run.network.offer(longer, before, left)
        await run.network.withdraw()
        assert [agent.asked("adopt") for agent in run.agents] == [[], []]
        twice = extend(run.plan, 1, "a--s set duplicate=1%", 2_000_000_000).plan
        with pytest.raises(RunError, match=r"the duplicate of link .* not possible with --h"):
            await run.network.offer(twice, before, left)
        await run.network.withdraw()
        assert [len(agent.asked("extend")) for agent in run.agents] == [2, 2]

        run.agents[1].behave["extend"] = lambda _request: {"left_ns": 10_000_000_000}
        assert await run.network.offer(longer, before, left) == ""
        run.network.follow(longer)
        adopt = [{"do": "adopt", "digest": longer.digest}]
        await until(lambda: all(agent.asked("adopt") == adopt for agent in run.agents), "both")
        await run.network.end()

    play(scene)


def test_agents_that_find_no_files_of_the_run_are_brought_the_longer_plan() -> None:
    async def scene(run: Run) -> None:
        run.hosts.shares_files = False
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.applied(0, at_ns=(1, 1))
        for agent in run.agents:
            agent.behave["extend"] = lambda _request: {"left_ns": 10_000_000_000}
        longer = extend(run.plan, 1, "a--s set latency=9ms", 2_000_000_000).plan
        left = Path("run/.do.7-0.tmp")
        run.agents[1].behave["shard"] = refuse
        with pytest.raises(RunError, match=r"agent of node-1 does not take it: .*no room"):
            await run.network.offer(longer, run.plan.digest, left)
        await run.network.withdraw()
        assert not any(agent.asked("extend") for agent in run.agents)
        del run.agents[1].behave["shard"]
        assert await run.network.offer(longer, run.plan.digest, left) == ""
        run.network.follow(longer)
        (asked,) = run.agents[1].asked("extend")
        assert asked["left"] == ""
        arriving = ArrivingPlan()
        for one in run.agents[1].asked("shard")[1:]:
            arriving.take(one["digest"], one["number"], b64decode(one["data"]))
        assert decode(arriving.files()).digest == longer.digest
        await until(lambda: all(one.asked("adopt") for one in run.agents), "both")

        agent = run.agents[0]
        await agent.die()
        await agent.listen()
        await until(lambda: len(agent.asked("prepare")) == 2, "its return")
        order = [one["do"] for one in agent.requests if one["do"] in ("shard", "prepare")]
        assert order[-2:] == ["shard", "prepare"], "it has the plan before it is to begin"
        await run.network.end()

    play(scene)


def test_an_agent_that_dies_while_the_plan_grows_begins_again_with_the_one_that_holds() -> None:
    async def scene(run: Run) -> None:
        await run.network.start()
        await run.network.begin({0: 10, 1: 11, 2: 12})
        await run.applied(0, at_ns=(1, 1))
        for agent in run.agents:
            agent.behave["extend"] = lambda _request: {"left_ns": 10_000_000_000}
        before, left = run.plan.digest, Path("run/.do.7-0.tmp")
        longer = extend(run.plan, 1, "a--s set latency=9ms", 2_000_000_000).plan
        agent = run.agents[0]
        assert await run.network.offer(longer, before, left) == ""
        await agent.die()  # it has made ready, and nobody has gone over yet
        await agent.listen()
        await until(lambda: [one for one in run.events if one["kind"] == "agent_lost"], "the loss")
        run.network.follow(longer)
        await until(lambda: len(agent.asked("prepare")) == 2, "its return")
        assert [one["digest"] for one in agent.asked("prepare")] == [before, longer.digest]
        await until(lambda: all(one.asked("adopt") for one in run.agents), "both")

        await agent.die()
        with pytest.raises(RunError, match="agent of node-0"):
            await run.network.offer(longer, longer.digest, left)
        await run.network.withdraw()
        await agent.listen()
        await until(lambda: len(agent.asked("prepare")) == 3, "its second return")
        assert not run.network.closed.done()
        await run.network.end()

    play(scene)
