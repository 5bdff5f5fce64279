"""The packets of an instance of a run in a cluster, as whoever looks on gets them: a command in the
agent's pod on the instance's node reads them there (runtime/agent/pod/node_capture.py), and what it
prints comes back through the API server's exec. No other way leads there, and nobody listens.

The driver, the coordinator and the agent itself have no part in it, so it delays none of them.
"""

from __future__ import annotations

import io
import json
import socket as sockets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from manifests.kubernetes_labels import component_selector
from runtime.backend.k8s.exec_status import STDIN, STDOUT
from runtime.errors import RunError
from tstorm.k8s import enter_pod, find, podexec
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.coordinator_follower import PART_BYTES
from tstorm.k8s.documents import path_of
from tstorm.k8s.podexec import ContainerPlace

ARGV, CONTAINER = ("/usr/bin/tstorm-agent", "capture"), "agent"
_KEEPALIVE = ((sockets.TCP_KEEPIDLE, 10), (sockets.TCP_KEEPINTVL, 5), (sockets.TCP_KEEPCNT, 3))


class _Printed(io.RawIOBase):
    """What the command prints, to its end. RunError if it says why there is nothing."""

    def __init__(self, socket: Any, place: ContainerPlace) -> None:
        self._socket, self._place = socket, place
        self._held = memoryview(b"")
        # Nothing may come for hours, and a machine that is gone says nothing.
        socket.sock.sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            socket.sock.sock.setsockopt(sockets.IPPROTO_TCP, option, value)

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if not self._held:
            self._held = memoryview(self._next())
        count = min(len(room), len(self._held))
        room[:count] = self._held[:count]
        self._held = self._held[count:]
        return count

    def _next(self) -> bytes:
        """b"" at the end, also of a connection that broke: then packets have no end either."""
        import websocket

        try:
            while self._socket.is_open():
                data: bytes = self._socket.read_channel(STDOUT, timeout=1.0)
                if data:
                    return data
        except (websocket.WebSocketException, OSError):
            return b""
        data = self._socket.read_channel(STDOUT)
        if not data:
            self._check()
        return data

    def _check(self) -> None:
        how = podexec.ended(self._socket)
        if how is not None and how.status:
            raise podexec.failure(self._socket, how, ARGV, self._place)


@contextmanager
def opened(
    connection: ApiConnection, run: str | None, namespace: str | None, instance: str, program: bytes
) -> Iterator[BinaryIO]:
    """pcapng of an instance from now on. `program`: of the kernel's packet filter, b"": all.
    RunError."""
    found = find.one(connection, run, namespace)
    pod = enter_pod.pod_of_instance(connection, found, instance)
    place = _agent_at(connection, found.namespace, str(pod.get("spec", {}).get("nodeName", "")))
    asked = {"pod": pod["metadata"]["uid"], "instance": instance, "filter": program.hex()}
    line = json.dumps(asked).encode() + b"\n"
    with podexec.opened(connection, place, ARGV, stdin=True) as socket:
        for start in range(0, len(line), PART_BYTES):
            socket.write_channel(STDIN, line[start : start + PART_BYTES])
        yield io.BufferedReader(_Printed(socket, place))


def _agent_at(connection: ApiConnection, namespace: str, node: str) -> ContainerPlace:
    """The container of the agent on a node. RunError if there is none that runs."""
    selector = ",".join(f"{key}={value}" for key, value in component_selector("agent").items())
    for pod in connection.items(path_of("Pod", namespace), labelSelector=selector):
        here = str(pod.get("spec", {}).get("nodeName", "")) == node
        if here and pod.get("status", {}).get("phase") == "Running":
            return ContainerPlace(namespace, str(pod["metadata"]["name"]), CONTAINER)
    raise RunError(f"no agent runs on {node or 'the node of the instance'} now", "try again")
