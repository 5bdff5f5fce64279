"""Runs one command under a kernel that has netem: `vm.py [OPTIONS] -- COMMAND [ARG…]`.

The kernel is user-mode Linux from Debian (packages user-mode-linux and kmod): an ordinary program,
so this works as root and as an ordinary user, in CI and without KVM. The command sees this
machine's file system (hostfs, writable), starts in the present folder with this environment, and is
root there. /run, /dev/shm and what $TMPDIR, $XDG_STATE_HOME and $XDG_RUNTIME_DIR name are the
machine's own and vanish with it; the only network is its loopback; it has one processor and its
timers are some 0.3 ms late.

Input: the command. Output: its stdout and stderr as they come; its exit status. Statuses of our
own: 2 wrong options, 69 something is missing here, 70 the machine failed, 124 out of time, 128+N
ended by signal N. `--check` only says what is missing.

Everything lives in a mount and a PID namespace of its own, its files in a tmpfs that exists only in
there: however this ends, kill -9 included, nothing is left, neither processes nor files.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn

from tests.cli.process import ended

MISSING, BROKEN, LATE = 69, 70, 124
MODULES = Path("/usr/lib/uml/modules")
WORK = Path(
    "/run"
)  # in here: a tmpfs of our own over it. Not under /dev: a booting kernel hides that
SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
NEEDED = {  # program: the Debian package that has it
    "linux.uml": "user-mode-linux",
    "modprobe": "kmod",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
}
# unshare, and by --kill-child all below it, ends even if we are killed.
DYING = ("setpriv", "--pdeathsig", "KILL", "--")
# Not inherited: they name things of this machine that the other one does not have.
PRIVATE = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS")
PRIORITY = 20  # sched(7): above the engines of runs beside it, which compute for seconds
_POLL_S = 0.03


def find(program: str) -> str | None:
    """A program, in the folders for root's as well, which an ordinary user's PATH may lack."""
    return shutil.which(program, path=SEARCH)


def why_not() -> str:
    """What is missing for such a machine here, '' if nothing is."""
    for program, package in NEEDED.items():
        if find(program) is None:
            return f"'{program}' is missing: apt-get install {package}"
    if _has_amx() and find("cc") is None:
        return "'cc' is missing, which this processor's AMX needs: apt-get install gcc libc6-dev"
    version = kernel()
    if not (MODULES / version / "modules.dep").exists():
        return f"modules of {version} are not in {MODULES}: reinstall the package user-mode-linux"
    trial = subprocess.run(
        [*isolated(), "true"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if trial.returncode != 0:
        return f"namespaces are refused here: {trial.stderr.strip()}"
    return ""


def kernel() -> str:
    """The version of the user-mode kernel, which is also the name of its folder of modules."""
    done = subprocess.run(
        [find("linux.uml") or "linux.uml", "--version"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def isolated() -> list[str]:
    """How to start a program in namespaces that end with it and with whoever started it."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    kinds = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [find("unshare") or "unshare", *user, *kinds, "--"]


