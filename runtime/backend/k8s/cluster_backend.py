"""The backend of a cluster: instances are pods, which exist; agents on their nodes start, end and
shape them. This is the coordinator's half (docs/kubernetes.md, how a run proceeds).

Nothing is made in the cluster from here, and nothing deleted: the command has applied the
manifests. What is waited for has a deadline, and what is not there then is named.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from compiler.plan.format import TOOL_VERSION
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.types import DEFAULT_READY_TIMEOUT_NS, NO_CHECK, Node, Service
from runtime import say
from runtime.agent.pod.pod_messages import KERNEL, USER, NodeFacts
from runtime.agent.process.orders import EchoesOrder, EchoOrder
from runtime.backend.base import (
    Entrance,
    MakeBackend,
    Notice,
    RunContext,
    RunNetwork,
)
from runtime.backend.hosts.agent_network import AgentNetwork
from runtime.backend.k8s import cluster_datapath
from runtime.backend.k8s.api import Api
from runtime.backend.k8s.cluster_datapath import DatapathChoice
from runtime.backend.k8s.cluster_early_starts import ClusterEarlyStarts
from runtime.backend.k8s.cluster_hosts import ClusterHosts
from runtime.backend.k8s.logtimes import LogTimes
from runtime.backend.k8s.pod_instances import InstanceCallbacks, PodInstance
from runtime.backend.k8s.pod_readiness import PodReadiness
from runtime.backend.k8s.podcommands import PodCommands, variables
from runtime.backend.k8s.podlogs import PodLogs
from runtime.backend.k8s.podplacement import Placed, addresses_of, placed
from runtime.backend.k8s.pods import Pod, PodWatch
from runtime.backend.k8s.proof import Proof
from runtime.backend.k8s.supervisors import NodeParts
from runtime.errors import RunError, unwritten
from runtime.probing.echo_prober import Echo, EchoProber, Heard
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import LOG_TIMES, LOGS_INCOMPLETE
from runtime.schedule import first_incarnations

CONNECT_SECONDS = 60.0


def make(key: bytes, api: Api) -> MakeBackend:
    """`key` is the run's, which its supervisors and agents have, too."""
    return lambda context: ClusterBackend(key, api, context)


