"""What the coordinator may ask of an agent, and how it is answered; table in docs/agent.md.

States: *new* (nothing known but the plan), *prepared* (the first step is staged), *running*. A
request that makes no sense in a state, or at all, is refused and changes nothing.
"""

from __future__ import annotations

import asyncio
import gc
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, decode, read_plan
from compiler.plan.storage.delivery import ArrivingPlan
from runtime.agent.clock import Clock
from runtime.agent.metadata.auth import Seal
from runtime.agent.metadata.codec import MAGIC, VERSION
from runtime.agent.metadata.metadata import Metadata
from runtime.agent.metadata.udp import Mailbox
from runtime.agent.path.datapath import Datapath
from runtime.agent.process import orders
from runtime.agent.process.attachedports import AttachedPorts
from runtime.agent.process.hostrun import HostRun
from runtime.agent.process.orders import OrderError, PrepareOrder
from runtime.agent.share.sharing import Sharing
from runtime.coordinator.says import Say
from runtime.datapath.pktd import EngineError
from runtime.errors import MachineError, RunError
from runtime.json_schema import decoded, encoded
from runtime.system import hostfigures

MAX_PATHS = 1_048_575  # of one datapath (docs/tcal.md)

Request = Mapping[str, Any]
Answer = Mapping[str, object]
Reply = orders.PodsReply | orders.ReachReply | orders.EarlyReply | orders.FinishReply


def _sent(reply: Reply) -> Answer:
    answer: Answer = encoded(reply)
    return answer


