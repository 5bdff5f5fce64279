"""An API server that is none, and as hostile as asked: objects by path, over HTTP on loopback.

It knows what the command and the coordinator use: create, server-side apply, get, list by labels
and in pages, watch pods, follow logs, delete (a namespace with what is in it), reviews that allow
everything, and exec over a websocket, for which a test says what the command in the container
prints and how it ends. Nothing happens to objects by itself. It answers in threads of its own
(tests.doubles.apihandler), so that those who block and those who await may ask it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from runtime.backend.k8s.api import Api
from runtime.backend.k8s.httpget import ApiAddress
from tests.doubles import apihandler
from tests.doubles.apihandler import SUCCESS as SUCCESS
from tests.doubles.apihandler import ended as ended

DEADLINE_SECONDS = 20.0  # only a test that fails takes so long
NAMESPACE = "tstorm-test"  # whose pods can be watched
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

Frames = Iterable[tuple[int, bytes]]  # channel, data; channel 3 is how it ended
Talk = Callable[[list[str]], "subprocess.Popen[bytes]"]  # a command, with pipes
Exec = Callable[[str, list[str]], Frames]  # of a pod, a command and, of some, a line of stdin


def says(output: bytes, how: dict[str, Any] = SUCCESS) -> Frames:
    """A command that prints this and ends so."""
    return [(1, output), (3, json.dumps(how).encode())]


@dataclass(frozen=True)
class Trouble:
    """status: the answer is this, with `message`. sends: raw bytes instead of an answer. cut: hangs
    up at once. done: so it does, after it has done what was asked. hangs: says nothing."""

    status: int = 0
    sends: bytes = b""
    cut: bool = False
    message: str = "as asked"
    hangs: bool = False
    done: bool = False


def shown(name: str, service: str = "server", index: int = 0, **more: Any) -> dict[str, Any]:
    """A pod as the API shows it: of an instance that waits in its tstorm-hold on node n0."""
    node = more.pop("node", "n0")
    component = more.pop("component", "instance")
    container = more.pop("container", "instance")
    state = more.pop("state", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    ips = more.pop("ips", [f"10.244.0.{index + 2}"])
    uid = more.pop("uid", f"00000000-0000-0000-0000-{abs(hash(name)) % 10**12:012d}")
    status: dict[str, Any] = {
        "phase": more.pop("phase", "Running"),
        "podIPs": [{"ip": ip} for ip in ips],
        "containerStatuses": [
            {
                "name": container,
                "state": state,
                "lastState": more.pop("last", {}),
                "restartCount": more.pop("restarts", 0),
                "ready": more.pop("ready", False),
                "containerID": more.pop("container_id", f"containerd://{name}"),
                "image": "docker.io/library/x:1",
                "imageID": "sha256:abc",
            }
        ],
        **more,
    }
    labels = {
        "app.kubernetes.io/part-of": "thunderstorm",
        "app.kubernetes.io/component": component,
    }
    notes = {"thunderstorm.dev/plan": "d1"}
    if component == "instance":
        labels["apps.kubernetes.io/pod-index"] = str(index)
        notes["thunderstorm.dev/service"] = service
    return {
        "metadata": {"name": name, "uid": uid, "labels": labels, "annotations": notes},
        "spec": {"nodeName": node} if node else {},
        "status": status,
    }


class FakeApi:
    """`objects` by path; `pings`: it asks during a command whether the client is there."""

    def __init__(self, *, pings: bool = True) -> None:
        self.pings = pings
        self.objects: dict[str, dict[str, Any]] = {}
        self.bodies: dict[str, bytes] = {}  # the last one, by path
        self.requests: list[tuple[str, str]] = []
        self.queries: list[dict[str, str]] = []  # of the requests
        self.execs: list[tuple[str, list[str]]] = []  # commands, with their pods
        self.on_exec: Exec = lambda _pod, _argv: says(b"")
        self.on_talk: Talk | None = None  # of commands that answer what comes on their stdin
        self.on_change: Callable[[str, str], None] = lambda _method, _path: None
        self.page = 0  # most objects in one answer; 0: as many as are asked for
        # What requests meet: the next ones, one each, in order; those of a method and path, one
        # each (status; 0: hung up on when done); those of a method and path, always (status,
        # message); all for logs; all that there are, without a trace.
        self.trouble: deque[Trouble | None] = deque()
        self.failing: dict[tuple[str, str], list[int]] = {}
        self.refused: dict[tuple[str, str], tuple[int, str]] = {}
        self.log_trouble: Trouble | None = None
        self.down = False
        self.hanging: set[str] = set()  # paths
        self.denied: set[tuple[str, str]] = set()  # verb, resource
        self.version = 100
        self.oldest = 0  # versions before are gone
        self.history: list[tuple[int, dict[str, Any]]] = []  # what a watch tells, by version
        self.logs: dict[str, list[bytes]] = {}
        self.log_ends = False  # a stream of a log ends with its last line
        self.unfinished: set[str] = set()  # pods whose last line has no end
        self.faults: list[BaseException | None] = []  # of this server
        self.lock = threading.RLock()
        self.moved = threading.Condition(self.lock)
        self._server: apihandler.HttpServer | None = None
        self._port = 0

    # -- the server -----------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def listens(self) -> bool:
        return self._server is not None

    def api(self) -> Api:
        return Api(ApiAddress("127.0.0.1", self._port, None), NAMESPACE, None)

    def listen(self) -> None:
        """At the same port as before."""
        self._server = apihandler.HttpServer(self, self._port)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()

    def close(self) -> None:
        """Away: all connections end, nobody listens."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            server.cut()
            with self.moved:
                self.moved.notify_all()

    def cut(self) -> None:
        """Only the connections."""
        assert self._server is not None
        self._server.cut()

    def meets(self, method: str, path: str, query: dict[str, str]) -> Trouble | None:
        """Notes a request."""
        with self.lock:
            self.requests.append((method, path))
            self.queries.append(query)
            if self.trouble and (found := self.trouble.popleft()):
                return found
            if codes := self.failing.get((method, path)):
                code = codes.pop(0)
                return Trouble(status=code, message="later", done=not code)
            if (method, path) in self.refused:
                status, message = self.refused[method, path]
                return Trouble(status=status, message=message)
            if path in self.hanging:
                return Trouble(hangs=True)
            return self.log_trouble if path.endswith("/log") else None

    # -- what happens in the cluster ------------------------------------------------------------

    def put(self, path: str, **value: Any) -> None:
        """What is in a namespace is part of an experiment, unless its labels say otherwise."""
        name, given = path.rpartition("/")[2], value.get("metadata", {})
        meta = {"name": name, "uid": path, "creationTimestamp": "2026-01-01T00:00:00Z", **given}
        namespace, slash, _ = path.partition("/namespaces/")[2].partition("/")
        if slash:
            meta["namespace"] = namespace
            ours = {"app.kubernetes.io/part-of": "thunderstorm"}
            meta["labels"] = {**ours, **given.get("labels", {})}
        with self.lock:
            self.objects[path] = {**value, "metadata": meta}

    def names(self, namespace: str) -> set[str]:
        """Kind and name of all there is in a namespace."""
        inside = f"/namespaces/{namespace}/"
        with self.lock:
            return {path.split(inside)[1] for path in self.objects if inside in path}

    def node(self, name: str, **labels: str) -> None:
        info = {"operatingSystem": "linux", "kernelVersion": "6.1", "architecture": "amd64"}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"nodeInfo": info, "conditions": ready}
        self.put(f"/api/v1/nodes/{name}", metadata={"labels": labels}, status=status)

    def put_pod(self, pod: dict[str, Any]) -> None:
        """As it is shown; who watches is told."""
        path = f"{PODS}/{pod['metadata']['name']}"
        with self.lock:
            self._happen("MODIFIED" if path in self.objects else "ADDED", pod)
            self.objects[path] = pod

    def remove_pod(self, name: str) -> None:
        with self.lock:
            self._happen("DELETED", self.objects.pop(f"{PODS}/{name}"))

    def _happen(self, kind: str, pod: dict[str, Any]) -> None:
        pod["metadata"]["resourceVersion"] = str(self.version + 1)
        self.say({"type": kind, "object": json.loads(json.dumps(pod))})

    def say(self, change: dict[str, Any]) -> None:
        """Any line at all, to who watches."""
        with self.moved:
            self.version += 1
            self.history.append((self.version, change))
            self.moved.notify_all()

    def write(self, pod: str, *lines: bytes) -> None:
        """Lines of a container's log, with their times."""
        with self.moved:
            self.logs.setdefault(pod, []).extend(lines)
            self.moved.notify_all()


@contextmanager
def listening(*, pings: bool = True) -> Iterator[FakeApi]:
    server = FakeApi(pings=pings)
    server.listen()
    try:
        yield server
    finally:
        server.close()
    assert server.faults == []


def act(play: Callable[[FakeApi], Coroutine[Any, Any, None]]) -> None:
    with listening() as server:
        asyncio.run(asyncio.wait_for(play(server), DEADLINE_SECONDS))


def kubeconfig(path: Path, url: str) -> Path:
    """A kubeconfig with the context `here` for a server."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return path
