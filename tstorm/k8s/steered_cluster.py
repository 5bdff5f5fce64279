"""A run in a cluster, as whoever steers it reaches it: a command in its coordinator's pod passes
questions and longer plans on to the driver there (runtime/job/steering_session.py).

Who may start a command in that pod may steer the run: nobody listens anywhere else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, decode, read_plan
from compiler.plan.storage import plan_shards
from compiler.plan.storage.delivery import ArrivingPlan
from runtime.backend.k8s.exec_status import STDIN, STDOUT
from runtime.errors import RunError
from runtime.json_schema import COUNT, TEXT, Shape, check, parse
from runtime.options import K8S, RunOptions
from runtime.rpc.control import ANSWER_BYTES
from runtime.rundir.runfiles import PLAN
from tstorm.k8s import coordinator_follower, enter_pod, find, podexec
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.coordinator_follower import PROGRAM
from tstorm.k8s.podexec import BrokenStreamError, ContainerPlace

ARGV = (PROGRAM, "steer")
ANSWER_SECONDS = 30.0  # of the driver, and for a plan on its way
_PLAN = Shape({"digest": TEXT, "sizes": [COUNT]})


class SteeredCluster:
    """See tstorm.live.steered_runs (SteeredRun). `directory`: where the run is mirrored, if it is:
    a plan that is there need not come again."""

    def __init__(self, socket: Any, place: ContainerPlace, directory: Path | None) -> None:
        self.options = RunOptions(backend=K8S)
        self._socket, self._place, self._directory = socket, place, directory
        self._held = bytearray()
        self._plan: Plan | None = None

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        return self._said({"ask": dict(request)})

    def plan(self, digest: str) -> Plan:
        if self._plan is None or self._plan.digest != digest:
            self._plan = self._mirrored(digest) or self._fetched()
        return self._plan

    def offer(self, files: Mapping[str, bytes], request: Mapping[str, object]) -> dict[str, Any]:
        plan = decode(files)
        shards = list(plan_shards.pack(files).values())
        sizes = [len(data) for data in shards]
        told = {"ask": dict(request), "digest": plan.digest, "sizes": sizes}
        return self._said(told, shards)

    def _mirrored(self, digest: str) -> Plan | None:
        """Whole, since another one may take its place at any time."""
        with suppress(PlanError, OSError):
            if self._directory is not None:
                found = read_plan(self._directory / PLAN)
                return found if found.digest == digest else None
        return None

    def _fetched(self) -> Plan:
        answer = self._said({"plan": True})
        check(answer, _PLAN, f"the answer of pod {self._place.pod}")
        arriving = ArrivingPlan()
        for number, size in enumerate(answer["sizes"]):
            arriving.take(answer["digest"], number, self._read(size))
        return decode(arriving.files())

    # -- the conversation -----------------------------------------------------------------------

    def _said(self, request: Mapping[str, object], shards: Sequence[bytes] = ()) -> dict[str, Any]:
        """The answer. RunError for a refusal."""
        data = b"".join([json.dumps(request).encode(), b"\n", *shards])
        for start in range(0, len(data), coordinator_follower.PART_BYTES):
            part = data[start : start + coordinator_follower.PART_BYTES]
            self._socket.write_channel(STDIN, part)
        answer = parse(self._line(), f"the answer of pod {self._place.pod}")
        if type(answer) is not dict:
            raise RunError(f"the answer of pod {self._place.pod} is none")
        if "error" in answer:
            raise RunError(str(answer["error"]), str(answer.get("remedy", "")))
        return answer

    def _line(self) -> bytes:
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            self._take()
        return self._cut(end + 1)

    def _read(self, size: int) -> bytes:
        while len(self._held) < size:
            self._take()
        return self._cut(size)

    def _cut(self, size: int) -> bytes:
        found = bytes(self._held[:size])
        del self._held[:size]
        return found

    def _take(self) -> None:
        """What has come. RunError where nothing will."""
        end = time.monotonic() + ANSWER_SECONDS
        while not (data := self._socket.read_channel(STDOUT, timeout=1.0)):
            if not self._socket.is_open():
                raise self._ended()
            if time.monotonic() > end:
                silent = f"nothing came from pod {self._place.pod}"
                raise _unanswered(f"{silent} for {ANSWER_SECONDS:.0f} s")
        self._held += data
        if len(self._held) > ANSWER_BYTES:
            raise RunError(f"the answer of pod {self._place.pod} has no end")

    def _ended(self) -> RunError:
        how = podexec.ended(self._socket)
        if how is None:
            return _unanswered(f"the connection into pod {self._place.pod} broke")
        return podexec.failure(self._socket, how, ARGV, self._place)


def _unanswered(what: str) -> BrokenStreamError:
    return BrokenStreamError(
        f"{what}: whether the run has taken what was asked is not known",
        "tstorm inspect --backend k8s shows what is planned next, events.jsonl what was done",
    )


@contextmanager
def opened(
    connection: ApiConnection, run: str | None, namespace: str | None
) -> Iterator[SteeredCluster]:
    """The run of this name or directory, which goes on. RunError."""
    found = find.one(connection, run, namespace)
    pod = enter_pod.coordinator_of(connection, found)
    place = coordinator_follower.place_of(pod)
    directory = Path(run) if run is not None and (Path(run) / PLAN).is_dir() else None
    with podexec.opened(connection, place, ARGV, stdin=True) as socket:
        yield SteeredCluster(socket, place, directory)
