"""A run in a cluster, from here: applies it, waits, follows, mirrors, concludes, removes.

The coordinator in the cluster leads the run and needs nobody here: if this process is killed, the
run goes on, and `tstorm inspect` and `tstorm destroy` find it by its namespace.
"""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.plan.reader import Plan
from runtime.agent.pod.podend import longest_seconds
from runtime.backend import datapath_choice
from runtime.doctor.findings import WARN, Check
from runtime.driver.driver_messages import without_word
from runtime.driver.progress import STARTING, STOPPING, Progress, Reporter, ignore
from runtime.errors import RunError, unexpected
from runtime.launch import stops
from runtime.launch.run_result import RunResult
from runtime.launch.session import Session
from runtime.options import COMPLETED, FAILED, INTERRUPTED, RunOptions, RunPlaces
from runtime.rundir import rundir
from runtime.schedule import Schedule
from tstorm.k8s import (
    agentlogs,
    apply,
    coordinator_follower,
    podexec,
    preflight,
    remove_runs,
)
from tstorm.k8s.apply import AppliedExperiment
from tstorm.k8s.connection import ApiConnection, ServerError
from tstorm.k8s.coordinator_follower import (
    PROGRAM,
    CoordinatorLostError,
    Heard,
    RunFollower,
)
from tstorm.k8s.find import Root
from tstorm.k8s.mirror import Mirror
from tstorm.k8s.podexec import BrokenStreamError
from tstorm.k8s.waiting import Waiting

LINGER_SECONDS = 3600  # that the coordinator keeps results which nobody has fetched
SETUP_SECONDS = 1800  # for images and pods, in the deadline of the run
STOP_SECONDS = 60.0  # to wind down after the first request to stop
LOOK_SECONDS = 2.0  # between two looks at what does not start
TICK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """Where the run is, beside what its options say. `keep`: its objects stay afterwards."""

    connection: ApiConnection
    experiment: AppliedExperiment
    agent_image: str
    keep: bool = False
    warnings: Sequence[str] = ()  # about the objects, before there are any


class StoppedError(Exception):
    """The user asked for the end before there was anything to stop."""


def run(
    plan: Plan,
    options: RunOptions,
    places: RunPlaces,
    reporter: Reporter = ignore,
    *,
    cluster: ClusterPlace,
) -> RunResult:
    """Runs a plan to its end and says how it went. Call it from the main thread for clean Ctrl-C.

    Raises RunError for what is asked, MachineError if the cluster refuses; then nothing of the run
    is left in the cluster.
    """
    schedule = Schedule(plan, options)
    datapath_choice.check(plan, options)
    namespace, image = cluster.experiment.namespace, cluster.agent_image
    with cluster.connection as connection, stops.noted() as signals:
        given = cluster.experiment.is_named and preflight.is_given(connection, namespace)
        asked = preflight.WantedOfCluster(namespace, options.nodes, image, given)
        found = preflight.checks(connection, asked)
        preflight.demand(found)
        directory = rundir.begin_new(plan, options, places, _where(cluster))
        run_id = str(directory.manifest_so_far()["run_id"])
        session = Session(run_id, plan, schedule, options, directory, reporter)
        attempt = _ClusterRun(session, places, cluster, signals, Root(namespace, given))
        attempt.warn_of(found)
        return attempt.whole()


def _where(cluster: ClusterPlace) -> dict[str, object]:
    """What the manifest says of the cluster."""
    where = {
        "namespace": cluster.experiment.namespace,
        "agent_image": cluster.agent_image,
        "version": str(cluster.connection.get("/version").get("gitVersion", "")),
    }
    return {"cluster": where}


