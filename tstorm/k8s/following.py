"""Follows the coordinator from outside: a thread that mirrors files and passes messages on.

It finds the coordinator's pod, execs `tstorm-coordinator follow` in it and, whenever that breaks
(a network, the API server away), begins again where it was, until the coordinator has said all.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.errors import RunError
from tstorm.k8s import podexec
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.documents import path_of
from tstorm.k8s.frames import Frames
from tstorm.k8s.mirror import MESSAGES, Mirror
from tstorm.k8s.podexec import BrokenStreamError, ContainerPlace

PROGRAM = "/usr/bin/tstorm-coordinator"
CONTAINER = "coordinator"
BEAT_SECONDS = 15.0  # without a beat the connection is dead, whatever TCP believes
AGAIN_SECONDS = 1.0
_SELECTOR = "app.kubernetes.io/component=coordinator"


class CoordinatorLostError(RunError):
    """The coordinator ended without having said how the run ended."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the follower passes on: one record of the stream, or why it cannot go on."""

    record: Mapping[str, Any]
    error: Exception | None = None
    over: bool = False


def pod_of(connection: ApiConnection, namespace: str) -> dict[str, Any] | None:
    """The coordinator's pod; None if there is none yet. ServerError."""
    found = connection.items(path_of("Pod", namespace), labelSelector=_SELECTOR)
    return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)


def place_of(pod: Mapping[str, Any]) -> ContainerPlace:
    meta = pod["metadata"]
    return ContainerPlace(str(meta["namespace"]), str(meta["name"]), CONTAINER)


class RunFollower(threading.Thread):
    """`tell` is called in this thread; it must only pass on. Ends with Heard(over=True)."""

    def __init__(
        self,
        connection: ApiConnection,
        namespace: str,
        mirror: Mirror,
        tell: Callable[[Heard], None],
    ) -> None:
        super().__init__(name="follower", daemon=True)
        self._connection = connection
        self._namespace = namespace
        self._mirror = mirror
        self._tell = tell
        self._halt = threading.Event()

    def halt(self) -> None:
        """It ends soon, with what is mirrored by then."""
        self._halt.set()

    def run(self) -> None:
        error: Exception | None = None
        try:
            while not self._halt.is_set() and not self._once():
                self._halt.wait(AGAIN_SECONDS)
        except Exception as caught:  # is raised again by who listens
            error = caught
        finally:
            self._mirror.close()
        self._tell(Heard({}, error, over=True))

    def _once(self) -> bool:
        """One connection; whether the coordinator has said all. RunError if it never will."""
        try:
            pod = pod_of(self._connection, self._namespace)
            if pod is None or pod.get("status", {}).get("phase") == "Pending":
                return False
            if pod["status"]["phase"] in ("Failed", "Succeeded"):
                raise CoordinatorLostError(
                    f"the coordinator ended before its results were fetched: {how_ended(pod)}"
                )
            return self._follow(place_of(pod))
        except ServerError as error:
            if error.status in (0, 429) or error.status >= 500:
                return False  # away: it comes back, or the user gives up
            raise
        except BrokenStreamError:
            return False

    def _follow(self, place: ContainerPlace) -> bool:
        argv = [PROGRAM, "follow", json.dumps({"have": self._mirror.have})]
        frames = Frames()
        with podexec.opened(self._connection, place, argv) as socket:
            for data in podexec.output(socket, BEAT_SECONDS):
                for header, payload in frames.feed(data):
                    if self._take(header, payload):
                        return True
                if self._halt.is_set():
                    return True
        return False

    def _take(self, header: Mapping[str, Any], payload: bytes) -> bool:
        """Whether this is the end."""
        if "file" in header:
            self._mirror.write(str(header["file"]), int(header["offset"]), payload)
        elif "message" in header:
            self._mirror.have[MESSAGES] = int(header["have"])
            self._tell(Heard(header["message"]))
        elif "progress" in header:
            self._tell(Heard(header))
        return "end" in header


def how_ended(pod: Mapping[str, Any]) -> str:
    """Of a pod that has: status, and the last line it said."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended:
            lines = str(ended.get("message") or "").strip().splitlines()
            words = f": {lines[-1]}" if lines else ""
            return f"status {ended.get('exitCode')} ({ended.get('reason')}){words}"
    return str(status.get("message") or status.get("reason") or status.get("phase"))