class Responder:
    """One agent's answers. `host_run` is the run, once prepared.

    ports       where attached interfaces are entered (runtime.agent.process.portlog)
    on_broken   the run cannot go on, and why
    on_stop     it was asked to end, after this answer
    """

    def __init__(
        self,
        plan: Path,
        key: bytes,
        clock: Clock,
        datapath: Datapath,
        mailbox: Mailbox,
        say: Say,
        on_broken: Callable[[str], None],
        on_stop: Callable[[], None],
        *,
        resumes: bool,
        ports: Path | None = None,
    ) -> None:
        self.host_run: HostRun | None = None
        self.stopping = False  # was asked to end
        self._directory = plan
        self._plan = read_plan(plan, lazy=True)
        self._key = key
        self._clock = clock
        self._datapath = datapath
        self._mailbox = mailbox
        self._say = say
        self._on_broken = on_broken
        self._on_stop = on_stop
        self._resumes = resumes
        self._ports = AttachedPorts(datapath, ports)
        self._arriving = ArrivingPlan()
        self._used = False
        self._networks: Sequence[str] = ()
        self._instances = 0
        self._handlers: Mapping[str, Callable[[Any], Awaitable[Answer]]] = {
            "attach": self._attach,
            "detach": self._detach,
            "open": self._open,
            "start": self._start,
            "starts": self._starts,
            "bind": self._bind,
            "cut": self._cut,
            "pods": self._pods,
            "reach": self._reach,
            "echo": self._echo,
            "capture": self._capture,
            "lives": self._lives,
            "early": self._do_early,
            "move": self._move,
            "shard": self._shard,
            "extend": self._extend,
            "adopt": self._adopt,
            "forget": self._forget,
            "finish": self._finish,
            "status": self._status,
            "stop": self._stop,
        }

    async def answer(self, request: Request, at_ns: int) -> Answer:
        """`at_ns` is when it came (CLOCK_MONOTONIC). Raises RunError."""
        what = str(request.get("do"))
        if what == "time":
            ahead_ns = hostfigures.ahead_ns() - self._clock.agent_ns(0)
            t2_ns = self._clock.agent_ns(at_ns)
            return {"t2": t2_ns, "wall": ahead_ns, "t3": self._clock.now_ns()}
        if what != "prepare" and what not in self._handlers:
            known = ", ".join(sorted(("time", "prepare", *self._handlers)))
            raise OrderError(f"{what!r:.40} is nothing to do", f"there is: {known}")
        try:
            if what == "prepare":
                return await self._prepare(request)
            order: object = decoded(orders.ORDERS[what], request, "the request")
            return await self._handlers[what](order)
        except (PlanError, OSError) as error:
            raise RunError(str(error)) from error

    @property
    def running(self) -> bool:
        return self.host_run is not None and self.host_run.started

    async def _prepare(self, request: Request) -> Answer:
        if self._arriving.digest and self._arriving.digest == request.get("digest"):
            self._plan = await self._arrived()
        topology = self._plan.topology
        self._instances = instances = sum(node.service >= 0 for node in topology.nodes)
        order = orders.preparation(request, len(topology.nodes), instances)
        self._check(order, instances)
        self._used = True
        self._networks = order.networks
        run_tag = Seal(self._key, order.run.encode()).run_tag
        hosts = [host.endpoint for host in order.hosts]
        self._mailbox.meet(hosts, MAGIC + bytes([VERSION]) + run_tag)
        host_run = self._make_host_run(order)
        if order.resume is None:
            paths = await host_run.prepare()
        else:
            paths = -1
            await host_run.declare_again(order.resume)
            await self._attach_again(host_run, order.resume)
            await host_run.resume(order.resume, self._ports.networks)
        self.host_run = host_run
        host_run.broken.add_done_callback(self._broke)
        gc.collect()
        gc.freeze()  # what is here stays: later collections look at new objects only
        return {
            "digest": self._plan.digest,
            "datapath": self._datapath.name,
            "facts": self._datapath.facts,
            "instances": len(order.own),
            "paths": paths,
        }

    def _check(self, order: PrepareOrder, instances: int) -> None:
        if self._used:
            raise OrderError("this agent was prepared already", "start another one")
        if order.digest != self._plan.digest:
            raise OrderError(
                f"the plan in {self._directory} has the digest {self._plan.digest}, the run's has"
                f" {order.digest:.80}",
                "give every host the plan of this run",
            )
        if self._resumes != (order.resume is not None):
            raise OrderError("only an agent started with --resume can resume, and it has to")
        paths = len(order.own) * max(instances - 1, 0)
        if paths > MAX_PATHS:
            raise MachineError(
                f"{len(order.own)} instances on one host have {paths} paths, and a datapath holds"
                f" {MAX_PATHS}",
                "spread the instances over more hosts",
            )

    def _make_host_run(self, order: PrepareOrder) -> HostRun:
        metadata = Metadata(self._key, order.run.encode(), order.host, order.starts)
        return HostRun(
            self._plan,
            order,
            self._clock,
            self._datapath,
            self._mailbox,
            Sharing(order.options.period_ns),
            metadata,
            self._say,
        )

    async def _attach_again(self, host_run: HostRun, resume: orders.ResumeOrder) -> None:
        """Pods may be in other networks by now than they were, or in none for a while."""
        pods = await host_run.programs.networks(resume.pods) if resume.pods else None
        for port in await self._ports.restore(resume.ports, pods, self._networks):
            node = self._plan.topology.nodes[port.node].name if port.node >= 0 else "an instance"
            host_run.notice(f"{node} is not attached: the network of its pod is gone")

    async def _attach(self, order: orders.AttachOrder) -> Answer:
        self._prepared()
        facts = await self._ports.attach(order.port, order.netns, order.if_, self._networks)
        return {"kind": facts.get("kind", "?"), "stamp": facts.get("stamp", "?")}

    async def _detach(self, order: orders.DetachOrder) -> Answer:
        network = await self._ports.detach(order.port)
        if network and self.host_run is not None:
            self.host_run.programs.detached(network)
        return {}

    async def _open(self, _order: orders.NoFields) -> Answer:
        await self._prepared().open()
        return {}

    async def _start(self, order: orders.StartOrder) -> Answer:
        await self._prepared().start(order.t0_ns)
        return {}

    async def _starts(self, order: orders.StartsOrder) -> Answer:
        host_run = self._prepared()
        orders.check_count("starts", order.starts, len(host_run.order.hosts))
        host_run.announce(order.starts)
        return {}

    async def _bind(self, order: orders.BindOrder) -> Answer:
        host_run = self._prepared()
        orders.check_nodes(self._instances, [*order.bind, *order.unbind, *order.hold])
        gone, hold = sorted(set(order.unbind)), sorted(set(order.hold))
        await host_run.bind(order.step, order.bind, gone, hold)
        return {}

    async def _cut(self, order: orders.CutOrder) -> Answer:
        host_run = self._prepared()
        if not host_run.started:
            raise OrderError("the experiment has not started")
        orders.check_nodes(self._instances, order.nodes)
        await host_run.cut(sorted(set(order.nodes)))
        return {}

    async def _capture(self, order: orders.CaptureOrder) -> Answer:
        host_run = self._prepared()
        orders.check_nodes(self._instances, [one.dst for one in order.places])
        host_run.check_own(one.src for one in order.places)
        places = [
            (f"{one.src}>{one.dst}", bool(one.offered), one.interface) for one in order.places
        ]
        await self._datapath.capture(order.file, places, probes=bool(order.probes))
        return {}

    async def _lives(self, order: orders.LivesOrder) -> Answer:
        host_run = self._prepared()
        host_run.check_own(order.lives)
        host_run.programs.know(order.lives)
        return {}

    async def _pods(self, order: orders.PodsOrder) -> Answer:
        host_run = self._prepared()
        host_run.check_own(order.pods)
        found = await host_run.programs.find(order.pods, order.hosts)
        kept = [(node, at.hold, at.network, at.kind) for node, at in found.kept.items()]
        return _sent(orders.PodsReply(tuple(kept), tuple(found.missing.items())))

    async def _reach(self, order: orders.ReachOrder) -> Answer:
        host_run = self._prepared()
        host_run.check_own(probe.node for probe in order.probes)
        return _sent(orders.ReachReply(tuple(await host_run.programs.reach(order.probes))))

    async def _echo(self, order: orders.EchoesOrder) -> Answer:
        host_run = self._prepared()
        host_run.check_own(one.node for one in order.echoes)
        host_run.echo(order.echoes)
        return {}

    async def _do_early(self, order: orders.EarlyOrder) -> Answer:
        host_run = self._prepared()
        host_run.check_own(order.nodes)
        if host_run.started:
            raise OrderError("the experiment has started")
        found = host_run.programs.do_early(order.nodes)
        pending = [node for node, (over, _) in found.items() if not over]
        failed = [(node, error) for node, (over, error) in found.items() if over and error]
        return _sent(orders.EarlyReply(tuple(pending), tuple(failed)))

    async def _move(self, order: orders.MoveOrder) -> Answer:
        host_run = self._prepared()
        moved = {one.node: (one.ipv4, one.ipv6) for one in order.moved}
        orders.check_nodes(self._instances, moved)
        orders.check_addresses(moved.items(), self._networks)
        await host_run.enforcer.move(moved)
        return {}

    async def _extend(self, order: orders.ExtendOrder) -> Answer:
        host_run = self._prepared()
        if order.base != self._plan.digest:
            raise OrderError(f"the plan here has the digest {self._plan.digest}, not {order.base}")
        plan = await self._left(order.left) if order.left else await self._arrived()
        if plan.digest != order.digest:
            raise OrderError(
                f"the plan that is here has the digest {plan.digest}, the longer one has"
                f" {order.digest:.80}"
            )
        if plan.topology != self._plan.topology or plan.seed != self._plan.seed:
            raise OrderError("the longer plan is one of another run")
        return {"left_ns": await host_run.extend(plan)}

    async def _left(self, name: str) -> Plan:
        """The plan in a folder of this name."""
        place = self._directory.parent / name
        if place.parent != self._directory.parent or name == "..":
            raise OrderError(f"{name!r:.80} is no folder beside the plan")
        return await asyncio.to_thread(read_plan, place)

    async def _arrived(self) -> Plan:
        """The one whose shards have come."""
        return await asyncio.to_thread(lambda: decode(self._arriving.files(), lazy=False))

    async def _shard(self, order: orders.ShardOrder) -> Answer:
        self._arriving.take(order.digest, order.number, b64decode(order.data))
        return {}

    async def _adopt(self, order: orders.AdoptOrder) -> Answer:
        """Doing it twice is as good as once: whoever has asked may not have heard the answer."""
        if order.digest != self._plan.digest:
            self._plan = self._prepared().adopt(order.digest)
        return {}

    async def _forget(self, _order: orders.NoFields) -> Answer:
        self._prepared().forget()
        return {}

    async def _finish(self, _order: orders.NoFields) -> Answer:
        return _sent(orders.FinishReply(tuple(await self._prepared().programs.finish())))

    async def _status(self, _order: orders.NoFields) -> Answer:
        found: dict[str, object] = {}
        if self.host_run is not None:
            found.update(self.host_run.counters())
        try:
            found["datapath"] = await self._datapath.totals()
        except EngineError:
            found["datapath"] = {}  # gone: the agent is about to say so
        return found

    async def _stop(self, order: orders.NoFields) -> Answer:
        if self.host_run is not None:
            await self.host_run.finish()
        found = await self._status(order)
        self.stopping = True
        self._on_stop()
        return found

    def _prepared(self) -> HostRun:
        if self.host_run is None:
            raise OrderError("the agent was not prepared")
        return self.host_run

    def _broke(self, broken: asyncio.Future[None]) -> None:
        if not broken.cancelled():
            self._on_broken(str(broken.exception() or "?"))
