"""Nodes of a cluster as the hosts of a run: whose pods are found, attached and led by their agents.

Pods exist before the run and are watched during it. What happens to them is settled here: a
container that was started again is looked for again, since its processes are others; a pod that has
gone for good, or an agent's pod that was replaced, ends the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from runtime.agent.pod.podend import longest_seconds
from runtime.agent.process.orders import (
    AttachOrder,
    BindOrder,
    DetachOrder,
    FinishReply,
    LivesOrder,
    MovedNode,
    MoveOrder,
    PodsOrder,
    PodsReply,
)
from runtime.backend.base import RunContext
from runtime.backend.hosts.agent_state import Port
from runtime.backend.hosts.hosts import NetworkHandle
from runtime.backend.instance import Incarnation
from runtime.backend.k8s.pod_instances import PodInstance
from runtime.backend.k8s.podplacement import Placed, addresses_of, of_family
from runtime.backend.k8s.pods import GATE, INSTANCE, Pod
from runtime.backend.k8s.supervisors import NodeParts
from runtime.coordinator.agent_link import Host
from runtime.coordinator.says import HoldReport, InstanceReport
from runtime.errors import RunError
from runtime.json_schema import decoded
from runtime.rundir import etchosts
from runtime.say import some
from runtime.system.network.interface import INTERFACE
from runtime.system.network.netlink import NetlinkRequest

CONNECT_SECONDS = 60.0
FIND_SECONDS = 60.0  # from a container that runs to its tstorm-hold that takes orders
FIND_PAUSE_SECONDS = 0.3
AT_ONCE = 32  # hosts that are told where their pods are
FINISH_SECONDS = 4.0  # for an agent to answer, beside the time that programs may take


class PodPorts:
    """See runtime.backend.base (PortAllocator). A cluster has made every interface, an eth0 for all
    lives of a pod, and takes it away; its agent is told of it when the pod is found."""

    def __init__(self) -> None:
        self.more: Sequence[NetlinkRequest] = ()
        self.groups = False

    async def attach(self, _incarnation: Incarnation, node: int) -> int:
        return node

    async def furnished(self, _incarnation: Incarnation, node: int, port: int) -> None:
        """It has its addresses."""

    def give_back(self, port: int) -> None:
        """It stays for the next life."""

    async def tidy(self, _next_due: Callable[[], int]) -> None:
        await asyncio.Event().wait()


class ClusterHosts:
    """See runtime.backend.hosts.hosts (Hosts). `pods` by node of the plan."""

    def __init__(
        self,
        context: RunContext,
        key: bytes,
        where: Placed,
        parts: Sequence[NodeParts],
        instances: Mapping[int, PodInstance],
        pods: Mapping[int, Pod],
    ) -> None:
        self.key = key
        self.placement = where.placement
        self.connect_seconds = self.back_seconds = CONNECT_SECONDS
        self.pipes = None
        self.shares_files = False
        self.parts = list(parts)
        self.agents = [Host(part.name, part.address) for part in parts]
        self._context = context
        self._instances = instances
        self._pods = dict(pods)
        self._found_of = dict(pods)  # as they were when their processes were looked for
        self._by_name = {pod.name: node for node, pod in pods.items()}
        self._over: RunError | None = None  # why the run cannot go on
        self._settled = False  # every program is kept by somebody who was told
        self._ending = False
        self._beside: dict[int, asyncio.Task[None]] = {}
        self._tried: dict[int, Pod] = {}  # as they were when they were last taken up again

    @property
    def pods(self) -> Mapping[int, Pod]:
        """By node of the plan, as they are known now."""
        return self._pods

    def attaching(self, network: NetworkHandle) -> PodPorts:
        self._network = network
        for part in self.parts:
            part.on_fatal = network.on_fatal
        self._name_all()
        return PodPorts()

    def _name_all(self) -> None:
        """Lines for /etc/hosts, with the addresses that instances have now."""
        addresses = self._addresses()
        for node, instance in self._instances.items():
            instance.now_at(addresses[node])
        shown = [of_family(pair, self._context.plan.topology.network) for pair in addresses]
        lines = etchosts.entries(self._context.plan.topology, shown)
        self._network.agent_state.hosts = "".join(f"{line}\n" for line in lines)

    def _addresses(self) -> list[tuple[str, str]]:
        moved = self._network.agent_state.moved
        return [moved.get(node, pair) for node, pair in enumerate(self.placement.addresses)]

    def address(self, source: int, destination: int) -> str:
        """Of the destination, of a family that both have in this network; '' if there is none."""
        addresses, network = self._addresses(), self._context.plan.topology.network
        mine, other = (of_family(addresses[node], network) for node in (source, destination))
        return next((there for here, there in zip(mine, other, strict=True) if here and there), "")

    # -- before the start -----------------------------------------------------------------------

    async def ask(self, host: int, order: object) -> object:
        """The agent of a host. RunError."""
        return await self._network.ask(host, order)

    async def find(self) -> None:
        """Has each agent look for the pods of its node. RunError that names who is not there."""
        await self._on_each(self._find)

    async def _find(self, host: int, nodes: Collection[int]) -> None:
        state, loop = self._network.agent_state, asyncio.get_running_loop()
        deadline = loop.time() + FIND_SECONDS
        wanted = sorted(nodes)
        while True:
            self._found_of.update({node: self._pods[node] for node in wanted})
            state.pods.update({node: self._pods[node].uid for node in wanted})
            order = PodsOrder({node: state.pods[node] for node in wanted}, state.hosts)
            answer = await self._network.ask(host, order)
            reply = decoded(PodsReply, answer, f"what {self.parts[host].name} has found")
            for node, hold, network, _kind in reply.found:
                self._found(host, node, hold, network)
            missing = dict(reply.missing)
            wanted = sorted(missing.keys() & set(wanted))
            if not wanted:
                return
            if loop.time() > deadline:
                raise self._not_found(host, {node: missing[node] for node in wanted})
            await asyncio.sleep(FIND_PAUSE_SECONDS)

    def _found(self, host: int, node: int, hold: int, network: int) -> None:
        if node not in self._pods or self.placement.hosts[node] != host:
            raise RunError(f"{self.parts[host].name} has found node {node}, which is not its")
        state = self._network.agent_state
        state.lives[node] = hold
        netns = f"/proc/{network}/ns/net"
        known = state.ports.get(node)
        if known is None or known.netns != netns:
            state.ports[node] = Port(node, netns, INTERFACE)

    def _not_found(self, host: int, missing: Mapping[int, str]) -> RunError:
        nodes = sorted(missing)
        names, reason = some([self._pods[node].name for node in nodes], 1), missing[nodes[0]]
        return RunError(
            f"{self.parts[host].name}: the processes of pod {names} are not found: {reason}",
            "pods of gVisor, Kata or Fargate have no processes on their node",
        )

    async def attach(self) -> None:
        """All instances that were found, where they send. RunError."""
        await self._on_each(self._attach)

    async def _attach(self, host: int, nodes: Collection[int]) -> None:
        for node in sorted(nodes):
            known = self._network.agent_state.ports[node]
            if not known.attached:
                order = AttachOrder(node, node, known.netns, known.interface)
                await self._network.ask(host, order)
                known.attached = True

    async def take_charge(self) -> None:
        """From now on agents carry out what the timeline says of their instances. RunError, also
        for a pod that is not as it was when it was looked for: all that was proven of it is void.
        """
        await self._on_each(self._tell_lives)
        if self._over is not None:
            raise self._over
        for node, instance in sorted(self._instances.items()):
            self._check_same(node, instance)
        self._settled = True

    def _check_same(self, node: int, instance: PodInstance) -> None:
        pod, what = self._pods[node], ""
        if self._has_moved(node):
            was = " ".join(filter(None, self._addresses()[node]))
            what = f"has got another address: {' '.join(pod.addresses)}, before {was}"
        elif _another_hold(self._found_of[node], pod, instance.held):
            what = "had its container started again"
        if what:
            raise RunError(f"pod {pod.name} on {pod.node} {what}, before the start", "run again")

    async def _tell_lives(self, host: int, nodes: Collection[int]) -> None:
        lives = LivesOrder({node: self._network.agent_state.lives[node] for node in nodes})
        await self._network.ask(host, lives)

    async def _on_each(self, action: Callable[[int, list[int]], Awaitable[None]]) -> None:
        """The same with the nodes of every host, side by side; the first error.

        Only some at a time: the names of all instances, to a thousand agents at once, would take
        200 MB here, and the time in which clocks are to answer.
        """
        at = self.placement.hosts
        nodes: dict[int, list[int]] = {host: [] for host in range(len(self.parts))}
        for node in sorted(self._pods):
            nodes[at[node]].append(node)
        few = asyncio.Semaphore(AT_ONCE)

        async def one(host: int, mine: list[int]) -> None:
            async with few:
                await action(host, mine)

        await asyncio.gather(*(one(host, mine) for host, mine in nodes.items()))

    # -- while it runs --------------------------------------------------------------------------

    async def wire(self, bound: Mapping[int, int]) -> None:
        """Pods have their addresses all the time."""

    def lived(self, _host: int, life: InstanceReport) -> None:
        instance = self._instances.get(life.node)
        if instance is not None:
            instance.lived(life)

    def reported(self, _host: int, report: HoldReport) -> None:
        instance = self._instances.get(report.node)
        if instance is not None:
            instance.reported(report)

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        """The API server tells of a pod of the run."""
        known = after or before
        if known is None or self._ending:
            return
        if known.component == "agent":
            self._agent_pod(before, after)
        elif known.name in self._by_name:
            self._instance_pod(self._by_name[known.name], after)

    def _agent_pod(self, before: Pod | None, after: Pod | None) -> None:
        known = after or before
        assert known is not None
        part = next((part for part in self.parts if part.name == known.node), None)
        if part is None:
            return
        if after is None or after.leaving or (before is not None and before.uid != after.uid):
            self._give_up(
                RunError(
                    f"the agent pod of {part.name} was deleted or replaced",
                    "the network of that node cannot be taken up again: run again",
                )
            )

    def _instance_pod(self, node: int, after: Pod | None) -> None:
        before = self._pods[node]
        if after is None or after.leaving or after.uid != before.uid or after.phase == "Failed":
            why = f": {after.reason}" if after is not None and after.reason else ""
            self._give_up(
                RunError(f"pod {before.name} on {before.node} was deleted or replaced{why}")
            )
            return
        self._pods[node] = after
        instance = self._instances.get(node)
        if instance is None:
            return
        instance.changed(before, after)
        if self._settled and (_another_hold(before, after, instance.held) or self._has_moved(node)):
            self._again(node)

    def _give_up(self, error: RunError) -> None:
        self._over = self._over or error
        self._network.on_fatal(error)

    def _has_moved(self, node: int) -> bool:
        pod = self._pods[node]
        return bool(pod.addresses) and addresses_of(pod) != self._addresses()[node]

    def _again(self, node: int) -> None:
        """Its processes are others than before, or its address is."""
        if node in self._beside:
            return
        task = asyncio.get_running_loop().create_task(self._take_up_again(node))
        self._beside[node] = task
        task.add_done_callback(lambda done: self._taken_up(node, done))

    async def _take_up_again(self, node: int) -> None:
        host = self.placement.hosts[node]
        while True:
            taken_up = self._tried[node] = self._pods[node]
            moved = self._has_moved(node)
            if moved and not self._within(taken_up):
                return
            if moved:
                self._network.agent_state.moved[node] = addresses_of(taken_up)
                self._name_all()
            await self._find(host, [node])
            if not self._network.agent_state.ports[node].attached:
                await self._attach_again(host, node)
            if moved:  # last, since nobody knows the address before: what it sends is shaped
                await self._tell_moved(node)
            await self._tell_lives(host, [node])
            if self._pods[node] == taken_up:
                return

    def _within(self, pod: Pod) -> bool:
        """Whether its addresses are among the prefixes that datapaths were attached for. The run is
        over if not: what is sent there is not shaped."""
        networks = [ip_network(network) for network in self.placement.networks]
        for address in filter(None, addresses_of(pod)):
            if not any(ip_address(address) in network for network in networks):
                self._give_up(
                    RunError(
                        f"pod {pod.name} on {pod.node} has got the address {address}, which is in"
                        f" no network of the run: {' '.join(self.placement.networks)}",
                        "what is sent there would not be shaped: run again",
                    )
                )
                return False
        return True

    async def _attach_again(self, host: int, node: int) -> None:
        """To the network that its pod has now, as it was to the one that is gone."""
        ask, state = self._network.ask, self._network.agent_state
        await ask(host, DetachOrder(node))
        await self._attach(host, [node])
        if state.bound(node):
            await ask(host, BindOrder(0, {node: node}))

    async def _tell_moved(self, node: int) -> None:
        """All agents, and then all names, follow the address that its pod has now."""
        pair = self._addresses()[node]
        order = MoveOrder((MovedNode(node, *pair),))
        await asyncio.gather(*(self._network.ask(host, order) for host in range(len(self.parts))))
        name = self._context.plan.topology.nodes[node].name
        address = " ".join(filter(None, pair))
        self._context.record(
            {
                "kind": "moved",
                "target": name,
                "applied_ns": self._network.elapsed(),
                "address": address,
            }
        )
        self._context.notice(f"{name} has another address: {address}")
        await self._on_each(self._name_again)

    async def _name_again(self, host: int, nodes: Collection[int]) -> None:
        """In the containers that are there; others get the names when they are found."""
        uids = {node: self._pods[node].uid for node in nodes}
        await self._network.ask(host, PodsOrder(uids, self._network.agent_state.hosts))

    def _taken_up(self, node: int, task: asyncio.Task[None]) -> None:
        del self._beside[node]
        if task.cancelled() or self._ending or self._over is not None:
            return
        error, now = task.exception(), self._pods[node]
        if now != self._tried[node] and now.running(_keeper(self._instances[node].held)):
            self._again(node)  # what was tried was not to be found any more
        elif error is not None:
            name = self._pods[node].name
            message = error.message if isinstance(error, RunError) else repr(error)
            self._context.warn(f"{name} cannot join again: {message}")

    # -- the end --------------------------------------------------------------------------------

    async def finish(self) -> None:
        """Has every program leave; names those that do not."""
        self._ending = True
        for task in self._beside.values():  # nobody is to join again now
            task.cancel()
        if not self._settled:
            return
        await asyncio.gather(*(self._finish(host) for host in range(len(self.parts))))

    async def _finish(self, host: int) -> None:
        name = self.parts[host].name
        try:
            answer = await asyncio.wait_for(
                self._network.ask(host, "finish"),
                FINISH_SECONDS + longest_seconds(self._context.plan.topology),
            )
            running = decoded(FinishReply, answer, "its answer").running
        except (RunError, TimeoutError) as error:
            reason = error.message if isinstance(error, RunError) else "no answer in time"
            self._context.warn(f"{name}: its programs may still run: {reason}")
            return
        if running:
            self._context.warn(f"{name}: {len(running)} programs did not end")

    async def end(self, _told: Collection[int]) -> RunError | None:
        faults = await asyncio.gather(*(part.end() for part in self.parts))
        return next((fault for fault in faults if fault is not None), None)

    def refused(self) -> list[dict[str, Any]]:
        """Nothing is looked at beside the datapath's own counters."""
        return []

    def overflowed(self) -> int | None:
        return None


def _keeper(held: bool) -> str:
    return INSTANCE if held else GATE


def _another_hold(before: Pod, after: Pod, held: bool) -> bool:
    """Whether the container that keeps its program is another one, and runs."""
    name = _keeper(held)
    if not after.running(name):
        return False
    was, now = before.containers.get(name), after.containers[name]
    return was is None or was.container_id != now.container_id or was.state != "running"
