"""What the driver has told agents, and what it has to tell one that starts again.

Agents read the plan; beside it they are told which ports instances have and who is held. All are
told alike, since holds concern the paths of every host. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from runtime.agent.process.orders import (
    BindOrder,
    CutOrder,
    InstanceOrder,
    MovedNode,
    PortOrder,
    ResumeOrder,
)


@dataclass(slots=True)
class Port:
    """One attached incarnation."""

    node: int
    netns: str
    interface: str  # where the datapath is attached
    attached: bool = False  # its agent has said so


class AgentState:
    """`ports` are those that exist, by number; `coming` the `bind`s of steps still to come; `lives`
    the processes that keep programs, by node, and `pods` the UIDs of their pods, where agents start
    and end them; `hosts` the lines for /etc/hosts there; `moved` the addresses of nodes that have
    others than at the start."""

    def __init__(self) -> None:
        self.ports: dict[int, Port] = {}
        self.lives: dict[int, int] = {}
        self.pods: dict[int, str] = {}
        self.hosts = ""
        self.moved: dict[int, tuple[str, str]] = {}
        self.coming: dict[int, BindOrder] = {}
        self._bound: dict[int, int] = {}  # node -> port, as of now
        self._held: set[int] = set()
        self._missed: dict[int, dict[int, BindOrder]] = {}  # lost host -> step -> its `bind`
        self._uncut: dict[int, set[int]] = {}  # lost host -> nodes cut without it

    def stage(self, told: BindOrder) -> None:
        """What all agents are told now, but those that are lost."""
        self.coming[told.step] = told
        for missed in self._missed.values():
            missed[told.step] = told

    def effect(self, step: int) -> None:
        """The step has taken effect: what was asked for is the present now."""
        told = self.coming.pop(step, None)
        if told is None:
            return
        self._bound.update(told.bind)
        self._held.difference_update(told.bind)
        for node in told.unbind:
            self._bound.pop(node, None)
        self._held.update(told.hold)

    def bound(self, node: int) -> bool:
        """Whether its port is bound to it now, or is to be from the start on."""
        first = self.coming.get(0)
        return node in self._bound or (first is not None and node in first.bind)

    def cut(self, node: int) -> None:
        """Its hold, which is in force, has ended."""
        self._held.discard(node)
        self._bound.pop(node, None)
        for host, missed in self._missed.items():
            self._uncut[host].add(node)
            for step in missed.keys() - self.coming.keys():
                hold = tuple([other for other in missed[step].hold if other != node])
                missed[step] = replace(missed[step], hold=hold)

    def lost(self, host: int) -> None:
        """Its agent hears nothing from now on. What is still to come it may not have heard."""
        self._missed[host] = dict(self.coming)
        self._uncut[host] = set()

    def back(self, host: int) -> list[BindOrder | CutOrder]:
        """What to tell an agent that is back, be it the same process or one that was resumed.

        What it knows already does no harm.
        """
        missed = self._missed.pop(host, {})
        told = [missed[step] for step in sorted(missed)]
        over = sorted(self._uncut.pop(host, set()) - self._held)
        return [*told, CutOrder(tuple(over))] if over else list(told)

    def resume(
        self,
        placement: tuple[int, ...],
        host: int,
        applied: int,
        orders: tuple[InstanceOrder, ...],
    ) -> ResumeOrder:
        """What a new agent of one host is told of it; T0 on its clock is for others to say."""
        nodes = {port: node for node, port in self._bound.items()}
        ports = [
            PortOrder(number, nodes.get(number, -1), port.netns, port.interface)
            for number, port in sorted(self.ports.items())
            if port.attached and placement[port.node] == host
        ]
        return ResumeOrder(
            0,
            tuple(ports),
            tuple(sorted(self._held)),
            applied,
            {node: pid for node, pid in self.lives.items() if placement[node] == host},
            {node: uid for node, uid in self.pods.items() if placement[node] == host},
            self.hosts,
            tuple([MovedNode(node, *pair) for node, pair in sorted(self.moved.items())]),
            orders,
        )