class ClusterBackend:
    """See runtime.backend.base (Backend)."""

    has_files_here = False  # they go with their pods

    def __init__(self, key: bytes, api: Api, context: RunContext) -> None:
        self.network: AgentNetwork | None = None
        self.instances: dict[str, PodInstance] = {}
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reason = RunError("nothing has failed")
        self._key = key
        self._api = api
        self._context = context
        self._watch = PodWatch(api, context.notice)
        self._watching: asyncio.Task[None] | None = None
        self._parts: list[NodeParts] = []
        self._hosts: ClusterHosts | None = None
        self._logs: PodLogs | None = None
        self._hearers = InstanceCallbacks(
            context.on_ended, context.on_killed, context.record, context.warn
        )

    # -- the start ------------------------------------------------------------------------------

    async def start(self) -> RunNetwork:
        self._watching = asyncio.get_running_loop().create_task(self._watch.run())
        self._watching.add_done_callback(self._watch_over)
        topology = self._context.plan.topology
        pods, where, agents = await self._gather(
            PodReadiness(self._context, self._watch, self._watching)
        )
        facts = await self._connect(where.nodes, agents)
        choice = self._choose(facts)
        self._context.notice(f"datapath: {_DATAPATHS[choice.name]}, since {choice.why}")
        if choice.name == USER and (late := cluster_datapath.refused_real_time(facts)):
            self._context.warn(late)
        machines = Counter(one.boot_id for one in facts)
        begun = zip(self._parts, facts, strict=True)
        await asyncio.gather(
            *(part.begin(choice.name, machines[one.boot_id]) for part, one in begun)
        )
        by_node = {
            node: pods[each.name] for node, each in enumerate(topology.nodes) if each.name in pods
        }
        self._add_instances(pods)
        of_node = {instance.index: instance for instance in self.instances.values()}
        self._hosts = ClusterHosts(self._context, self._key, where, self._parts, of_node, by_node)
        self.network = AgentNetwork(self._context, self._hosts)
        self._follow(self._hosts, [*pods.values(), *agents.values()])
        await self.network.start()
        await self._prepare(self._hosts, self.network, choice)
        self.network.facts.update(self._facts(choice, facts, pods))
        self._logs = self._followed(where, self.network, pods)
        self._logs.begin()
        return self.network

    def _followed(self, where: Placed, network: AgentNetwork, pods: Mapping[str, Pod]) -> PodLogs:
        """The logs of instances."""
        context = self._context
        hosts = where.placement.hosts

        def moment(instance: str, unix_ns: int) -> tuple[int, int] | None:
            return network.elapsed_ns(hosts[self.instances[instance].index], unix_ns)

        held = HeldDirectory.hold(context.directory)
        try:
            times = LogTimes(LineFile(held, LOG_TIMES, context.warn), moment)
        except OSError as error:
            raise unwritten(error) from error
        names = {name: pods[name].name for name in self.instances}
        return PodLogs(self._api, context.directory, names, context.notice, times, moment)

    async def _gather(self, ready: PodReadiness) -> tuple[dict[str, Pod], Placed, dict[str, Pod]]:
        """The pods of instances, where they are, and the agents' pods there, by node: all as they
        are when the last of them is there. RunError."""
        topology = self._context.plan.topology
        where = placed(topology, await ready.instances())
        while True:
            agents = await ready.agents(where.nodes)
            pods = await ready.instances()  # it took minutes, maybe: they may be others
            before, where = where, placed(topology, pods)
            if where.nodes == before.nodes:
                return pods, where, agents

    def _follow(self, hosts: ClusterHosts, known: Iterable[Pod]) -> None:
        """From now on `hosts` hear of each change, and of those since these pods were `known`."""
        self._watch.on_change = hosts.changed
        for pod in known:
            now = self._watch.pods.get(pod.name)
            if now != pod:
                hosts.changed(pod, now)

    async def _connect(self, nodes: Sequence[str], agents: Mapping[str, Pod]) -> list[NodeFacts]:
        """What the supervisors of these nodes tell; checked to be of this run. RunError."""
        for name in nodes:
            address = agents[name].addresses[0]
            self._parts.append(NodeParts(name, address, self._key, self._context.notice))
        await asyncio.gather(*(part.connect(CONNECT_SECONDS) for part in self._parts))
        facts = list(await asyncio.gather(*(part.facts() for part in self._parts)))
        cluster_datapath.check(facts, self._context.plan.digest, TOOL_VERSION)
        return facts

    def _choose(self, facts: Sequence[NodeFacts]) -> DatapathChoice:
        """Also by what the plan asks for: the kernel's has narrower limits."""
        context = self._context
        end = {} if context.options.until_ns is None else {"end_ns": context.options.until_ns}
        start = context.options.start_at_ns
        unfit = misfit(context.plan, KERNEL, start, **end)
        choice = cluster_datapath.chosen(
            context.options.datapath, facts, str(unfit) if unfit is not None else ""
        )
        found = misfit(context.plan, choice.name, start, **end)
        if found is not None:
            raise RunError(f"{found} with this datapath, at {say.seconds(found.at_ns)}", "lower it")
        return choice

    def _add_instances(self, pods: Mapping[str, Pod]) -> None:
        """Those that are ever there, in the order of the topology."""
        context = self._context
        topology = context.plan.topology
        wanted = frozenset(first_incarnations(context.schedule))
        for index, node in enumerate(topology.nodes):
            if node.service >= 0 and node.name in wanted:
                self.instances[node.name] = self._instance(
                    index, node, topology.services[node.service], pods[node.name]
                )

    def _instance(self, index: int, node: Node, service: Service, pod: Pod) -> PodInstance:
        argv = (*service.entrypoint, *service.command) or (service.image,)
        instance = PodInstance(
            index,
            node,
            argv,
            bool(service.entrypoint),
            self._t0_ns,
            self._hearers,
            _check_ns(service),
        )
        plan = self._context.plan
        env = variables(node, plan.seed, plan.digest, addresses_of(pod))
        instance.runner = PodCommands(self._api, pod.name, env, instance.goes_on)
        return instance

    def _t0_ns(self) -> int:
        return self.network.t0_ns if self.network is not None else 0

    async def _prepare(
        self, hosts: ClusterHosts, network: AgentNetwork, choice: DatapathChoice
    ) -> None:
        """From agents that are prepared to instances that are closed in, proven on the way."""
        await hosts.find()
        proof = Proof(
            self._context.plan,
            hosts.placement,
            [part.name for part in self._parts],
            hosts.ask,
            self._context.warn,
        )
        await proof.before()
        proof.compare(self._context.options.start_at_ns)
        await hosts.attach()
        await proof.closed(counted=choice.name == USER)
        await hosts.take_charge()
        network.facts.update(proof.facts)

        async def prove() -> None:
            await network.open()
            await proof.shaped(self._context.schedule.clock.plan_time(0))
            await self._start_early(hosts)

        network.before_start = prove

    async def _start_early(self, hosts: ClusterHosts) -> None:
        context = self._context
        first = {*context.schedule.present, *context.schedule.steps[0].joins}
        starts = ClusterEarlyStarts(
            context.plan, hosts.placement.hosts, hosts.pods, hosts.ask, context.warn
        )
        await starts.carry_out(first & self.instances.keys())

    def _facts(
        self, choice: DatapathChoice, facts: Sequence[NodeFacts], pods: Mapping[str, Pod]
    ) -> dict[str, Any]:
        """For the run's manifest."""
        images = {
            container.image: container.image_id
            for pod in pods.values()
            for container in pod.containers.values()
            if container.image_id
        }
        return {
            "datapath": choice.name,
            "datapath_reason": choice.why,
            "nodes": [asdict(one) for one in facts],
            "images": dict(sorted(images.items())),
        }

    # -- while it runs --------------------------------------------------------------------------

    def _watch_over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._close(error if isinstance(error, RunError) else RunError(repr(error)))

    def _close(self, error: RunError) -> None:
        if not self.closed.done():
            self._reason = error
            self.closed.set_result(None)

    async def why(self) -> RunError:
        return self._reason

    async def enter(self, instance: str) -> Entrance:
        raise RunError(
            f"no command can be started in {instance} from here",
            "use `tstorm exec --backend k8s`, or kubectl exec",
        )

    def prober(self, file: LineFile | None, notice: Notice, on_end: Notice) -> EchoProber:
        context = self._context
        return EchoProber(context.plan, context.schedule, file, self._echo, notice, on_end)

    def begin(self, t0_ns: int) -> None:
        """Its network says when that is."""

    async def observe(self, samples: LineFile) -> None:
        """Agents tell of instances by themselves."""

    async def _echo(self, echoes: Sequence[Echo], heard: Heard) -> None:
        if self._hosts is None or self.network is None:
            raise RunError("nobody is there to send echoes")
        rows: dict[int, list[EchoOrder]] = {}
        for one in echoes:
            address = self._hosts.address(one.src, one.dst)
            if not address:
                continue  # they have no family in common, so they have no path
            times = (one.count, one.interval_ns, one.timeout_ns, one.wait_ns)
            host = self._hosts.placement.hosts[one.src]
            rows.setdefault(host, []).append(EchoOrder(one.number, one.src, address, *times))
        orders = {host: EchoesOrder(tuple(mine)) for host, mine in rows.items()}
        await self.network.echo(orders, heard)

    # -- the end --------------------------------------------------------------------------------

    async def finish(self) -> dict[str, Any]:
        if self._hosts is not None:
            await self._hosts.finish()
        facts: dict[str, Any] = {}
        if self._logs is not None:
            await self._logs.end()
            facts[LOGS_INCOMPLETE] = incomplete = self._logs.incomplete()
            if incomplete:
                names, why = say.some(list(incomplete), 1), next(iter(incomplete.values()))
                self._context.warn(f"lines may be missing in the log of {names}: {why}")
        if self.network is None:  # else it ends them
            await asyncio.gather(*(part.end() for part in self._parts))
        return facts

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()


def _check_ns(service: Service) -> int:
    """How long readiness is waited for; 0 where nobody asks."""
    if service.ready in ((), (NO_CHECK,)):
        return 0
    return service.ready_timeout_ns or DEFAULT_READY_TIMEOUT_NS


_DATAPATHS = {"user": "the packet engine", "kernel": "the kernel's traffic control"}
