"""Where instances of pods are attached: their own eth0, once for all lives of the pod."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from runtime.backend.base import AttachedIncarnation
from runtime.system.network.netlink import NetlinkRequest


class PodPorts:
    """See runtime.backend.base (PortAllocator). A cluster has made every interface, and takes it
    away; its agent is told of it when the pod is found (runtime.backend.k8s.cluster_hosts)."""

    def __init__(self) -> None:
        self.more: Sequence[NetlinkRequest] = ()
        self.groups = False

    async def attach(self, _occupant: AttachedIncarnation, node: int) -> int:
        return node

    async def furnished(self, _occupant: AttachedIncarnation, node: int, port: int) -> None:
        """It has its addresses."""

    def give_back(self, port: int) -> None:
        """It stays for the next life."""

    async def tidy(self, _next_due: Callable[[], int]) -> None:
        await asyncio.Event().wait()
