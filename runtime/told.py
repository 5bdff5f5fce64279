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


class Told:
    """`ports` are those that exist, by number; `coming` the requests for steps still to come."""

    def __init__(self) -> None:
        self.ports: dict[int, Port] = {}
        self.coming: dict[int, dict[str, Any]] = {}
        self._bound: dict[int, int] = {}  # node -> port, as of now
        self._held: set[int] = set()

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

    def cut(self, node: int) -> None:
        self._held.discard(node)
        self._bound.pop(node, None)

    def resume(self, placement: tuple[int, ...], host: int) -> dict[str, Any]:
        """`ports` and `held` of docs/agent.md (`resume`), for the agent of one host."""
        nodes = {port: node for node, port in self._bound.items()}
        ports = [
            [number, nodes.get(number, -1), port.netns]
            for number, port in sorted(self.ports.items())
            if port.attached and placement[port.node] == host
        ]
        return {"ports": ports, "held": sorted(self._held)}
