"""Follows the coordinator from outside: a thread that mirrors files and passes messages on.

It finds the coordinator's pod, execs `tstorm-coordinator follow` in it and, whenever that breaks
(a network, the API server away), begins again where it was, until the coordinator has said all. It
gives up when the pod is gone, or cannot be entered for minutes although the API server answers.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import decode
from compiler.plan.storage.delivery import ArrivingPlan
from runtime.backend.k8s.exec_status import STDERR, STDIN
from runtime.errors import RunError, unwritten
from runtime.rundir import longer_plan
from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.rundir import RunDirectory, plan_in
from runtime.rundir.runfiles import (
    COORDINATOR_LOG,
    DRIVER_LOG,
    EVENTS,
    LOG_TIMES,
    LOGS,
    PLANNED,
    PROBES,
    SAMPLES,
)
from tstorm.k8s import podexec
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import OURS, Root
from tstorm.k8s.podexec import BrokenStreamError, ContainerPlace

# The coordinator's run directory, mirrored into a local one while it grows.
#
# Only files that grow by appending come (runtime.job); each is continued where it ends here, so a
# broken connection costs nothing but time.

MESSAGES = "messages.jsonl"  # of the stream only: it is no file of a run directory
_TOP = (EVENTS, SAMPLES, LOG_TIMES, PROBES, DRIVER_LOG)
_LOG = re.compile(r"[\w.-]+\.log", re.ASCII)
_OPEN = 64  # descriptors kept for files that grow


class Mirror:
    """`have`: bytes that are here, by file; what the coordinator is told when it goes on."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._logs = directory.enter(LOGS)
        self._files: dict[str, int] = {}
        self._arriving = ArrivingPlan()
        self.have: dict[str, int] = {}

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Bytes of a file from `offset` on. RunError for one that is none of a run's, or a gap."""
        before = self.have.get(name, 0)
        if offset > before:
            raise RunError(
                f"the coordinator left out bytes {before} to {offset} of {name}", "run it again"
            )
        rest = data[before - offset :]
        if rest or name not in self.have:  # empty files are there, too, as on one machine
            try:
                write_all(self._descriptor(name), rest)
            except OSError as error:
                raise unwritten(error) from error
        self.have[name] = before + len(rest)

    def take_shard(self, digest: str, number: int, count: int, data: bytes) -> None:
        """Of the plan in force, of the run's `count` shards in order: with the last one it takes
        the place of the plan before. RunError for what is no plan."""
        self._arriving.take(digest, number, data)
        if number < count - 1:
            return
        arrived, self._arriving = self._arriving, ArrivingPlan()
        try:
            files, before = arrived.files(), plan_in(self._directory)
            plan = decode(files)
            if plan.digest == before.digest:
                return  # a connection broke, and all of it came again
            if plan.topology != before.topology or plan.seed != before.seed:
                raise nonsense("a plan of another run")
        except PlanError as error:
            raise nonsense(str(error)) from error
        is_first = not self._directory.has(PLANNED)
        longer_plan.keep(self._directory.path, files, is_first=is_first)

    def _descriptor(self, name: str) -> int:
        if name not in self._files:
            if len(self._files) >= _OPEN:
                os.close(self._files.pop(next(iter(self._files))))
            folder, inner = self._place(name)
            self._files[name] = folder.append_to(inner)
        return self._files[name]

    def _place(self, name: str) -> tuple[HeldDirectory, str]:
        folder, _, inner = name.rpartition("/")
        if not folder and inner in _TOP:
            return self._directory, inner
        if folder == LOGS and _LOG.fullmatch(inner):
            return self._logs, inner
        raise RunError(f"the coordinator sent {name!r:.80}, which is no file of a run")

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


# The stream of `tstorm-coordinator follow` taken apart: lines of JSON, some with bytes after them.
#
# A header with "file" is followed by "bytes" raw bytes of that file, one with "plan" by those of a
# shard. What comes from a cluster is
# foreign data: lengths and types are checked before they are used.

HEADER_BYTES = 1 << 26  # the last message has facts of every node
FRAME_BYTES = 1 << 24
_WITH_BYTES = {"file": ("offset", "bytes"), "plan": ("shard", "of", "bytes")}


