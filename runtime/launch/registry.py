"""Which runs there are: one small file a run, so that a crash can be found.

A record says where its run's process numbers mean something (runtime.system.process_scope), and is
locked as long as the process that made it lives (runtime.system.locks): homes are shared by
machines and containers. Only a run that is over for certain is somebody else's to remove.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import secrets
import shlex
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from runtime.errors import RunError, filesystem_remedy
from runtime.launch import userdirs
from runtime.rundir import rundir
from runtime.rundir.held_directory import give_name, new_file, write_all
from runtime.rundir.runfiles import MANIFEST
from runtime.system import locks, procs
from runtime.system.process_scope import ProcessScope, here
from runtime.system.procs import Process

VERSION = 2  # raised when a field comes, goes or changes its meaning; older ones are read
REMOVE_SECONDS = 2.0
STALE_SECONDS = 60.0  # a socket is not listened on for a moment after it is made
MAX_RECORD_BYTES = 1 << 20
GUEST = ".guest"
_ELSEWHERE = (
    "end it there; if that machine or container no longer exists: tstorm destroy {} --forget"
)


@dataclass(frozen=True, slots=True)
class RunRecord:
    run_id: str
    directory: str
    socket: str
    tstorm: Process  # the process that started the run
    keeper: Process | None  # the process whose death ends everything in the run; None: not yet
    place: ProcessScope = field(default_factory=here)
    locked: bool = False  # with a lock that everybody sees who sees the record

    @property
    def is_live(self) -> bool:
        """Whether it goes on here."""
        return self.place.is_here and (
            procs.alive(self.tstorm) or (self.keeper is not None and procs.alive(self.keeper))
        )

    @property
    def is_over(self) -> bool:
        """Whether it has ended for certain, but for processes that are on their way out: the
        process that started it is gone, or was there before this machine was started."""
        if self.place.is_here:
            return not procs.alive(self.tstorm) and lock_state(self) != locks.HELD
        return self.locked and self.place.is_another_boot and lock_state(self) == locks.FREE

    @property
    def is_elsewhere(self) -> bool:
        """Whether nothing can be known of it here."""
        return not self.is_live and not self.is_over

    def not_here(self) -> RunError:
        return RunError(f"run {self.run_id} is {self.place.text()}", _ELSEWHERE.format(self.run_id))


class RunClaim:
    """A record of this process' own: locked as long as it lives."""

    def __init__(self, record: RunRecord, lock: int) -> None:
        self.record = record
        self._lock = lock

    def set_keeper(self, keeper: Process) -> None:
        """RunError if the file system refuses."""
        with _recording():
            record, draft, lock = _draft(replace(self.record, keeper=keeper))
            draft.replace(_path(record.run_id))
        os.close(self._lock)
        self.record, self._lock = record, lock

    def remove(self) -> None:
        """Also the socket. Somebody may have been faster."""
        try:
            _unlink(self.record, self._lock)
        finally:
            os.close(self._lock)


def claim(run_id: str, directory: str) -> RunClaim | None:
    """Makes a run's record; None if a run of this name is registered already. RunError if the file
    system refuses."""
    myself = procs.identify(os.getpid())
    assert myself is not None  # here() has seen that /proc shows us
    with _recording():
        return register(RunRecord(run_id, directory, str(socket_path(run_id)), myself, None))


@contextmanager
def _recording() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot record the run in {userdirs.records()}: {error.strerror}",
            filesystem_remedy(error)
            or "point XDG_STATE_HOME to a directory of your own with free space",
        ) from error


def register(record: RunRecord) -> RunClaim | None:
    """None if its name is taken. OSError."""
    record, draft, lock = _draft(record)
    try:
        os.link(draft, _path(record.run_id))  # whole or not at all, never over another's
    except FileExistsError:
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    finally:
        draft.unlink()
    return RunClaim(record, lock)


def remove(record: RunRecord) -> None:
    """Of a run that is over, and its socket. RunError if its lock is not let go of."""
    deadline = time.monotonic() + REMOVE_SECONDS
    with _opened(record, os.O_RDWR) as descriptor:
        if descriptor is None:
            return
        while locks.take(descriptor) == locks.HELD:  # by somebody who removes it now, we hope
            if time.monotonic() > deadline:
                raise RunError(
                    f"another process holds the record of run {record.run_id}", "try again"
                )
            time.sleep(0.01)
        _unlink(record, descriptor)


