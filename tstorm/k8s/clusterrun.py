"""A run in a cluster, from here: applies it, waits, follows, mirrors, concludes, removes.

The coordinator in the cluster leads the run and needs nobody here: if this process is killed, the
run goes on, and `tstorm inspect` and `tstorm destroy` find it by its namespace.
"""

from __future__ import annotations

import queue
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.plan.reader import Plan
from manifests import bundle, kubernetes, kubernetes_checks
from manifests.kubernetes_labels import component_selector
from manifests.refusal import ManifestError
from manifests.render_options import Options
from manifests.write import encoded
from runtime.agent.pod.podend import longest_seconds
from runtime.backend import datapath_choice
from runtime.doctor.findings import WARN, Check
from runtime.driver import driver_messages
from runtime.driver.progress import STARTING, STOPPING, Progress, Reporter, ignore
from runtime.errors import RunError, unexpected, unfit
from runtime.judge.run_end import RunEnd
from runtime.launch import stops
from runtime.launch.run_result import RunResult
from runtime.launch.session import Session
from runtime.options import COMPLETED, FAILED, INTERRUPTED, RunOptions, RunPlaces
from runtime.rundir import rundir
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import AGENTS, COORDINATOR_LOG
from runtime.say import some
from runtime.schedule import Schedule
from tstorm.k8s import apply, coordinator_follower, podexec, preflight, remove_runs
from tstorm.k8s.apply import AppliedExperiment
from tstorm.k8s.connection import ApiConnection, ServerError, connect, demand_client
from tstorm.k8s.coordinator_follower import (
    PROGRAM,
    CoordinatorLostError,
    Heard,
    Mirror,
    RunFollower,
)
from tstorm.k8s.documents import path_of, split
from tstorm.k8s.find import OURS, Root
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
            self.session.end = RunEnd(INTERRUPTED)
        except OSError as error:
            refusal = unexpected(error)
            self.session.fail(refusal.message)
            raise refusal from error
        except BaseException as error:
            failed = f"the command failed: {error!r}"
            self.session.fail(error.message if isinstance(error, RunError) else failed)
            raise
        finally:
            if self.session.end is None or self.session.end.outcome == FAILED:
                self._keep_logs()
            if not keep:
                self._remove()
        return self._conclude()

    def _keep_logs(self) -> None:
        """Of agents and coordinator, whose pods are about to go."""
        try:
            namespace = self.cluster.experiment.namespace
            missing = _keep_agent_logs(self.cluster.connection, namespace, self.session.directory)
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
        if self.session.end is not None:
            self._say_if_destroyed(self.session.end)
            self._fetched()

    def _say_if_destroyed(self, end: RunEnd) -> None:
        """The coordinator only sees that pods go, or is told to end as its own does."""
        if end.outcome == COMPLETED or self.stops:
            return
        with suppress(ServerError):
            removal = coordinator_follower.removed(self.cluster.connection, self.root)
            if removal is not None:
                self.session.end = replace(end, outcome=FAILED, message=removal.text)

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
        if self.session.end is None:
            outcome = INTERRUPTED if self.stops else FAILED
            self.session.end = RunEnd(outcome, str(said.error or "the coordinator said no end"))

    def _take(self, record: Mapping[str, Any]) -> None:
        """One record of the stream, as the driver says it on one machine."""
        try:
            said = driver_messages.read(record)
        except RunError as error:
            raise coordinator_follower.nonsense(error.message) from error
        if said is not None:
            self.session.hear(said)

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
        end = self.session.end
        assert end is not None
        return self.session.result(end, self.session.results(end))

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


# The logs of a failed run's agents and of its coordinator, taken into the run directory before
# their pods go: agents/NODE.log and coordinator.log. Messages of the run refer to them.

ANSWER_SECONDS = 5.0  # for one log: the kubelet of a node that is away never answers
WHOLE_SECONDS = 30.0
MOST_LINES, MOST_BYTES = "5000", str(4 << 20)
SHOWN = 3
_NODE = re.compile(r"[a-z0-9][a-z0-9.-]*", re.ASCII)


