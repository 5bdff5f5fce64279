"""What the runtime raises: a message for the user, what to do, and the exit code it means."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Iterable, Sequence

    from compiler.plan.rules.datapath_fit import Misfit


class RunError(Exception):
    """A run cannot start, go on, or be found. `remedy` says what to do ('' when nothing helps)."""

    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class MachineError(RunError):
    """The machine refuses something a run needs (user namespaces, devices, a missing program)."""

    exit_code = 3


class ProgramsError(RunError):
    """A program, of this instance, does not do what is right, and that ends the run."""

    exit_code = 5

    def __init__(self, message: str, instance: str) -> None:
        super().__init__(message)
        self.instance = instance


class UnfitError(RunError):
    """The datapath that was chosen cannot do what the plan asks of it."""

    def __init__(self, misfit: Misfit, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.misfit = misfit


def unfit(message: str, remedy: str, misfit: Misfit | None) -> RunError:
    """An UnfitError where something is to blame."""
    return UnfitError(misfit, message, remedy) if misfit else RunError(message, remedy)


def no_instance(name: str, known: Sequence[str], machines: Iterable[str] = ()) -> RunError:
    """The run has no instance of this name: it may be the one of a service, or of a node with
    several of the `machines`."""
    of_node = [one for one in machines if one.rpartition(".")[0] == name]
    if of_node:
        hint = f"name one of its machines, such as {of_node[0]}, or a part"
        return RunError(f"{name!r} is a node, not a machine or an instance", hint)
    own = [one for one in known if one.rpartition(".")[0] == name]
    if own:
        hint = f"name one of its instances, such as {own[0]}" if own[1:] else f"write {own[0]}"
        return RunError(f"{name!r} is a service, not an instance", hint)
    parts = [one for one in known if one.startswith(f"{name}.")]
    if parts:
        hint = f"name one of its parts, such as {', '.join(parts[:5])}"
        return RunError(f"{name!r} is a machine, not an instance", hint)
    return RunError(f"the run has no instance {name!r}", f"there are: {', '.join(known[:20])}")


def fail(future: Future[Any], error: BaseException) -> None:
    """Ends a future with an error, unless it has ended. Who waits for it sees that; nobody need."""
    if not future.done():
        future.set_exception(error)
        future.exception()


def unwritten(error: OSError) -> RunError:
    """What cannot be written, why, and what helps."""
    what = f"cannot write {error.filename}" if error.filename is not None else "cannot write"
    return RunError(f"{what}: {error.strerror or error}", filesystem_remedy(error))


def unread(error: OSError) -> RunError:
    """What cannot be read, and why."""
    what = f"cannot read {error.filename}" if error.filename is not None else "cannot read"
    return RunError(f"{what}: {error.strerror or error}", filesystem_remedy(error))


def unexpected(error: OSError) -> RunError:
    """A system call that failed where nobody knows better what it was for."""
    place = f"{error.filename}: " if error.filename is not None else ""
    return RunError(f"{place}{error.strerror or error}", filesystem_remedy(error))


def filesystem_remedy(error: OSError) -> str:
    """What helps when the file system refuses to hold something."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free space, or inodes (df -h, df -i, quota)"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files: ulimit -n"
    return umask_fault() if error.errno in (errno.EACCES, errno.EPERM) else ""


def umask_fault() -> str:
    """What is wrong with a umask that keeps us from using what we make, '' for any other."""
    umask = os.umask(0o077)
    os.umask(umask)
    taken = f"the umask {umask:03o} takes your own rights away: umask 022"
    return taken if umask & 0o700 else ""