def forget(record: RunRecord) -> None:
    """Removes a record of elsewhere, and nothing that it names: here that may be something else.

    RunError if its lock is held, that is, if the run goes on.
    """
    with _opened(record, os.O_RDWR) as descriptor:
        if descriptor is None:
            return
        if locks.take(descriptor) == locks.HELD or not _unlink(record, descriptor, sockets=False):
            raise RunError(
                f"run {record.run_id} goes on, {record.place.text()}: its record is locked",
                "end it there",
            )


def records() -> Iterator[RunRecord]:
    """All of this user, by name. A file that is no record is passed over (it is not ours)."""
    for path in sorted(userdirs.records().glob("*.json")):
        try:
            with path.open("rb") as file:
                yield _decode(file.read(MAX_RECORD_BYTES), path.stem)
        except (OSError, ValueError, KeyError, TypeError):
            continue


def find(run: str | None) -> RunRecord:
    """A live run by id or run directory; with None the only one. RunError says what there is."""
    known = list(records())
    live = [record for record in known if record.is_live]
    if run is not None:
        for record in named(run, known):
            if record.is_live:
                return record
            if record.is_elsewhere:
                raise record.not_here()
        raise _not_going_on(run, _what_there_is(known, live))
    if len(live) == 1:
        return live[0]
    what = "no run is going on" if not live else "more than one run is going on"
    raise RunError(what, _what_there_is(known, live) or "start one with `tstorm run`")


def is_elsewhere(run: str) -> bool:
    """Whether a run of this id or directory is on another machine, or in another container."""
    return any(one.is_elsewhere for one in named(run, list(records())))


def _not_going_on(run: str, others: str) -> RunError:
    """Why nothing can be asked of it; `others`: what goes on instead."""
    if os.path.lexists(Path(run) / MANIFEST):
        outcome = rundir.recorded(run).manifest().get("outcome")
        owner = other_owner(run)
        if owner and not outcome:
            return RunError(
                f"{run} is a run of {owner}: whether it goes on only {owner} can see",
                f"sudo -u {owner} tstorm inspect {shlex.quote(run)}",
            )
        hint = f"tstorm inspect {shlex.quote(run)} says what came of it"
        if outcome is None:
            hint += ", and with --backend k8s what one in a cluster does"
        end = f"has ended ({outcome})" if outcome else "does not go on here"
        return RunError(f"the run in {run} {end}", hint)
    if os.path.lexists(run):
        return RunError(f"{run} is not the directory of a run: no {MANIFEST}", others)
    if os.sep in run:
        return RunError(f"there is no folder {run}", others)
    return RunError(f"no run {run!r} is going on, and there is no folder {run!r}", others)


def other_owner(run: str) -> str:
    """Whose the run in this directory is, if it is another user's."""
    try:
        owner = (Path(run) / MANIFEST).stat().st_uid
        name = pwd.getpwuid(owner).pw_name
    except OSError:
        return ""
    except KeyError:
        name = f"#{owner}"
    return "" if owner == os.geteuid() else name


def named(run: str, known: list[RunRecord]) -> list[RunRecord]:
    """Those of this id or run directory. Here a directory may be another one than elsewhere, so
    what is here comes first."""
    wanted = str(Path(os.path.realpath(run)))
    found = [one for one in known if run == one.run_id or wanted == one.directory]
    return sorted(found, key=lambda one: one.is_elsewhere)


def _what_there_is(known: list[RunRecord], live: list[RunRecord]) -> str:
    names = ", ".join(record.run_id for record in live)
    others = [f"{one.run_id} is {one.place.text()}" for one in known if one.is_elsewhere]
    here_text = f"name one of: {names}" if names else ""
    return "; ".join(filter(None, (here_text, *others)))


def lock_state(record: RunRecord) -> str:
    """Of a record as it is now. FREE counts only where everybody sees its locks."""
    try:
        with _opened(record, os.O_RDONLY) as descriptor:
            if descriptor is None:
                return locks.UNKNOWN
            state = locks.state(descriptor)
            if not _is_file_of(record, descriptor):
                return locks.UNKNOWN  # somebody writes or removes it at this moment
            certain = state == locks.HELD or locks.seen_by_all(descriptor)
            return state if certain else locks.UNKNOWN
    except OSError:
        return locks.UNKNOWN


