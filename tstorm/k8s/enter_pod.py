"""Runs a command inside an instance of a run in a cluster, with this process' terminal."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from runtime.backend.k8s.exec_status import ENTER_FAILED, SIZE, STDERR, STDIN, STDOUT
from runtime.errors import RunError, no_instance
from runtime.json_schema import parse
from runtime.system import terminal
from tstorm import output
from tstorm.k8s import coordinator_follower, find, podexec
from tstorm.k8s.connection import ApiConnection
from tstorm.k8s.coordinator_follower import PROGRAM
from tstorm.k8s.documents import path_of
from tstorm.k8s.find import ClusterRun
from tstorm.k8s.podexec import BrokenStreamError, ContainerPlace
from tstorm.k8s.waiting import reasons

# What a run in a cluster is doing: asked of its coordinator, through the API server.


def inspect(connection: ApiConnection, run: str | None, namespace: str | None) -> dict[str, Any]:
    """As runtime.launch.run_status.inspect of a live run, with where it is. RunError."""
    found = find.one(connection, run, namespace)
    return {"live": True, "namespace": found.namespace, **state(connection, found)}


def state(connection: ApiConnection, run: ClusterRun) -> dict[str, Any]:
    """What the coordinator says. RunError that names why it says nothing."""
    place = coordinator_follower.place_of(coordinator_of(connection, run))
    answer = parse(
        podexec.answer(connection, place, [PROGRAM, "state"]), f"the answer of run {run.text}"
    )
    if type(answer) is not dict:
        raise RunError(f"the answer of run {run.text} is none")
    if "error" in answer:
        raise RunError(str(answer["error"]), str(answer.get("remedy", "")))
    return answer


def coordinator_of(connection: ApiConnection, run: ClusterRun) -> dict[str, Any]:
    """Its pod, which runs. RunError that names why it does not."""
    pod = coordinator_follower.pod_of(connection, run.namespace)
    phase = pod.get("status", {}).get("phase") if pod else None
    if pod is None or phase == "Pending":
        why = "; ".join(one.text for one in reasons(connection, run.namespace))
        raise RunError(f"run {run.text} has not begun: {why or 'its pods are being made'}")
    if phase in ("Failed", "Succeeded"):
        how = coordinator_follower.how_ended(pod)
        remedy = f"tstorm destroy --backend k8s --namespace {run.namespace} removes what is left"
        raise RunError(f"run {run.text} is over: {how}", remedy)
    return pod


def instance_state(shown: Mapping[str, Any], name: str) -> str:
    """Of an instance, as state() has it; RunError if the run has none of this name."""
    known = [one["name"] for one in shown["instances"]]
    for one in shown["instances"]:
        if one["name"] == name:
            return str(one["state"])
    raise no_instance(name, known)


CONTAINER = "instance"
_INDEX = "apps.kubernetes.io/pod-index"
_SERVICE = "thunderstorm.dev/service"
_READ_BYTES = 1 << 16


def exec_argv(
    connection: ApiConnection,
    run: str | None,
    namespace: str | None,
    instance: str,
    argv: Sequence[str],
) -> int:
    """The command's exit status, as on one machine (runtime.launch.enter). RunError if there is no
    such run or instance."""
    found = find.one(connection, run, namespace)
    place = _place(connection, found, instance)
    typed_at = terminal.is_ours()
    try:
        with podexec.opened(connection, place, argv, stdin=True, tty=typed_at) as socket:
            with terminal.raw() if typed_at else nullcontext():
                _relay(socket, typed_at=typed_at)
            how = podexec.ended(socket)
    except BrokenStreamError as error:
        output.note(f"error: instance {instance} cannot be entered: {error.message}")
        return ENTER_FAILED
    except terminal.OutputError as error:
        if isinstance(error.__cause__, BrokenPipeError):  # the reader (`| head`) is gone
            return 128 + signal.SIGPIPE
        assert error.__cause__ is not None
        raise error.__cause__ from None
    except KeyboardInterrupt:  # without a terminal of its own the command does not get it
        return 128 + signal.SIGINT
    if how is None:
        output.note(f"error: the connection into {instance} broke; the command may go on")
        return ENTER_FAILED
    if how.refusal:
        output.note(f"error: {how.refusal}")
    return how.status


def pod_of_instance(connection: ApiConnection, run: ClusterRun, instance: str) -> dict[str, Any]:
    """The pod of an instance, whether that is up or down. RunError if there is none."""
    service, _, index = instance.rpartition(".")
    pods = connection.items(path_of("Pod", run.namespace), labelSelector=f"{_INDEX}={index or 0}")
    for pod in pods:
        if (pod["metadata"].get("annotations") or {}).get(_SERVICE) == service:
            return pod
    instance_state(state(connection, run), instance)  # names those there are
    raise RunError(f"instance {instance} has no pod now")


def _place(connection: ApiConnection, run: ClusterRun, instance: str) -> ContainerPlace:
    """Its container, if it is up as far as the run is asked."""
    name = str(pod_of_instance(connection, run, instance)["metadata"]["name"])
    if _is_down(connection, run, instance):
        raise RunError(f"instance {instance} is down now")
    return ContainerPlace(run.namespace, name, CONTAINER)


def _is_down(connection: ApiConnection, run: ClusterRun, instance: str) -> bool:
    """Nobody says so of a run that is over, whose pods may be entered for a look."""
    try:
        shown = state(connection, run)
    except RunError:
        return False
    return instance_state(shown, instance) == "down"


def _relay(socket: Any, *, typed_at: bool) -> None:
    """Input to the command, its output to ours, until it ends."""
    size = _tell_size(socket) if typed_at else None
    with selectors.PollSelector() as selector:  # takes regular files, too
        selector.register(socket.sock.sock, selectors.EVENT_READ, "socket")
        if terminal.is_open(0):
            selector.register(0, selectors.EVENT_READ, "stdin")
        while socket.is_open():
            pending = getattr(socket.sock.sock, "pending", lambda: 0)()  # decrypted already
            ready = [key.data for key, _ in selector.select(0 if pending else 1.0)]
            if "stdin" in ready and not _send(socket):
                selector.unregister(0)
            if pending or "socket" in ready:
                socket.update(timeout=0)
            _show(socket)
            if typed_at and os.get_terminal_size(1) != size:
                size = _tell_size(socket)
    _show(socket)


def _send(socket: Any) -> bool:
    """Whether there may be more input. A command that has ended takes none."""
    import websocket

    data = os.read(0, _READ_BYTES)
    try:
        if data:
            socket.write_channel(STDIN, data)
        else:
            socket.close_channel(STDIN)
    except (websocket.WebSocketException, OSError):
        return False
    return bool(data)


def _show(socket: Any) -> None:
    """terminal.OutputError."""
    for channel, stream in ((STDOUT, sys.stdout), (STDERR, sys.stderr)):
        data = socket.read_channel(channel)
        if data:
            terminal.show(stream, data)


def _tell_size(socket: Any) -> os.terminal_size:
    size = os.get_terminal_size(1)
    text = json.dumps({"Width": size.columns, "Height": size.lines})
    socket.write_channel(SIZE, text.encode("ascii"))
    return size
