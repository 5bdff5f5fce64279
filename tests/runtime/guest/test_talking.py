"""A run in virtual time is inspected, entered and stopped as one in real time."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.runtime.guest.longrun import LONG, Begin
from tests.runtime.support import ROOT, Compile, User
from tests.waiting import wait_until

pytestmark = pytest.mark.virtual

DEADLINE_SECONDS = 120.0


def entered(someone: User, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command in server.0 of the run in `out`."""
    process = someone.start("exec", str(someone.home / "out"), "server.0", *argv, **options)
    out, err = process.communicate(options.pop("typed", None), timeout=120)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert "outcome" in found, err
    return found


def manifest(someone: User) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((someone.home / "out/manifest.json").read_text())
    return found


@pytest.mark.ordinary
def test_a_run_is_entered_and_inspected_and_says_that_it_was(begin: Begin, someone: User) -> None:
    run = begin()
    done = entered(someone, "sh", "-c", "hostname; pwd; echo no >&2; exit 3")
    here = "/run/tstorm/run/instances/server.0"
    assert (done.stdout, done.stderr, done.returncode) == (f"server-0\n{here}\n", "no\n", 3)
    state = someone.call("inspect", str(someone.home / "out"))
    assert state["live"] is True
    assert state["directory"] == str(someone.home / "out")
    assert [i["state"] for i in state["instances"]] == ["up", "up"]
    run.send_signal(signal.SIGINT)
    assert ended(run)["outcome"] == "interrupted"
    assert manifest(someone)["talked_to"] == {"exec": 1, "state": 1}
    assert someone.call("inspect", str(someone.home / "out"))["live"] is False


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["sh", "-c", "kill -15 $$"], 143, ""),
        (["/nowhere"], 127, "cannot start /nowhere"),
        (["/etc"], 126, "cannot start /etc"),
    ],
)
def test_a_commands_end_is_told_as_in_real_time(
    begin: Begin, someone: User, argv: list[str], status: int, said: str
) -> None:
    begin()
    done = entered(someone, *argv)
    assert done.returncode == status
    assert said in done.stderr


def test_an_instance_that_is_not_there_is_refused(begin: Begin, someone: User) -> None:
    begin()
    refused = someone.start("exec", str(someone.home / "out"), "server.7", "true")
    out, _ = refused.communicate(timeout=120)
    assert "no instance 'server.7'" in out
    assert refused.returncode == 1


def test_input_and_output_of_any_length_arrive_whole(begin: Begin, someone: User) -> None:
    begin()
    text = "".join(f"line {number} of many\n" for number in range(10_000))
    process = someone.start(
        "exec", str(someone.home / "out"), "server.0", "cat", stdin=subprocess.PIPE
    )
    out, err = process.communicate(text, timeout=120)
    assert (process.returncode, out == text, err) == (0, True, "")
    long = "x" * 30_000  # more than the line's buffer holds
    assert entered(someone, "echo", long, stdin=subprocess.DEVNULL).stdout == f"{long}\n"


def test_a_reader_that_is_gone_ends_the_command(begin: Begin, someone: User) -> None:
    begin()
    process = someone.start("exec", str(someone.home / "out"), "server.0", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(120) == 128 + signal.SIGPIPE
    no_yes = "ps -e | grep -c '[y]es$'"
    wait_until(lambda: entered(someone, "sh", "-c", no_yes).stdout == "0\n", "the end of yes")


def test_an_interrupt_without_a_terminal_is_the_commands(begin: Begin, someone: User) -> None:
    begin()
    script = "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.1; done"
    process = someone.start("exec", str(someone.home / "out"), "server.0", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "caught\n"
    assert process.wait(120) == 4


def test_a_command_dies_with_who_asked_for_it(begin: Begin, someone: User) -> None:
    begin()
    process = someone.start("exec", str(someone.home / "out"), "server.0", "sleep", "77777")
    count = "ps -e -o args | grep -c '[s]leep 77777'"
    wait_until(lambda: entered(someone, "sh", "-c", count).stdout != "0\n", "the start of sleep")
    process.kill()
    wait_until(lambda: entered(someone, "sh", "-c", count).stdout == "0\n", "the end of sleep")


def test_virtual_time_goes_no_faster_than_real_time_at_a_terminal(
    plan_of: Compile, someone: User
) -> None:
    flying = LONG.replace("sleep 0.002", "sleep 100").replace("36000s", "99999999s")
    someone.begin(plan_of(flying), time="virtual")
    with typing(someone, "sh") as (typist, process):
        typist.sees(b"# ")
        began = time.monotonic()
        seen = []
        for _ in range(3):
            typist.type(b"sleep 1; date +no''w=%s.\r")
            typist.sees(b"now=")
            typist.sees(b"\r\n")
            seen.append(int(typist.last.partition(b".")[0]))
        real = time.monotonic() - began
        assert seen[0] + 2 <= seen[2] <= seen[0] + real + 1  # whole seconds
        typist.type(b"exit\r")
        assert process.wait(120) == 0


class Typist:
    """A terminal with `tstorm exec` at its other end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = b""
        self.last = b""  # before what was seen last

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def sees(self, text: bytes) -> None:
        """Waits until it is shown. Text before it is forgotten."""
        assert self._shows(text, DEADLINE_SECONDS), f"{text!r} is not in {self.shown!r}"
        self.last, _, self.shown = self.shown.partition(text)

    def interrupts(self) -> None:
        """Until there is a prompt: a shell that is just starting a program takes a first ^C for
        itself and waits for the program nevertheless."""
        end = time.monotonic() + DEADLINE_SECONDS
        self.type(b"\x03")
        while not self._shows(b"# ", 2) and time.monotonic() < end:
            self.type(b"\x03")
        self.sees(b"# ")

    def _shows(self, text: bytes, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while text not in self.shown:
            left = max(0.0, end - time.monotonic())
            if not select.select([self._descriptor], [], [], left)[0]:
                return False
            self.shown += os.read(self._descriptor, 4096)
        return True


@contextmanager
def typing(someone: User, *argv: str) -> Iterator[tuple[Typist, subprocess.Popen[bytes]]]:
    ours, theirs = pty.openpty()
    words = [str(ROOT / "tests/runtime/start.py"), "exec", str(someone.home / "out"), "server.0"]
    with subprocess.Popen(
        [sys.executable, *words, *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**someone.environment, "TERM": "dumb", "PS1": "% "},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            yield Typist(ours), process
        finally:
            process.kill()  # if it is still there, nobody ends it
            os.close(ours)


def test_a_shell_on_a_terminal(begin: Begin, someone: User) -> None:
    begin()
    with typing(someone, "sh") as (typist, process):
        typist.sees(b"# ")
        typist.type(b"tty; echo $TERM $((20 + 22))\r")
        typist.sees(b"/dev/pts/")
        typist.sees(b"dumb 42")
        typist.type(b"echo now''adays; sleep 100000\r")  # nothing but ^C ends it in time
        typist.sees(b"nowadays\r\n")
        typist.interrupts()
        typist.type(b"exit 5\r")
        assert process.wait(120) == 5
