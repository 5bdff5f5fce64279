"""The ports of this host's datapath, and the network that each of them is attached in.

A network namespace is named as /proc names it, `net:[INODE]`. The datapath keeps those of its ports
alive (docs/tcal.md), so no other network has such a name meanwhile.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtime.agent.path import lines
from runtime.agent.path.datapath import Datapath
from runtime.agent.process import portlog
from runtime.agent.process.orders import PortOrder
from runtime.errors import RunError

_NO_INTERFACE = os.strerror(errno.ENODEV)


class AttachedPorts:
    """`networks` are those of the attached ports. `file`: where interfaces are entered before they
    are attached (runtime.agent.process.portlog)."""

    def __init__(self, datapath: Datapath, file: Path | None) -> None:
        self.networks: dict[int, str] = {}
        self._datapath = datapath
        self._file = file

    async def attach(
        self, port: int, netns: str, interface: str, prefixes: Sequence[str]
    ) -> dict[str, str]:
        """What the datapath says of it. Raises RunError."""
        if self._file is not None:
            portlog.enter(self._file, netns, interface)
        network = network_at(netns)
        line = lines.attach_line(port, netns, interface, prefixes)
        facts = (await self._datapath.engine.call(line)).values()
        self.networks[port] = network
        return facts

    async def detach(self, port: int) -> str:
        """The network that it was attached in, '' if it was attached in none that is known. Raises
        RunError."""
        if port not in self.networks:
            return ""
        network = self.networks.pop(port)
        await self._datapath.engine.call(f"detach {port}")
        return network

    async def restore(
        self, ports: Sequence[PortOrder], pods: Mapping[int, str] | None, prefixes: Sequence[str]
    ) -> list[PortOrder]:
        """Attaches what is missing and lets go of what is not ours any more, in place of an agent
        before this one. `pods` are paths of the networks in which the pods of nodes are now; other
        nodes are where they were. None where instances are no pods.

        Returns the ports whose network is not there, which only those of pods may be. RunError.
        """
        have = {n: f"net:[{inode}]" for n, inode in (await self._datapath.ports()).items()}
        self.networks = dict(have)
        missing = []
        for number in sorted(have.keys() - {port.port for port in ports}):
            await self.detach(number)
        for port in sorted(ports, key=lambda port: port.port):
            now = "" if pods is None else network_at(pods.get(port.node, ""))
            if port.port in have and now in ("", have[port.port]):
                continue
            await self.detach(port.port)
            netns = pods[port.node] if pods is not None and now else port.netns
            try:
                await self.attach(port.port, netns, port.interface, prefixes)
            except RunError as error:
                gone = not network_at(netns) or error.message.endswith(_NO_INTERFACE)
                if pods is None or not gone:
                    raise
                missing.append(port)
        return missing


def network_at(netns: str) -> str:
    """The network that a path leads to, '' if it leads to none."""
    try:
        return f"net:[{os.stat(netns).st_ino}]"  # noqa: PTH116  # a link of /proc
    except OSError:
        return ""
