"""A guest: a kernel in virtual time with a run in it, as one process of the host and its children.

It sees the host's files as the user who starts it, and nothing else of the host: no network, no
processes. Its PID 1 is `tstorm-ns guest` (tcal_c/ns/guest.c). What it needs on the host besides the
run directory is a folder of the user's own, which goes with the run's record.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import MachineError
from runtime.rundir.runfiles import DRIVER_LOG
from runtime.system import process_limits
from runtime.virtual import line
from runtime.virtual.clockpage import ClockPage
from runtime.virtual.line import Renaming

# In the guest, whatever they are on the host: programs see how long the driver's arguments are.
RUN_ID_HERE = "run-in-virtual-time"
RUN_HERE = "/run/tstorm/run"  # the run directory
START_HERE = "/run/tstorm/start"  # where the run was called
STATE_HERE = "/run/tstorm/state"  # the runtime's own
CONTROL_HERE = f"{STATE_HERE}/control.sock"
MEMORY = "2G"
FIRST_DESCRIPTOR = 200  # far above what a process has open when it starts a guest
BOOT, STATUS, CONSOLE = "boot", "status", "console"


@dataclass(frozen=True, slots=True)
class Machine:
    """What a guest is made of."""

    kernel: Path
    init: Path  # tstorm-ns
    folder: Path  # of the user's own, for this guest alone
    boot_unix_ns: int  # its wall clock when it starts
    seed: int  # of all its randomness
    scatter_ns: int = 0  # by which its programs are delayed at most when they wake
    preempt_ns: int = 0  # for which they lose the processor at most inside computing
    cpu_ppb: int = 0  # of each second that programs compute on the host; 0: it takes no time
    more: tuple[str, ...] = ()  # words for the kernel's command line
    limit_ns: int | None = None  # beyond which its time does not jump at first


@dataclass(frozen=True, slots=True)
class Guest:
    """One that was started."""

    process: subprocess.Popen[bytes]
    page: ClockPage  # whoever has started it closes it


def start(
    machine: Machine,
    places: Sequence[Path],
    argv: Sequence[str],
    environment: Mapping[str, str],
    line: socket.socket,
) -> Guest:
    """A guest that carries out `argv` and ends. MachineError if it cannot be started.

    `places`: what it has at RUN_HERE and START_HERE. It dies with the thread that calls this.
    """
    machine.folder.mkdir(mode=0o700)
    (machine.folder / BOOT).write_bytes(_boot_file(argv, environment))
    with ExitStack() as owned:
        page = ClockPage.create()
        page.limit_ns = machine.limit_ns
        failed = owned.enter_context(ExitStack())
        failed.callback(page.close)
        folders = [owned.enter_context(_opened(path)) for path in (machine.folder, *places)]
        descriptors = owned.enter_context(_numbered((line.fileno(), page.fileno(), *folders)))
        console = owned.enter_context((machine.folder / CONSOLE).open("wb"))
        owned.enter_context(_pinned())
        process = process_limits.start(
            "the kernel for virtual time",
            _command(machine, *descriptors),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env={"PATH": "/nonexistent", "HOME": str(machine.folder)},
            pass_fds=descriptors,
            start_new_session=True,
            cwd="/",
        )
        failed.pop_all()
    return Guest(process, page)


def _boot_file(argv: Sequence[str], environment: Mapping[str, str]) -> bytes:
    """What PID 1 is to do, as tcal_c/ns/program.c reads it."""
    pairs = (f"{name}={value}" for name, value in sorted(environment.items()))
    words = ("start", "/", str(len(argv)), *argv, *pairs)
    return b"".join(os.fsencode(word) + b"\0" for word in words)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _numbered(descriptors: Sequence[int]) -> Iterator[list[int]]:
    """Copies with numbers that are the same in every run, since the guest's programs see them."""
    found: list[int] = []
    try:
        for one in descriptors:
            least = found[-1] if found else FIRST_DESCRIPTOR
            found.append(_copy(one, least))
        yield found
    finally:
        for one in found:
            os.close(one)


def _copy(descriptor: int, least: int) -> int:
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
    except OSError as error:
        what = f"this machine refuses a descriptor with the number {least}: {error.strerror}"
        raise MachineError(what, "raise the limit of open files: ulimit -n 1024") from error