# -- sockets and drafts -------------------------------------------------------------------------


def socket_path(run_id: str) -> Path:
    """Short whatever the run is called: a socket's path has at most 107 bytes. Names are taken per
    folder of records, of which one user may have several."""
    name = f"{userdirs.records()}/{run_id}"
    return userdirs.sockets() / (hashlib.sha256(name.encode()).hexdigest()[:16] + ".sock")


def guest_folder(run_socket: str) -> Path:
    """Where a run in virtual time keeps what its guest needs. It goes with the socket."""
    return Path(run_socket).with_suffix(GUEST)


def remove_stale_sockets() -> None:
    """Sockets that no record names and nobody listens on, with what belongs to them: their records
    were lost."""
    known = {record.socket for record in records()}
    folder = userdirs.sockets()
    for path in (*folder.glob("*.sock"), *folder.glob(f"*{GUEST}")):
        socket_of = path.with_suffix(".sock")
        try:
            old = time.time() - path.lstat().st_mtime > STALE_SECONDS
            if old and str(socket_of) not in known and not _listens(socket_of):
                _remove_socket(socket_of)
        except FileNotFoundError:
            continue  # someone else did it


def _remove_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
    shutil.rmtree(guest_folder(str(path)), ignore_errors=True)


def remove_stale_drafts() -> None:
    """Records that their writer, killed, did not put in place. One with content was locked before
    it had any: where locks are seen by all, a free one is nobody's."""
    for path in userdirs.records().glob(".*"):
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                state = locks.state(file.fileno())
                left = state == locks.FREE and locks.seen_by_all(file.fileno()) and found.st_size
                old = time.time() - found.st_mtime > STALE_SECONDS
                if left or (old and state != locks.HELD):
                    path.unlink()
        except OSError:
            continue  # someone else did it


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True  # not ours to judge
    return True


# -- files ----------------------------------------------------------------------------------------


def _path(run_id: str) -> Path:
    return userdirs.records() / f"{run_id}.json"


def _encode(record: RunRecord) -> bytes:
    return json.dumps({"version": VERSION, **asdict(record)}, sort_keys=True).encode()


def _decode(data: bytes, name: str) -> RunRecord:
    """One of another release is where nobody here knows of, whatever else it says."""
    values: dict[str, Any] = json.loads(data)
    if values.pop("version", 1) != VERSION:
        directory, path = str(values.get("directory", "")), str(values.get("socket", ""))
        return RunRecord(name, directory, path, Process(0, 0), None, ProcessScope())
    keeper = values.pop("keeper")
    return RunRecord(
        **{
            **values,
            "tstorm": Process(**values["tstorm"]),
            "place": ProcessScope(**values["place"]),
            "keeper": Process(**keeper) if keeper else None,
        }
    )


def _draft(record: RunRecord) -> tuple[RunRecord, Path, int]:
    """The record, its file under another name, and the descriptor that holds its lock. The file
    gets a name when it is locked and whole, where the file system has files without one."""
    path = userdirs.records() / f".{record.run_id}.{secrets.token_hex(4)}"
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor, nameless = new_file(path.name, 0o600, folder)
        try:
            record = replace(record, locked=_lock(descriptor))
            write_all(descriptor, _encode(record))
            if nameless:
                give_name(descriptor, path.name, folder)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
    finally:
        os.close(folder)
    return record, path, descriptor


def _lock(descriptor: int) -> bool:
    return locks.take(descriptor) == locks.FREE and locks.seen_by_all(descriptor)


@contextmanager
def _opened(record: RunRecord, how: int) -> Iterator[int | None]:
    """A descriptor of its file, None if there is none."""
    try:
        descriptor = os.open(_path(record.run_id), how | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_file_of(record: RunRecord, descriptor: int) -> bool:
    """Not if the name is another file's by now: a run's that came after it."""
    try:
        return os.path.samestat(_path(record.run_id).stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _unlink(record: RunRecord, descriptor: int, *, sockets: bool = True) -> bool:
    """Whether the file was still there to be removed."""
    if not _is_file_of(record, descriptor):
        return False
    if sockets:
        _remove_socket(Path(record.socket))
    _path(record.run_id).unlink(missing_ok=True)
    return True
