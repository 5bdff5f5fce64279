"""Runs a command inside an instance of a run that goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from runtime.backend.local import enter_instance
from runtime.launch import registry, relay
from runtime.options import VIRTUAL
from runtime.rpc.control import ask
from runtime.system import compiled_programs, process_limits


def exec_argv(run: str | None, instance: str, argv: Sequence[str]) -> int:
    """Runs argv in the instance with this process' terminal; returns the command's exit status.

    128 + signal if it was killed, 125 if the instance could not be entered, 126 or 127 if the
    command cannot be started. RunError if there is no such run or instance.
    """
    entry = compiled_programs.find("tstorm-ns")
    path = Path(registry.find(run).socket)
    more = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    answer, descriptor = ask(path, {"ask": "enter", "instance": instance})
    if answer.get("time") == VIRTUAL:
        return relay.exec_argv(path, instance, argv, more)
    assert descriptor is not None
    command = enter_instance.command(str(entry), answer, descriptor, argv)
    environment = {**answer["environment"], **more}
    try:
        process = process_limits.start("tstorm-ns", command, env=environment, pass_fds=[descriptor])
    finally:
        os.close(descriptor)
    return _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """^C is for the command: it has the terminal, and we wait for what it makes of it."""
    while True:
        try:
            return enter_instance.shell_status(process.wait())
        except KeyboardInterrupt:
            continue
