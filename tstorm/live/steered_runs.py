"""Runs that go on, as whoever steers one reaches it: on this machine by its socket and its
directory, in a cluster by a command in its coordinator's pod (tstorm/k8s/steered_cluster.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from compiler.plan.reader import Plan, read_plan
from compiler.plan.storage import scratch
from runtime.errors import RunError
from runtime.launch import registry
from runtime.options import K8S, RunOptions, decode
from runtime.rpc.control import ask
from runtime.rundir import rundir
from runtime.rundir.runfiles import LONGER_PLAN, MANIFEST, PLAN

if TYPE_CHECKING:
    from tstorm.options.cluster import Where


_LOOK_SECONDS = 2.0  # between two looks whether a run in a cluster goes on


class SteeredRun(Protocol):
    """`options` are those of the run. RunError wherever it does not answer, or refuses."""

    @property
    def options(self) -> RunOptions: ...

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """What its driver answers."""

    def plan(self, digest: str) -> Plan:
        """The plan in force, which may be another than that of this digest by now. PlanError."""

    def offer(self, files: Mapping[str, bytes], request: Mapping[str, object]) -> dict[str, Any]:
        """What its driver answers to a request with a longer plan, that of these files."""


@dataclass(frozen=True, slots=True)
class LocalRun:
    """A run of this machine."""

    directory: Path
    socket: Path
    options: RunOptions

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        return ask(self.socket, request)[0]

    def plan(self, _digest: str) -> Plan:
        return read_plan(self.directory / PLAN, lazy=True)

    def offer(self, files: Mapping[str, bytes], request: Mapping[str, object]) -> dict[str, Any]:
        with scratch.filled(self.directory, LONGER_PLAN, files) as path:
            return self.ask({**request, "plan": path.name})


def options_of(directory: Path) -> RunOptions:
    """Of the run there. RunError."""
    return decode(rundir.recorded(str(directory)).manifest()["options"], "options")


def is_in_cluster(run: str, where: Where | None) -> bool:
    """Whether the run goes on in a cluster: that is said, or it is the directory of such a run."""
    if where is not None:
        return True
    if not (Path(run) / MANIFEST).is_file():
        return False
    manifest = rundir.recorded(run).manifest()
    return not manifest.get("outcome") and manifest["options"].get("backend") == K8S


def life_of(run: str, where: Where | None) -> Callable[[], bool]:
    """What says whether a run goes on, which it does now. RunError."""
    if not is_in_cluster(run, where):
        record = registry.find(run)
        return lambda: record.is_live
    looked_s = 0.0

    def goes_on() -> bool:
        nonlocal looked_s
        if time.monotonic() - looked_s < _LOOK_SECONDS:
            return True
        try:
            with reached(run, where) as there:
                there.ask({"ask": "state"})
        except RunError as error:
            if not getattr(error, "is_passing", False):  # an API server that is away comes back
                return False
        looked_s = time.monotonic()
        return True

    with reached(run, where):
        return goes_on


@contextmanager
def reached(run: str, where: Where | None) -> Iterator[SteeredRun]:
    """A run that goes on. RunError."""
    if not is_in_cluster(run, where):
        record = registry.find(run)
        directory = Path(record.directory)
        yield LocalRun(directory, Path(record.socket), options_of(directory))
        return
    from tstorm.k8s import connection, steered_cluster  # of an extra that is not always there

    context, namespace = (where.context, where.namespace) if where else (None, None)
    with (
        connection.connect(context) as there,
        steered_cluster.opened(there, run, namespace) as found,
    ):
        yield found
