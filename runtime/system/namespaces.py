"""Starting programs in namespaces of their own (tstorm-ns sandbox), entering the network of a
process, and what to do when the kernel refuses namespaces to a user."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from runtime.errors import RunError
from runtime.system import process_limits, userids

_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with"
        " `userns,` for tstorm-ns",
    ),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("user/max_net_namespaces", "0", "sysctl user.max_net_namespaces=10000"),
    ("user/max_pid_namespaces", "0", "sysctl user.max_pid_namespaces=10000"),
)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_HOSTS = Path("/etc/hosts")
Value = TypeVar("Value")
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def sandbox(keeper: str | Path, *more: str) -> list[str]:
    """What stands before a program's command line so that it has its own namespaces, which end with
    this process; an ordinary user has them in a user namespace, with the numbers of users that
    runtime.system.userids finds. `keeper`: tstorm-ns."""
    userns = ("--userns", *userids.sandbox_arguments()) if os.geteuid() != 0 else ()
    return [str(keeper), "sandbox", "--parent", str(os.getpid()), *userns, *more, "--"]


def enter_network(pidfd: int, *, user: bool = False) -> None:
    """Brings this thread into the network namespace of a process, or into the one that this is a
    descriptor of, as setns(2) does. `user`: and into its user namespace, in which it may do so; a
    process of one thread can. OSError."""
    spaces = _CLONE_NEWNET | (_CLONE_NEWUSER if user else 0)
    _changed("setns", pidfd, spaces)


def enter_files(pidfd: int) -> None:
    """Lets this thread see files as that process does. OSError."""
    _changed("unshare", _CLONE_FS)  # the kernel lets nobody else's root change with it
    _changed("setns", pidfd, _CLONE_NEWNS)


def new_network() -> int:
    """Brings this thread into a network namespace of its own, and returns a descriptor of that,
    with whose last user it ends. OSError."""
    _changed("unshare", _CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _changed(call: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library[call](*map(ctypes.c_int, arguments)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def in_thread(action: Callable[[], Value]) -> Value:
    """Runs it in a thread that ends then: one that has changed namespaces serves nobody else."""
    results: list[Value] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="namespaces")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def probe(
    keeper: Path, argv: list[str], environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program to its end in namespaces that are thrown away. RunError if it does not start
    or takes longer; the message says so of "it"."""
    try:
        return subprocess.run(
            [*sandbox(keeper), *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"it took longer than {seconds:.0f} s") from None
    except OSError as error:
        remedy = process_limits.remedy(error.errno or 0)
        raise RunError(f"it cannot be started: {error.strerror}", remedy) from error


def last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last line of a probe's stderr, or how it ended."""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"it ended with status {done.returncode}"


def _value(name: str, root: Path) -> str:
    try:
        return (root / name).read_text().strip()
    except OSError:
        return ""  # this kernel has no such switch


def refusal_remedy(sysctls: Path = Path("/proc/sys")) -> str:
    """What to change, from what the kernel's switches say now."""
    if not _HOSTS.exists():
        return "create /etc/hosts, which may be empty: a run puts its own over it"
    found = [f"as root: {fix}" for name, bad, fix in _SWITCHES if _value(name, sysctls) == bad]
    if found:
        return "; ".join(found)
    if any(Path(mark).exists() for mark in _CONTAINER_MARKS):
        return (
            "this is a container: start it with --cap-add SYS_ADMIN --cap-add NET_ADMIN and run as"
            " root, or with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
            " and run as an ordinary user"
        )
    if os.geteuid() != 0:
        return "a seccomp filter or security module forbids it; run as root, or ask `tstorm doctor`"
    return "even root may not: a seccomp filter, or missing CAP_SYS_ADMIN; ask `tstorm doctor`"