class Frames:
    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0  # so many bytes have no line end in them
        self._header: dict[str, Any] | None = None

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        """What is whole by now: headers, each with its bytes (none for most). RunError."""
        self._held += data
        while True:
            if self._header is None:
                end = self._held.find(b"\n", self._searched)
                if end < 0:
                    self._searched = len(self._held)
                    if self._searched >= HEADER_BYTES:
                        raise nonsense("a line without an end")
                    return
                self._searched = 0
                self._header = _header(bytes(self._held[:end]))
                del self._held[: end + 1]
            with_bytes = self._header.keys() & _WITH_BYTES
            wanted = self._header.get("bytes", 0) if with_bytes else 0
            if len(self._held) < wanted:
                return
            header, self._header = self._header, None
            payload = bytes(self._held[:wanted])
            del self._held[:wanted]
            yield header, payload


def _header(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise nonsense(f"{line[:80]!r}") from error
    if type(found) is not dict:
        raise nonsense(f"{line[:80]!r}")
    for kind in found.keys() & _WITH_BYTES:
        sizes = [found.get(name) for name in _WITH_BYTES[kind]]
        right = all(type(size) is int and size >= 0 for size in sizes)
        if type(found[kind]) is not str or not right or found["bytes"] > FRAME_BYTES:
            raise nonsense(f"{line[:80]!r}")
    return found


def nonsense(what: str) -> RunError:
    """What to say of a stream that has this in it."""
    return RunError(
        f"the coordinator says what this release does not understand: {what}",
        "use the release that made its image (--agent-image)",
    )


PROGRAM = "/usr/bin/tstorm-coordinator"
CONTAINER = "coordinator"
BEAT_SECONDS = 15.0  # without a beat the connection is dead, whatever TCP believes
AGAIN_SECONDS = 1.0
TELL_SECONDS = 15.0  # of failing, before the user hears of it
GIVE_UP_SECONDS = 300.0  # of failing while the API server answers
KILLED = 128  # statuses above it: by a signal, such as 137 by SIGKILL
PART_BYTES = 1 << 15  # of stdin, in one message
_SELECTOR = f"{OURS},app.kubernetes.io/component=coordinator"


class CoordinatorLostError(RunError):
    """The coordinator ended without having said how the run ended."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What the follower passes on: one record of the stream, what is wrong with the stream, or why
    it cannot go on."""

    record: Mapping[str, Any]
    trouble: str = ""
    error: Exception | None = None
    over: bool = False


@dataclass(slots=True)
class _Failing:
    """A stream without a frame: since when, and since when although the API server answers."""

    since: float | None = None
    refused_since: float | None = None
    told: bool = False


def pod_of(connection: ApiConnection, namespace: str) -> dict[str, Any] | None:
    """The coordinator's pod; None if there is none yet. ServerError."""
    found = connection.items(path_of("Pod", namespace), labelSelector=_SELECTOR)
    return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)


def pod_of_run(connection: ApiConnection, root: Root) -> dict[str, Any] | None:
    """The same, as long as the root is this one: another run may have taken its name.
    CoordinatorLostError, ServerError."""
    pod = pod_of(connection, root.namespace)
    removal = removed(connection, root)  # last: so the pod is of this run
    if removal and (pod is None or not removal.leaving):
        raise CoordinatorLostError(removal.text)
    return pod


@dataclass(frozen=True, slots=True)
class Removal:
    """Of a run, by whoever: it is `leaving`, or has left."""

    root: Root
    leaving: bool

    @property
    def text(self) -> str:
        what = "is removing" if self.leaving else "has removed"
        return f"the run was destroyed: somebody {what} {self.root.text}"


def removed(connection: ApiConnection, root: Root) -> Removal | None:
    """None while nobody has asked for it. ServerError."""
    found = connection.find(root.path)
    if found is None or found["metadata"]["uid"] != root.uid:
        return Removal(root, leaving=False)
    return Removal(root, leaving=True) if "deletionTimestamp" in found["metadata"] else None


def place_of(pod: Mapping[str, Any]) -> ContainerPlace:
    meta = pod["metadata"]
    return ContainerPlace(str(meta["namespace"]), str(meta["name"]), CONTAINER)


