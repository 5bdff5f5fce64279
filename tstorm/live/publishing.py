"""`tstorm run --publish`, and `publish=` of a service: ports of programs on this machine from the
start of a run to its end.

The ports here are opened before anything runs, so that one that is taken is known at once, and a
connection that comes early waits. What forwards is a process of its own for each (`tstorm
forward`), started when the run has begun; what becomes of it changes nothing for the run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from socket import socket

from compiler.plan.parts import service_words
from compiler.plan.types import Topology
from runtime.driver.progress import RUNNING, Progress
from runtime.errors import no_instance
from runtime.launch import portforward

Published = tuple[str, int, int | None]  # instance, its port, and the one here; None: any

_END_SECONDS = 5.0


def of_services(topology: Topology) -> list[Published]:
    """What the experiment's text asks for."""
    return [
        (instance, port, local or None)
        for service in topology.services
        for instance, port, local in service_words.published(service)
    ]


def left_out(topology: Topology, where: str) -> str:
    """That nothing is published there, for people; '' where no text asks for it."""
    named = [one.name for one in topology.services if service_words.published(one)]
    if not named:
        return ""
    return f"note: publish= (of {', '.join(named)}) makes no port reachable {where}"


class Publisher:
    """Ports that are open here, and their processes once there are any."""

    def __init__(self, listeners: Sequence[tuple[str, socket]]) -> None:
        self._listeners = listeners
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def addresses(self) -> list[str]:
        """What leads where, for people."""
        return [
            "{}:{} is {}".format(*listener.getsockname(), target)
            for target, listener in self._listeners
        ]

    def seen(self, record: Progress) -> Progress:
        """Takes each record of progress, and gives it back."""
        if not self._processes and record.phase == RUNNING:
            self._processes = [_started(record.directory, *one) for one in self._listeners]
        return record

    def end(self) -> None:
        """They end by themselves with the run; whoever does not is killed."""
        for process in self._processes:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def published(topology: Topology, ports: Sequence[Published]) -> Iterator[Publisher]:
    """RunError for an instance that is not, and for a port that cannot be had."""
    known = [node.name for node in topology.nodes if node.is_instance]
    with ExitStack() as stack:
        listeners = []
        for instance, port, local in ports:
            if instance not in known:
                raise no_instance(instance, known)
            listener = stack.enter_context(portforward.listening(local, port))
            listeners.append((f"{instance}:{port}", listener))
        publisher = Publisher(listeners)
        try:
            yield publisher
        finally:
            publisher.end()


def _started(directory: str, target: str, listener: socket) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C is for the run."""
    number = listener.fileno()
    words = ["forward", directory, target, "--listener", str(number)]
    return subprocess.Popen(
        [sys.executable, "-m", "tstorm", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[number],
        start_new_session=True,
    )
