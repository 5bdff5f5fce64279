"""Starts the driver: in namespaces of its own, or in a guest whose time is virtual."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from runtime.backend.local import environment, outside
from runtime.backend.local.local_backend import LocalSettings
from runtime.driver import driver_messages
from runtime.driver.driver_messages import DriverConfig
from runtime.errors import unwritten
from runtime.json_schema import encoded
from runtime.launch import registry
from runtime.options import RunOptions
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import DRIVER_LOG, GAI, HOSTS
from runtime.schedule import START_GRID_NS
from runtime.system import namespaces, process_limits
from runtime.virtual import guest, line
from runtime.virtual.clockpage import ClockPage


class DriverLink(Protocol):
    """The way to a driver and back."""

    def fileno(self) -> int: ...

    def send(self, record: Mapping[str, object]) -> None:
        """OSError if it is gone."""

    def receive(self) -> list[dict[str, Any]] | None:
        """What has arrived; None at the end. RunError for what is no message."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Started:
    process: subprocess.Popen[bytes]  # whose death ends everything in the run
    link: DriverLink
    page: ClockPage | None = None  # in virtual time; to be closed when nobody uses it any more
    outside: threading.Thread | None = None  # of a plan with ways there; it ends after the run


def in_sandbox(
    config: DriverConfig, local: LocalSettings, directory: RunDirectory, *, leads_outside: bool
) -> Started:
    """On this machine's own time. RunError, OSError."""
    ours, theirs = driver_messages.pair()
    more: list[socket.socket] = []
    with theirs, ExitStack() as closing, ExitStack() as failing:
        failing.callback(ours.close)
        if leads_outside:
            more = [closing.enter_context(one) for one in socket.socketpair()]
            local = replace(local, outside=more[1].fileno())
        names = ("--hosts", str(directory / HOSTS), "--gai", str(directory / GAI))
        argv = namespaces.sandbox(local.nursery, *names)
        argv += [sys.executable, "-P", "-m", "runtime.driver", str(theirs.fileno())]
        try:
            log = os.fdopen(directory.append_to(DRIVER_LOG), "ab")
        except OSError as error:
            raise unwritten(error) from error
        with log:
            process = process_limits.start(
                "the run's first process (tstorm-ns)",
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment.of_driver(os.environ),
                pass_fds=[theirs.fileno(), *(one.fileno() for one in more[1:])],
                start_new_session=True,  # ^C is for us: we tell the driver
            )
            leading = _lead_outside(more[0].dup(), os.dup(log.fileno())) if more else None
        failing.pop_all()
    link = driver_messages.PacketLink(ours)
    with suppress(OSError):  # it has ended: then its status and its log say why
        link.send({"driver": encoded(config), "local": encoded(local)})
    return Started(process, link, outside=leading)


def _lead_outside(driver: socket.socket, log: int) -> threading.Thread:
    thread = threading.Thread(target=outside.serve, args=(driver, log), daemon=True)
    thread.start()
    return thread


def in_guest(
    config: DriverConfig,
    local: LocalSettings,
    directory: RunDirectory,
    machine: guest.Machine,
) -> Started:
    """In virtual time. RunError, OSError."""
    os.close(directory.append_to(DRIVER_LOG))
    _compile()
    inner = replace(
        config,
        run_id=guest.RUN_ID_HERE,
        directory=guest.RUN_HERE,
        socket=guest.CONTROL_HERE,
    )
    record = {"driver": encoded(inner), "local": encoded(_same_everywhere(local))}
    keeper = [local.nursery, "sandbox", "--parent", "1"]
    names = ["--hosts", f"{guest.RUN_HERE}/{HOSTS}", "--gai", f"{guest.RUN_HERE}/{GAI}"]
    argv = [*keeper, *names, "--", sys.executable, "-P"]
    argv += ["-m", "runtime.virtual.inside", json.dumps(record)]
    ours, theirs = line.pair()
    with theirs:
        start = Path(local.start_directory)  # of a recorded run; it may be gone
        places = (directory.path, start if start.is_dir() else directory.path)
        try:
            found = guest.start(machine, places, argv, _of_guest(), theirs)
        except BaseException:
            ours.close()
            raise
    rename = guest.renaming(directory.path, config.run_id)
    return Started(found.process, line.HostEnd(ours, rename), found.page)


def _compile() -> None:
    """Has Python compile what the driver may import, where that has not been done.

    A driver that finds no bytecode looks for files and at the clock in another order: the run would
    not repeat once somebody else has compiled its modules. The guest itself writes none. Where they
    cannot be written, they stay as they are.
    """
    import compileall  # 30 ms, which runs in real time need not wait for

    root = Path(__file__).resolve().parents[2]
    for package in ("runtime", "compiler"):
        compileall.compile_dir(root / package, quiet=2)


def _same_everywhere(local: LocalSettings) -> LocalSettings:
    """Without what says where the run was called: programs see their environment, and many behave
    in another way if it is only longer."""
    return replace(
        local, start_directory=guest.START_HERE, environment=_without_terminal(local.environment)
    )


def _without_terminal(found: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in found.items() if name not in ("TERM", "SHELL")}


def _of_guest() -> dict[str, str]:
    found = _without_terminal(environment.of_driver(os.environ))
    found.update(
        XDG_RUNTIME_DIR=guest.STATE_HERE,
        XDG_STATE_HOME=guest.STATE_HERE,
        HOME=guest.STATE_HERE,
        PYTHONDONTWRITEBYTECODE="1",  # the host's files stay as they are
    )
    return found


def machine(
    record_socket: str, kernel: Path, keeper: Path, options: RunOptions, seed: int
) -> guest.Machine:
    """What a run's guest is made of. Its folder goes with the run's socket."""
    boot_ns = options.clock_start_ns - START_GRID_NS
    place = registry.guest_folder(record_socket)
    return guest.Machine(
        kernel,
        keeper,
        place,
        boot_ns,
        seed,
        scatter_ns=options.scatter_ns,
        preempt_ns=options.preempt_ns,
        cpu_ppb=options.cpu_ppb,
    )