def _keep_agent_logs(connection: ApiConnection, namespace: str, directory: HeldDirectory) -> str:
    """Writes them; '' or which are not there, and why. ServerError, OSError."""
    deadline = time.monotonic() + WHOLE_SECONDS
    pods = connection.items(path_of("Pod", namespace), labelSelector=OURS)
    missing: list[str] = []
    why, agents = "", None
    for pod in pods:
        component = next((one for one in ("agent", "coordinator") if _is(pod, one)), "")
        node = str(pod.get("spec", {}).get("nodeName", ""))
        if not component or (component == "agent" and not _NODE.fullmatch(node)):
            continue
        try:
            if time.monotonic() > deadline:
                raise ServerError(f"not within {WHOLE_SECONDS:g} s", 0)
            text = "".join(_texts(connection, pod, component))
        except ServerError as error:
            missing.append(f"the agent on {node}" if component == "agent" else "the coordinator")
            why = why or error.message
            continue
        if component == "coordinator":
            directory.write(COORDINATOR_LOG, text.encode())
        else:
            agents = agents or directory.make(AGENTS)
            agents.write(f"{node}.log", text.encode())
    return f"there is no log of {some(missing, SHOWN)}: {why}" if missing else ""


def _is(pod: Mapping[str, Any], component: str) -> bool:
    labels: dict[str, str] = pod["metadata"].get("labels", {})
    return component_selector(component).items() <= labels.items()


def _texts(connection: ApiConnection, pod: Mapping[str, Any], container: str) -> Iterator[str]:
    """The end of the log, and before it that of a container that was started again. ServerError."""
    meta = pod["metadata"]
    path = f"{path_of('Pod', str(meta['namespace']), str(meta['name']))}/log"
    query = {"container": container, "tailLines": MOST_LINES, "limitBytes": MOST_BYTES}
    if any(one.get("restartCount") for one in pod.get("status", {}).get("containerStatuses", [])):
        with suppress(ServerError):  # kubelet keeps only the last one, or none
            yield connection.text(path, {**query, "previous": "true"}, ANSWER_SECONDS)
    yield connection.text(path, query, ANSWER_SECONDS)


# What the command line says about a cluster, made into a connection and an experiment to apply.


@dataclass(frozen=True, slots=True)
class ClusterAsked:
    """Options of `tstorm run --backend k8s` that a replay does not repeat; None: the default."""

    context: str | None = None
    namespace: str | None = None
    agent_image: str | None = None
    agent_cpu_millis: int | None = None
    keep: bool | None = None


def place(plan: Plan, options: RunOptions, asked: ClusterAsked) -> ClusterPlace:
    """RunError for what cannot be rendered or reached; nothing was asked of the cluster yet."""
    demand_client()
    try:
        carried = bundle.make(plan)
        wanted = Options(
            namespace=asked.namespace or "",
            agent_image=asked.agent_image or "",
            nodes=options.nodes,
            deadline_seconds=deadline_seconds(plan, options),
        )
        if asked.agent_cpu_millis is not None:
            wanted = replace(wanted, agent_cpu_millis=asked.agent_cpu_millis)
        chosen = wanted.resolve(carried)
        files = encoded(kubernetes.render(carried, chosen))
    except ManifestError as error:
        raise unfit(error.what, error.hint, error.misfit) from error
    documents = tuple(split({name: data.decode("ascii") for name, data in files.items()}))
    experiment = AppliedExperiment(
        chosen.namespace, carried.digest, documents, is_named=bool(asked.namespace)
    )
    connection = connect(asked.context)
    warnings = kubernetes_checks.warnings(plan.topology, chosen.agent_cpu_millis)
    return ClusterPlace(connection, experiment, chosen.agent_image, bool(asked.keep), warnings)
