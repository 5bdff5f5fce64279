"""What the driver has told agents, and what it has to tell one that starts again.

Agents read the plan; beside it they are told which ports instances have and who is held. All are
told alike, since holds concern the paths of every host. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Port:
    """One attached incarnation."""

    node: int
    netns: str
    interface: str  # where the datapath is attached
    attached: bool = False  # its agent has said so


def bind_request(
    step: int,
    bound: Mapping[int, int],
    unbind: Iterable[int] = (),
    hold: Iterable[int] = (),
) -> dict[str, Any]:
    """`bind` of docs/agent.md; `bound` maps nodes to ports."""
    return {
        "do": "bind",
        "step": step,
        "bind": [list(pair) for pair in sorted(bound.items())],
        "unbind": sorted(unbind),
        "hold": sorted(hold),
    }


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
        self.coming: dict[int, dict[str, Any]] = {}
        self._bound: dict[int, int] = {}  # node -> port, as of now
        self._held: set[int] = set()
        self._missed: dict[int, dict[int, dict[str, Any]]] = {}  # lost host -> step -> its `bind`
        self._uncut: dict[int, set[int]] = {}  # lost host -> nodes cut without it

    def stage(self, told: dict[str, Any]) -> None:
        """A `bind` that all agents are told now, but those that are lost."""
        self.coming[told["step"]] = told
        for missed in self._missed.values():
            missed[told["step"]] = told

    def effect(self, step: int) -> None:
        """The step has taken effect: what was asked for is the present now."""
        told = self.coming.pop(step, None)
        if told is None:
            return
        for node, port in told["bind"]:
            self._bound[node] = port
            self._held.discard(node)
        for node in told["unbind"]:
            self._bound.pop(node, None)
        self._held.update(told["hold"])

    def bound(self, node: int) -> bool:
        """Whether its port is bound to it now, or is to be from the start on."""
        first = self.coming.get(0, {"bind": ()})
        return node in self._bound or any(node == bound for bound, _ in first["bind"])

    def cut(self, node: int) -> None:
        """Its hold, which is in force, has ended."""
        self._held.discard(node)
        self._bound.pop(node, None)
        for host, missed in self._missed.items():
            self._uncut[host].add(node)
            for step in missed.keys() - self.coming.keys():
                held = missed[step]["hold"]
                missed[step]["hold"] = [other for other in held if other != node]

    def lost(self, host: int) -> None:
        """Its agent hears nothing from now on. What is still to come it may not have heard."""
        self._missed[host] = dict(self.coming)
        self._uncut[host] = set()

    def back(self, host: int) -> list[dict[str, Any]]:
        """What to tell an agent that is back, be it the same process or one that was resumed.

        What it knows already does no harm.
        """
        missed = self._missed.pop(host, {})
        requests = [told for _, told in sorted(missed.items())]
        over = sorted(self._uncut.pop(host, set()) - self._held)
        return [*requests, {"do": "cut", "nodes": over}] if over else requests

    def resume(self, placement: tuple[int, ...], host: int) -> dict[str, Any]:
        """What `resume` has of it (docs/agent.md), for the agent of one host."""
        nodes = {port: node for node, port in self._bound.items()}
        ports = [
            [number, nodes.get(number, -1), port.netns, port.interface]
            for number, port in sorted(self.ports.items())
            if port.attached and placement[port.node] == host
        ]
        lives = [[node, pid] for node, pid in sorted(self.lives.items()) if placement[node] == host]
        pods = [[node, uid] for node, uid in sorted(self.pods.items()) if placement[node] == host]
        return {
            "ports": ports,
            "held": sorted(self._held),
            "lives": lives,
            "pods": pods,
            "hosts": self.hosts,
            "moved": [[node, *pair] for node, pair in sorted(self.moved.items())],
        }