# The side that is started: waits, and kills.


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def launch(
    command: Sequence[str], *, memory_mib: int = 1024, timeout_s: float | None = None
) -> int:
    """Starts the isolated side and passes its status on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    ourselves = [sys.executable, str(Path(__file__).resolve()), "--isolated"]
    given = ["--memory", str(memory_mib), "--", *command]
    # A session of its own: Ctrl-C is for us alone, who then end everything.
    process = subprocess.Popen(
        [*DYING, *isolated(), *ourselves, *given], stdin=subprocess.DEVNULL, start_new_session=True
    )
    _prefer(process.pid)
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        print(f"netem-vm: not done after {timeout_s:g} s", file=sys.stderr)
        status = LATE
    finally:
        process.kill()
        process.wait()
    return 128 - status if status < 0 else status


def _prefer(pid: int) -> None:
    """Its one processor is waited for by all that is timed in it: it comes before what runs beside
    it, real-time engines included, where we may say so."""
    with suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(PRIORITY))


# The isolated side: PID 1 of its namespace.


def inside(options: argparse.Namespace) -> int:
    """Boots the machine and shows what the command writes until it is off."""
    mounted = ended(
        [find("mount") or "mount", "-t", "tmpfs", "-o", "mode=0755", "netem-vm", str(WORK)]
    )
    if mounted.returncode != 0:
        print(f"netem-vm: mounting a tmpfs: {mounted.stderr.strip()}", file=sys.stderr)
        return BROKEN
    _prepare(options.command)
    environment = {"PATH": SEARCH, "TMPDIR": str(WORK), "HOME": str(WORK), **_whole_state()}
    with (
        (WORK / "console").open("wb") as console,
        (WORK / "stdout").open("rb") as out,
        (WORK / "stderr").open("rb") as err,
    ):
        machine = subprocess.Popen(
            _boot(options.memory),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env=environment,
        )
        while machine.poll() is None:
            time.sleep(_POLL_S)
            _show(out, sys.stdout.buffer)
            _show(err, sys.stderr.buffer)
        _show(out, sys.stdout.buffer)
        _show(err, sys.stderr.buffer)
    return _status()


def _boot(memory_mib: int) -> list[str]:
    words = ["rootfstype=hostfs", "rootflags=/", "rw", f"mem={memory_mib}M", f"init={WORK}/init"]
    return [
        find("linux.uml") or "linux.uml",
        *words,
        *(f"uml_dir={WORK}/", "con=null", "con0=null", "noreboot", "panic=-1", "quiet"),
    ]


def _has_amx() -> bool:
    return "amx_tile" in Path("/proc/cpuinfo").read_text().split()


def _whole_state() -> dict[str, str]:
    """What the kernel's environment needs on a processor with AMX (wholestate.c)."""
    if not _has_amx():
        return {}
    library, source = WORK / "wholestate.so", Path(__file__).resolve().with_name("wholestate.c")
    argv = [find("cc") or "cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
    subprocess.run(argv, check=True)
    return {"LD_PRELOAD": str(library)}


def _prepare(command: Sequence[str]) -> None:
    """What the machine reads: its init, the command, the modules where modprobe looks for them."""
    modules = WORK / "lib/modules"
    modules.mkdir(parents=True)
    (modules / kernel()).symlink_to(MODULES / kernel())
    environment = {name: value for name, value in os.environ.items() if name not in PRIVATE}
    task = {
        "command": list(command),
        "folder": str(Path.cwd()),
        "environment": {**environment, "PATH": SEARCH, "TSTORM_NETEM_VM": kernel()},
    }
    (WORK / "task.json").write_text(json.dumps(task))
    for name in ("stdout", "stderr"):
        (WORK / name).touch()
    guest = Path(__file__).resolve().with_name("guest.py")
    init = WORK / "init"
    init.write_text(
        f"#!/bin/sh\nexec {shlex.join([sys.executable, '-S', str(guest), str(WORK)])}\n"
    )
    init.chmod(0o755)


def _show(source: BinaryIO, sink: BinaryIO) -> None:
    """Passes on what is new."""
    while piece := source.read(1 << 16):
        sink.write(piece)
    sink.flush()


def _status() -> int:
    try:
        return int((WORK / "status").read_text())
    except (OSError, ValueError):
        pass
    print("netem-vm: the machine ended without ending the command", file=sys.stderr)
    for name in ("failure", "console"):
        if (WORK / name).exists():
            last = (WORK / name).read_text(errors="replace").strip().splitlines()[-20:]
            print("".join(f"  {line}\n" for line in last), end="", file=sys.stderr)
    return BROKEN


def main() -> int:
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what is missing here")
    parser.add_argument("--memory", type=int, default=1024, metavar="MIB")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="kill it after that")
    parser.add_argument("--isolated", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", metavar="COMMAND [ARG…]")
    options = parser.parse_args()
    if options.isolated:
        return inside(options)
    if not options.command and not options.check:
        parser.error("no command")
    reason = why_not()
    if reason:
        print(f"netem-vm: {reason}", file=sys.stderr)
        return MISSING
    if options.check:
        return 0
    return launch(options.command, memory_mib=options.memory, timeout_s=options.timeout)


if __name__ == "__main__":
    sys.exit(main())