@dataclass(slots=True)
class _ClusterRun:
    session: Session
    places: RunPlaces
    cluster: ClusterPlace
    signals: socket.socket
    root: Root
    stops: int = 0  # requests to stop so far
    said: queue.SimpleQueue[Heard] = field(default_factory=queue.SimpleQueue)

    # -- from start to end ------------------------------------------------------------------------

    def whole(self) -> RunResult:
        """Whatever happens, the run has an outcome and, unless it is to stay, leaves nothing."""
        try:
            self.root = apply.begin(
                self.cluster.connection, self.cluster.experiment, self.session.run_id, self.root
            )
        except BaseException:
            self.session.directory.abandon()
            raise
        keep = False
        try:
            self._carry_out()
            keep = self.cluster.keep
        except StoppedError:
            self.session.final = without_word(INTERRUPTED, "")
        except OSError as error:
            refusal = unexpected(error)
            self.session.fail(refusal.message)
            raise refusal from error
        except BaseException as error:
            failed = f"the command failed: {error!r}"
            self.session.fail(error.message if isinstance(error, RunError) else failed)
            raise
        finally:
            if self.session.final is None or self.session.final["outcome"] == FAILED:
                self._keep_logs()
            if not keep:
                self._remove()
        return self._conclude()

    def _keep_logs(self) -> None:
        """Of agents and coordinator, whose pods are about to go."""
        try:
            namespace = self.cluster.experiment.namespace
            missing = agentlogs.keep(self.cluster.connection, namespace, self.session.directory)
        except (RunError, OSError) as error:
            missing = f"the logs of agents and coordinator could not be kept: {error}"
        if missing:
            self._warn(missing)

    def _carry_out(self) -> None:
        """To the last word of the coordinator. RunError, StoppedError."""
        connection, experiment = self.cluster.connection, self.cluster.experiment
        self.report(f"applying to namespace {experiment.namespace} of {connection.server}")
        apply.put(connection, experiment, self._run_config(), self._check_stop, self.root)
        follower = RunFollower(connection, self.root, Mirror(self.session.directory), self.said.put)
        follower.start()
        try:
            self._listen()
        finally:
            follower.halt()
            follower.join(coordinator_follower.BEAT_SECONDS)
        if self.session.final is not None:
            self._say_if_destroyed(self.session.final)
            self._fetched()

    def _say_if_destroyed(self, final: dict[str, Any]) -> None:
        """The coordinator only sees that pods go, or is told to end as its own does."""
        if final["outcome"] == COMPLETED or self.stops:
            return
        with suppress(ServerError):
            removal = coordinator_follower.removed(self.cluster.connection, self.root)
            if removal is not None:
                final.update(outcome=FAILED, message=removal.text)

    def _listen(self) -> None:
        waiting = Waiting(
            self.cluster.connection,
            self.cluster.experiment.namespace,
            lambda text, warning: self.report(text, warning=warning),
        )
        look_ns, deadline_ns, told = 0, 0, False
        while True:
            with suppress(queue.Empty):
                said = self.said.get(timeout=TICK_SECONDS)
                if said.over:
                    self._over(said)
                    return
                if said.trouble:
                    phase = self.session.latest.phase if self.session.latest else STARTING
                    self.report(said.trouble, phase=phase, warning=True)
                self._take(said.record)
            now = time.monotonic_ns()
            if self._stop_asked():
                self.report("stopping", phase=STOPPING)
                seconds = STOP_SECONDS + longest_seconds(self.session.plan.topology)
                deadline_ns = deadline_ns or now + round(seconds * 1e9)
            if self.stops > 1 or (deadline_ns and now > deadline_ns):
                raise StoppedError
            if deadline_ns and not told:
                told = self._tell_to_stop()
            if not self.session.started and now >= look_ns:
                self._look(waiting)
                taken = time.monotonic_ns() - now
                look_ns = time.monotonic_ns() + max(round(LOOK_SECONDS * 1e9), 4 * taken)

    def _look(self, waiting: Waiting) -> None:
        """An API server that is away says nothing about the experiment."""
        try:
            waiting.look()
        except ServerError as error:
            if not error.is_passing:
                raise

    def _over(self, said: Heard) -> None:
        if said.error is not None and not isinstance(said.error, CoordinatorLostError):
            raise said.error
        if self.session.final is None:
            outcome = INTERRUPTED if self.stops else FAILED
            self.session.final = without_word(
                outcome, str(said.error or "the coordinator said no end")
            )

    def _take(self, record: Mapping[str, Any]) -> None:
        """One record of the stream, as the driver says it on one machine."""
        try:
            self.session.hear(record)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(
                f"the coordinator says what this release does not understand: {error}",
                "use the release that made its image (--agent-image)",
            ) from error

    # -- ends -------------------------------------------------------------------------------------

    def _stop_asked(self) -> bool:
        """Whether there was another request since the last look."""
        self.signals.setblocking(False)
        try:
            count = len(self.signals.recv(64))
        except BlockingIOError:
            return False
        self.stops += count
        return True

    def _check_stop(self) -> None:
        if self._stop_asked():
            raise StoppedError

    def _tell_to_stop(self) -> bool:
        """Whether the coordinator knows; else it has to be tried again. StoppedError if there is
        none that could be told."""
        try:
            pod = self._pod()
            if pod is None or pod.get("status", {}).get("phase") != "Running":
                raise StoppedError
            place = coordinator_follower.place_of(pod)
            podexec.answer(self.cluster.connection, place, [PROGRAM, "stop"])
        except BrokenStreamError:
            return False
        except RunError as error:
            if isinstance(error, ServerError) and error.is_passing:
                return False
            raise StoppedError from error
        return True

    def _pod(self) -> dict[str, Any] | None:
        """The coordinator's. RunError if it is gone, or unknown."""
        return coordinator_follower.pod_of_run(self.cluster.connection, self.root)

    def _fetched(self) -> None:
        """Lets the coordinator go. It goes anyway when its namespace does, or its time is up."""
        with suppress(RunError):
            pod = self._pod()
            if pod is not None:
                place = coordinator_follower.place_of(pod)
                podexec.answer(self.cluster.connection, place, [PROGRAM, "fetched"])

    def _warn(self, text: str) -> None:
        self.report(text, phase=STOPPING, warning=True)

    def _remove(self) -> None:
        """Says what could not be removed: the outcome stands."""
        self.report("removing it from the cluster", phase=STOPPING)
        try:
            kept = remove_runs.remove(self.cluster.connection, self.root, self._rest, self._warn)
        except RunError as error:
            kept = error.message
        if kept:
            command = f"tstorm destroy --backend k8s --namespace {self.root.namespace}"
            self._warn(f"{self.root.text} may still be there: {kept}; '{command}' removes it")

    def _rest(self, seconds: float) -> bool:
        """Waits; False once the user has asked for the end twice, or again meanwhile."""
        time.sleep(seconds)
        return not (self._stop_asked() and self.stops > 1)

    def _conclude(self) -> RunResult:
        final = self.session.final
        assert final is not None
        return self.session.result(final, self.session.results(final))

    # -- words ------------------------------------------------------------------------------------

    def _run_config(self) -> dict[str, Any]:
        return {
            "run_id": self.session.run_id,
            "options": self.session.options.to_record(),
            "name": rundir.experiment_name(self.places.name),
            "start_directory": self.places.start_directory,
            "source_directory": self.places.source_directory,
            "manifest": self.session.directory.manifest_so_far(),
            "linger_seconds": LINGER_SECONDS,
        }

    def warn_of(self, found: list[Check]) -> None:
        for text in self.cluster.warnings:
            self.report(text, warning=True)
        for check in found:
            if check.status == WARN:
                self.report(f"{check.name}: {check.detail}")

    def report(self, message: str, *, phase: str = STARTING, warning: bool = False) -> None:
        """What is said from here, while the coordinator says nothing."""
        before = self.session.latest or Progress(
            phase=phase,
            run_id=self.session.run_id,
            directory=str(self.session.directory.path),
            at_ns=self.session.options.start_at_ns,
            end_ns=self.session.schedule.end_ns,
            elapsed_ns=0,
            applied=0,
            total=self.session.schedule.total,
        )
        self.session.reporter(replace(before, phase=phase, message=message, warning=warning))


def deadline_seconds(plan: Plan, options: RunOptions) -> int:
    """After which the cluster ends a run that nobody ended."""
    schedule = Schedule(plan, options)
    return -(-schedule.end_due_ns // 10**9) + SETUP_SECONDS + LINGER_SECONDS
