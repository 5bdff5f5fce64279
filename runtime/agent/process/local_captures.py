"""Packets of this host's paths for programs beside the agent: in a cluster `tstorm-agent capture`,
which the API server starts in the agent's container (docs/supervisor.md).

They ask on a socket of the file system, in a folder that only this container has: nobody listens
on the network for it. A request is {"ask": "capture", "path": "a.0--b.0", "probes": true|false}.
The answer has `interfaces`, those of this host's own instances, and `left_out`, who has no path
now; with it comes the reading end of a pipe, to which the datapath writes until that is closed.
Times are those since T0. Where the path does not begin on this host there are no interfaces, and
there is no pipe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compiler.plan.format import PlanError
from runtime.agent.path.datapath import Datapath
from runtime.agent.process.hostrun import HostRun
from runtime.datapath.capture_pipe import open_pipe
from runtime.datapath.pktd import EngineError
from runtime.errors import RunError, unexpected
from runtime.rpc.control import ControlServer, Given, Reply, answered_by
from runtime.rundir.held_directory import HeldDirectory

SOCKET = "socket"


class LocalCaptures:
    """`folder` is the datapath's for pipes. Made within a running event loop. RunError."""

    def __init__(
        self, folder: Path, datapath: Datapath, host_run: Callable[[], HostRun | None]
    ) -> None:
        self._datapath = datapath
        self._host_run = host_run
        try:
            self._folder = HeldDirectory.hold(folder)
            (folder / SOCKET).unlink(missing_ok=True)  # of an agent that was killed
            self._server = ControlServer(folder / SOCKET, answered_by(self._answer))
        except OSError as error:
            raise unexpected(error) from error

    async def _answer(self, request: Mapping[str, Any]) -> Reply:
        host_run = self._host_run()
        if request["ask"] != "capture":
            raise RunError(f"cannot answer {request['ask']!r:.40}")
        if host_run is None or not host_run.started:
            raise RunError("the run has not begun yet", "try again when it is at 0s")
        path, probes = str(request["path"]), bool(request["probes"])
        try:
            found = await host_run.captured(path)
        except PlanError as error:
            raise RunError(str(error)) from error
        own = found.by_host.get(host_run.order.host, [])
        told = {"interfaces": [one.interface for one in own], "left_out": found.left_out}
        if not own:
            return told, None
        places = [(f"{one.src}>{one.dst}", one.offered, one.interface) for one in own]
        try:
            pipe = await open_pipe(
                self._folder, lambda name: self._datapath.capture(name, places, probes=probes)
            )
        except EngineError as error:
            raise RunError(f"cannot capture at {path}: {error.message}") from error
        return told, Given(pipe)

    def close(self) -> None:
        self._server.close()