def _command(machine: Machine, line: int, page: int, *folders: int) -> list[str]:
    """Programs see what is said here (/proc/cmdline): nothing that differs between two runs of an
    experiment, but for what our changes to the kernel take out of it (tstorm_…)."""
    return [
        str(machine.kernel),
        *("rootfstype=hostfs", "rootflags=/", "rw", f"mem={MEMORY}"),
        f'init="{machine.init}"',
        *("time-travel=inf-cpu", f"time-travel-start={machine.boot_unix_ns}"),
        *("con=null", "con0=null", f"ssl0=fd:{line}", "quiet", "norandmaps"),
        *("noreboot", "panic=-1"),  # a kernel that has panicked ends
        *("seccomp=auto", f"tstorm_page=fd:{page}", f"tstorm_seed={_seed(machine.seed)}"),
        *(f"tstorm_parent={os.getpid()}", f"tstorm_scatter={machine.scatter_ns}"),
        *([f"tstorm_preempt={machine.preempt_ns}"] if machine.preempt_ns else []),
        f"tstorm_since={_since_ns(folders[1])}",
        *([f"tstorm_cpu={machine.cpu_ppb}"] if machine.cpu_ppb else []),
        *machine.more,
        *("--", "guest", *map(str, folders)),
    ]


def _since_ns(run: int) -> int:
    """When the run directory got its first file. What the host wrote later is, for the guest, from
    the moment when it started."""
    with os.scandir(f"/proc/self/fd/{run}") as entries:
        return min([os.fstat(run).st_ctime_ns, *(one.stat().st_ctime_ns for one in entries)])


def _seed(seed: int) -> str:
    return hashlib.sha256(f"randomness of a guest {seed}".encode()).hexdigest()


@contextmanager
def _pinned() -> Iterator[None]:
    """What is started in here stays on one processor: a guest's kernel and its programs take turns,
    and a turn that crosses processors costs three times as much as one that does not."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(allowed)[os.getpid() % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def renaming(run: Path, run_id: str) -> Renaming:
    """What the guest says of its run, said of the one on the host."""
    return Renaming({RUN_HERE: str(run), RUN_ID_HERE: run_id})


def why_it_ended(machine: Machine, status: int) -> str:
    """Of a guest that did not come to its end; `status` is the kernel's on the host."""
    if status < 0:
        what = signal.strsignal(-status) or "unknown"
        killed = f"the guest's kernel was killed by signal {-status} ({what})"
        # It ends itself so, and says why.
        words = _last_words(machine) if status == -signal.SIGABRT else ""
        return killed + (f": {words}" if words else "")
    words = _last_words(machine)
    return "the guest's kernel ended" + (f": {words}" if words else f" with status {status}")


def _last_words(machine: Machine) -> str:
    """What its first program or its kernel gave as reason, else the last it said."""
    said = b""
    with suppress(OSError):
        said = (machine.folder / CONSOLE).read_bytes()
    lines = said.decode(errors="replace").strip().splitlines() or [""]
    for sign in ("tstorm-ns: ", "Kernel panic - not syncing: "):
        found = [line.partition(sign)[2] for line in lines if sign in line]
        if found:
            return found[-1]
    return lines[-1]


def status_of_driver(machine: Machine) -> int | None:
    """How the driver ended in there; None if PID 1 did not come to say it."""
    with suppress(OSError, ValueError):
        return int((machine.folder / STATUS).read_text())
    return None


# A trial of a kernel for virtual time: it starts, runs a program, and ends.

SECONDS = 60  # it takes half a second
_BOOT_UNIX_NS = 946_684_800 * 10**9


def why_not(kernel: Path, keeper: Path) -> str:
    """Why the kernel cannot be used here, '' if it can. `keeper`: tstorm-ns. Leaves nothing.

    Call it from the thread that goes on: a guest ends with the one that started it.
    """
    with tempfile.TemporaryDirectory(prefix="tstorm-trial-") as name:
        place = Path(name)
        run = place / "run"
        run.mkdir()
        (run / DRIVER_LOG).touch()
        machine = Machine(kernel, keeper, place / "guest", _BOOT_UNIX_NS, 0)
        return _boot(machine, run)


def _boot(machine: Machine, run: Path) -> str:
    ours, theirs = line.pair()
    with ours, theirs:
        # A program of this Python: it is here, and a run needs it.
        argv = [sys.executable, "-I", "-S", "-c", "print('here')"]
        trial = start(machine, (run, run), argv, {}, theirs)
        try:
            status = trial.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return f"it did not come to its end within {SECONDS} s"
        finally:
            trial.process.kill()
            trial.process.wait()
            trial.page.close()
    found = status_of_driver(machine)
    if found is None:
        return why_it_ended(machine, status)
    if found != 0:
        said = (run / DRIVER_LOG).read_text(errors="replace").strip()
        return f"a program in it ended with status {found}: {said}"
    return ""
