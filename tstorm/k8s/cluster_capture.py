"""The packets of a run in a cluster, as whoever looks on gets them: a command in the agent's pod on
a node reads them there, and what it prints comes back through the API server's exec. No other way
leads there, and nobody listens on the network.

Of an instance they come from the kernel of its node (runtime/agent/pod/node_capture.py): driver,
coordinator and agent have no part in it. Of a path between two instances they come from the packet
engines of the nodes of those that send (runtime/agent/pod/path_capture.py).
"""

from __future__ import annotations

import io
import json
import socket as sockets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from manifests.kubernetes_labels import component_selector
from runtime.agent.path import captured_paths
from runtime.agent.pod import path_capture
from runtime.agent.pod.path_capture import PathCaptureHead
from runtime.agent.pod.pod_messages import KERNEL
from runtime.backend.k8s.exec_status import STDIN, STDOUT
from runtime.errors import RunError
from runtime.json_schema import decoded, parse
from tstorm.k8s import enter_pod, find, podexec
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.coordinator_follower import PART_BYTES
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import ClusterRun
from tstorm.k8s.podexec import ContainerPlace

ARGV, CONTAINER = ("/usr/bin/tstorm-agent", "capture"), "agent"
HEAD_BYTES = 1 << 16
_KEEPALIVE = ((sockets.TCP_KEEPIDLE, 10), (sockets.TCP_KEEPINTVL, 5), (sockets.TCP_KEEPCNT, 3))


class _Printed(io.RawIOBase):
    """What the command prints, to its end. RunError if it says why there is nothing."""

    def __init__(self, socket: Any, place: ContainerPlace) -> None:
        self._socket, self._place = socket, place
        self._held = memoryview(b"")
        self.is_let_go = False  # by whoever closes the connection while a thread reads here
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
            while self._socket.is_open() and not self.is_let_go:
                data: bytes = self._socket.read_channel(STDOUT, timeout=1.0)
                if data:
                    return data
        except (websocket.WebSocketException, OSError):
            return b""
        except (AttributeError, TypeError, ValueError):  # the client's, of a socket that is closed
            if self.is_let_go:
                return b""
            raise
        if self.is_let_go:
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
    place = _agent_at(connection, found.namespace, _node_of(pod))
    asked = {"pod": pod["metadata"]["uid"], "instance": instance, "filter": program.hex()}
    with _started(connection, place, asked) as printed:
        yield printed


@dataclass(frozen=True, slots=True)
class PathStreams:
    """pcapng of the nodes of a path, whose times are `since_ns` short of those of day."""

    interfaces: Sequence[str]
    files: Sequence[BinaryIO]
    since_ns: int
    left_out: Sequence[str]


@contextmanager
def path_opened(
    connection: ApiConnection,
    run: str | None,
    namespace: str | None,
    path: str,
    program: bytes,
    *,
    probes: bool,
) -> Iterator[PathStreams]:
    """The same of a path, `a.0--b.0` or `a.0->b.0`, from each node that has something of it. What
    one refuses is captured nowhere. RunError."""
    found = find.one(connection, run, namespace)
    shown = enter_pod.state(connection, found)
    senders = _senders(shown, path)
    places = _agents_of(connection, found, senders)
    asked = {"path": path, "probes": int(probes), "filter": program.hex()}
    interfaces: list[str] = []
    files: list[BinaryIO] = []
    left_out: dict[str, None] = {}
    with ExitStack() as stack:
        for place in places:
            printed = stack.enter_context(_started(connection, place, asked))
            head = _head(printed, place)
            left_out.update(dict.fromkeys(head.left_out))
            interfaces += head.interfaces
            files += [printed] if head.interfaces else []
        yield PathStreams(interfaces, files, int(shown["start_unix_ns"]), list(left_out))


def _senders(shown: Mapping[str, Any], path: str) -> list[str]:
    """Instances whose nodes have the path's queues. RunError where nobody can have its packets."""
    ways = captured_paths.ways_of([one["name"] for one in shown["instances"]], path)
    if "datapath" not in shown or "start_unix_ns" not in shown:
        raise RunError(
            "the run's coordinator is of another release, which does not capture at paths",
            "use this release's image (--agent-image)",
        )
    if shown["datapath"] == KERNEL:
        raise path_capture.unseen()
    if not shown["start_unix_ns"]:
        raise RunError("the run has not begun yet", "try again when it is at 0s")
    return [src for src, _ in ways]


def _agents_of(
    connection: ApiConnection, run: ClusterRun, instances: Sequence[str]
) -> list[ContainerPlace]:
    """Those on the nodes of instances, each once. RunError."""
    pods = [enter_pod.pod_of_instance(connection, run, name) for name in instances]
    nodes = dict.fromkeys(map(_node_of, pods))
    return [_agent_at(connection, run.namespace, node) for node in nodes]


def _head(printed: BinaryIO, place: ContainerPlace) -> PathCaptureHead:
    """The line before packets. RunError, also with what the node says instead."""
    what = f"what pod {place.pod} says of its packets"
    return decoded(PathCaptureHead, parse(printed.readline(HEAD_BYTES), what), what)


@contextmanager
def _started(
    connection: ApiConnection, place: ContainerPlace, asked: Mapping[str, object]
) -> Iterator[BinaryIO]:
    """What the command prints that was asked so. RunError."""
    line = json.dumps(asked).encode() + b"\n"
    with podexec.opened(connection, place, ARGV, stdin=True) as socket:
        for start in range(0, len(line), PART_BYTES):
            socket.write_channel(STDIN, line[start : start + PART_BYTES])
        printed = _Printed(socket, place)
        try:
            yield io.BufferedReader(printed)
        finally:
            printed.is_let_go = True


def _node_of(pod: Mapping[str, Any]) -> str:
    return str(pod.get("spec", {}).get("nodeName", ""))


def _agent_at(connection: ApiConnection, namespace: str, node: str) -> ContainerPlace:
    """The container of the agent on a node. RunError if there is none that runs."""
    selector = ",".join(f"{key}={value}" for key, value in component_selector("agent").items())
    for pod in connection.items(path_of("Pod", namespace), labelSelector=selector):
        here = str(pod.get("spec", {}).get("nodeName", "")) == node
        if here and pod.get("status", {}).get("phase") == "Running":
            return ContainerPlace(namespace, str(pod["metadata"]["name"]), CONTAINER)
    raise RunError(f"no agent runs on {node or 'the node of the instance'} now", "try again")