class RunFollower(threading.Thread):
    """`tell` is called in this thread; it must only pass on. Ends with Heard(over=True)."""

    def __init__(
        self,
        connection: ApiConnection,
        root: Root,
        mirror: Mirror,
        tell: Callable[[Heard], None],
    ) -> None:
        super().__init__(name="follower", daemon=True)
        self._connection = connection
        self._root = root
        self._mirror = mirror
        self._tell = tell
        self._halt = threading.Event()
        self._pod = ""  # the uid of the coordinator's, once it was there
        self._failing = _Failing()

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
        self._tell(Heard({}, error=error, over=True))

    def _once(self) -> bool:
        """One connection; whether the coordinator has said all. RunError if it never will."""
        try:
            pod = self._find()
            if pod is None or pod.get("status", {}).get("phase") == "Pending":
                self._failing = _Failing()
                return False
            if pod["status"]["phase"] in ("Failed", "Succeeded"):
                raise CoordinatorLostError(
                    f"the coordinator ended before its results were fetched: {how_ended(pod)}",
                    f"its last words are in {COORDINATOR_LOG} of the run directory",
                )
            return self._follow(place_of(pod))
        except ServerError as error:
            if not error.is_passing:
                raise
            self._tell_of(error)
            self._failing.refused_since = None  # away: it comes back, or the user gives up
        except BrokenStreamError as error:
            self._tell_of(error)
            self._give_up_in_time(error)
        return False

    def _find(self) -> dict[str, Any] | None:
        """The coordinator's pod; None if there is none yet. CoordinatorLostError, ServerError."""
        pod = pod_of_run(self._connection, self._root)
        if self._pod and (pod is None or pod["metadata"]["uid"] != self._pod):
            raise CoordinatorLostError(
                "the coordinator's pod is gone: deleted, or its node is lost"
            )
        if pod is not None:
            self._pod = str(pod["metadata"]["uid"])
        return pod

    def _tell_of(self, error: RunError) -> None:
        """Once, if it lasts."""
        failing, now = self._failing, time.monotonic()
        failing.since = failing.since or now
        if not failing.told and now - failing.since >= TELL_SECONDS:
            failing.told = True
            self._tell(Heard({}, f"cannot follow the run, trying on: {error.message}"))

    def _give_up_in_time(self, error: BrokenStreamError) -> None:
        """Of a stream that fails although the API server answers."""
        now = time.monotonic()
        self._failing.refused_since = self._failing.refused_since or now
        waited = now - self._failing.refused_since
        if waited >= GIVE_UP_SECONDS:
            raise CoordinatorLostError(
                f"the coordinator could not be reached for {waited:.0f} s: {error.message}"
            ) from error

    def _follow(self, place: ContainerPlace) -> bool:
        frames = Frames()
        with podexec.opened(self._connection, place, [PROGRAM, "follow"], stdin=True) as socket:
            _send(socket, json.dumps({"have": self._mirror.have}).encode() + b"\n")
            for data in podexec.output(socket, BEAT_SECONDS):
                for header, payload in frames.feed(data):
                    self._failing = _Failing()
                    if self._take(header, payload):
                        return True
                if self._halt.is_set():
                    return True
            raise BrokenStreamError(_last_words(socket, place))

    def _take(self, header: Mapping[str, Any], payload: bytes) -> bool:
        """Whether this is the end."""
        if "file" in header:
            self._mirror.write(str(header["file"]), int(header["offset"]), payload)
        elif "plan" in header:
            number, count = int(header["shard"]), int(header["of"])
            self._mirror.take_shard(str(header["plan"]), number, count, payload)
        elif "message" in header:
            self._mirror.have[MESSAGES] = int(header["have"])
            self._tell(Heard(header["message"]))
        elif "progress" in header:
            self._tell(Heard(header))
        return "end" in header


def _send(socket: Any, data: bytes) -> None:
    """In parts that every relay takes."""
    for start in range(0, len(data), PART_BYTES):
        socket.write_channel(STDIN, data[start : start + PART_BYTES])


def _last_words(socket: Any, place: ContainerPlace) -> str:
    """Why a stream ended before all was said."""
    lines = socket.read_channel(STDERR).decode("utf-8", "replace").strip().splitlines()
    how = podexec.ended(socket)
    if how is None:
        return f"the connection into pod {place.pod} broke"
    why = how.refusal or (lines[-1] if lines else f"it ended with {how.status}")
    return f"{PROGRAM} follow in pod {place.pod}: {why}"


def how_ended(pod: Mapping[str, Any]) -> str:
    """Of a pod that has: status, and the last line it said, unless it was killed: that line is then
    about something else."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses", []):
        ended = container.get("state", {}).get("terminated")
        if ended:
            code = int(ended.get("exitCode") or 0)
            lines = str(ended.get("message") or "").strip().splitlines()
            words = f": {lines[-1]}" if lines and code <= KILLED else ""
            return f"status {code} ({ended.get('reason')}){words}"
    return str(status.get("message") or status.get("reason") or status.get("phase"))
