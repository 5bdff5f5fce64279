"""Child processes that end with this one (tstorm/testing/__main__.py): a run, a command in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tstorm.testing.request import RunRequest

COMMAND = (sys.executable, "-P", "-m", "tstorm.testing")
SAID_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Executed:
    """A command that has ended in an instance."""

    returncode: int
    stdout: str
    stderr: str


class Child:
    """`tstorm run`, started. What it says on stderr is kept until this object is gone."""

    def __init__(self, request: RunRequest) -> None:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by the line that follows)
        weakref.finalize(self, errors.close)
        self._errors = errors
        text = request.text
        self._process = subprocess.Popen(
            [*COMMAND, str(os.getpid()), *request.words()],
            cwd=request.folder,
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # ^C is for the test, which then ends the run
        )
        if text is not None:
            _write(self._process, text)

    @property
    def code(self) -> int | None:
        """None: it goes on."""
        return self._process.poll()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def said(self) -> str:
        """The end of it, if it is long."""
        size = os.fstat(self._errors.fileno()).st_size
        data = os.pread(self._errors.fileno(), SAID_BYTES, max(size - SAID_BYTES, 0))
        return data.decode("utf-8", "replace").strip()


def _write(process: subprocess.Popen[bytes], text: str) -> None:
    """A child that has ended before it read everything says why."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(text.encode())
    with suppress(BrokenPipeError):
        process.stdin.close()


def execute(
    run: Path, instance: str, argv: Sequence[str], text: str, seconds: float
) -> tuple[Executed, str]:
    """A command in an instance that has ended, and what kept it from being run, '' if nothing did.
    subprocess.TimeoutExpired; then it and what it has started are killed. What has left its session
    (a daemon) goes on as long as its instance does."""
    refusal, theirs = os.pipe()
    words = ["exec", str(theirs), str(run), instance, *argv]
    try:
        done = _call([*COMMAND, str(os.getpid()), *words], theirs, text, seconds)
    finally:
        os.close(theirs)
        with os.fdopen(refusal, "rb") as pipe:
            said = pipe.read().decode("utf-8", "replace")
    return done, said


def _call(argv: Sequence[str], refusal: int, text: str, seconds: float) -> Executed:
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[refusal],
        start_new_session=True,
    )
    with _ended(process):
        out, err = process.communicate(text.encode(), timeout=seconds)
    code = process.returncode
    return Executed(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """With everything that it has started in its session, if something goes wrong inside."""
    try:
        yield
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:  # whoever has left the session may have its other end
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait()
        raise
