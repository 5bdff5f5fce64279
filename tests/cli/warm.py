"""tstorm in a process that has imported it already: `python -m tests.cli.warm FD` waits for calls
on the socket FD and forks a process for each. From nothing, a start takes a quarter of a second of
a processor more.

Such a process is the command in all but its start: its directory, its environment, its streams, its
arguments and its end are the call's. What the interpreter itself takes from the environment
(PYTHON…) is that of the first call, so a call that has others is none for it (`suits`).
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[2]
TSTORM, RUNTIME = "tstorm.__main__", "tests.runtime.start"  # whose `main` is called
MODULES = (
    *("tstorm.commands.run", "tstorm.commands.replay", "tstorm.commands.destroy"),
    *("tstorm.loading", "compiler.pipeline", RUNTIME),
)
_MOST_BYTES = 1 << 18  # of a call


class _Server:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.owner = os.getpid()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._interpreters = _of_interpreter(environment)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.warm", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env=environment,
            )
        atexit.register(self.close)

    def close(self) -> None:
        if self.owner == os.getpid():
            self._socket.close()
            self._process.wait()

    def suits(self, environment: Mapping[str, str]) -> bool:
        return self._interpreters == _of_interpreter(environment)

    def call(self, call: bytes, streams: Sequence[IO[str]], timeout: float) -> int:
        """The status, as subprocess has it. TimeoutError, after it was killed."""
        socket.send_fds(self._socket, [call], [stream.fileno() for stream in streams])
        pid = int(self._answer())
        self._socket.settimeout(timeout)
        try:
            return int(self._answer())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._socket.settimeout(None)
            self._answer()
            raise
        finally:
            self._socket.settimeout(None)

    def _answer(self) -> bytes:
        said = self._socket.recv(64)
        assert said, "what was to fork tstorm has died"
        return said


_SERVER: _Server | None = None


def _of_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def run(
    place: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout: float,
    program: str = TSTORM,
) -> tuple[int, str, str] | None:
    """Status, and what was written to both streams. TimeoutError. None where it takes a process of
    its own from the start."""
    global _SERVER  # noqa: PLW0603  # one for a process and its children, but not for forks of it
    if _SERVER is None or _SERVER.owner != os.getpid():
        _SERVER = _Server(environment)
    words = [program, os.fspath(place), list(arguments), dict(environment)]
    call = json.dumps(words).encode()
    if not _SERVER.suits(environment) or len(call) > _MOST_BYTES:
        return None
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = _SERVER.call(call, (out, err), timeout)
        return status, _text(out), _text(err)


def _text(stream: IO[str]) -> str:
    stream.seek(0)
    return stream.read()


# --- the process that forks ---------------------------------------------------------------------


def serve(connection: socket.socket) -> None:
    for name in MODULES:
        importlib.import_module(name)
    while True:
        call, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 2)
        if not call:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(call, streams)
        for stream in streams:
            os.close(stream)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(call: bytes, streams: Sequence[int]) -> NoReturn:
    status = 1
    try:
        program, place, arguments, environment = json.loads(call)
        for stream, number in zip(streams, (1, 2), strict=True):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        sys.argv = ["tstorm", *arguments]
        main = importlib.import_module(program).main
        status = main() if program == TSTORM else main(*arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # as an interpreter ends
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
