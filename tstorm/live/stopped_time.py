"""The time of a run in virtual time, stopped for as long as an action is compiled for it.

    with StoppedTime(socket) as stopped:
        answer = stopped.say({"plan": …})

The run's process outside the guest stops it (runtime/virtual/control_exchange.py). Time goes on
when the connection is closed, also by the end of this process.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from runtime.errors import RunError
from runtime.json_schema import parse
from runtime.rpc.control import REQUEST_BYTES, unanswered

ANSWER_SECONDS = 30.0  # of the run's process, which waits for the guest


class StoppedTime:
    """`at_ns`: of the guest's clock, where it stands already; None: as soon as it comes to a pause.
    RunError if it does not stop, or the run is none that goes on."""

    def __init__(self, path: Path, at_ns: int | None = None) -> None:
        self._path = path
        self._asked = {"ask": "stop", **({} if at_ns is None else {"at_ns": at_ns})}
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stopped_ns = 0  # since the start of the run: all that was due by then has been done
        self.now_ns = 0  # what clocks in there show: some looks at them later

    def __enter__(self) -> StoppedTime:
        with ExitStack() as failed:
            failed.callback(self._connection.close)
            self._connection.settimeout(ANSWER_SECONDS)
            try:
                self._connection.connect(str(self._path))
            except OSError as error:
                raise unanswered(self._path, error) from error
            told = self.say(self._asked)
            self.stopped_ns, self.now_ns = int(told["stopped_ns"]), int(told["now_ns"])
            failed.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def say(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The answer. RunError if there is none, or it is a refusal."""
        data = b""
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            while not data.endswith(b"\n") and (part := self._connection.recv(REQUEST_BYTES)):
                data += part
        except OSError as error:
            raise unanswered(self._path, error) from error
        if not data.endswith(b"\n"):
            raise RunError("the run has ended, or is ending", "nothing was changed")
        answer = parse(data, "the run's answer")
        if type(answer) is not dict:
            raise RunError("the run's answer is none")
        if "error" in answer:
            raise RunError(str(answer["error"]), str(answer.get("remedy", "")))
        return answer
