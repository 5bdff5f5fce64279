"""Which runs there are on this machine: one small file a run, so that a crash can be found.

Files are in $XDG_STATE_HOME/tstorm/active (or ~/.local/state/…); control sockets in
$XDG_RUNTIME_DIR/tstorm (or /tmp/tstorm-UID). Both directories are the user's own, mode 0700.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from runtime.errors import RunError
from runtime.procs import Process, alive

TEMPORARY = Path("/tmp")
MAX_BASE = 64  # longest $XDG_RUNTIME_DIR for which a socket's path fits
STALE_SECONDS = 60.0  # a socket is not listened on for a moment after it is made


@dataclass(frozen=True, slots=True)
class Record:
    run_id: str
    directory: str
    socket: str
    tstorm: Process  # the process that started the run
    keeper: Process | None  # the process whose death ends everything in the run; None: not yet

    @property
    def is_live(self) -> bool:
        return alive(self.tstorm) or (self.keeper is not None and alive(self.keeper))


def _private(path: Path) -> Path:
    """Makes the directory, or checks that nobody else can put things into it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise RunError(
            f"{path} belongs to someone else or is open to others",
            "remove it, or point XDG_RUNTIME_DIR and XDG_STATE_HOME to directories of your own",
        )
    return path


def _temporary(name: str = "") -> Path:
    path = TEMPORARY / f"tstorm-{os.geteuid()}" / name
    try:
        _private(path.parent if name else path)
        return _private(path)
    except (
        OSError
    ) as error:  # /tmp is everybody's: this may be a file, or a link that leads nowhere
        raise RunError(
            f"cannot make {path}: {error.strerror}",
            "remove what is in the way, or point XDG_RUNTIME_DIR and XDG_STATE_HOME to"
            " directories of your own",
        ) from error


def _base(variable: str) -> str:
    """A directory from the environment, '' if unset or relative, which means unset (XDG)."""
    value = os.environ.get(variable, "")
    return value if Path(value).is_absolute() else ""


def directory() -> Path:
    """Where the records are. A user without a home has them in /tmp."""
    try:
        base = Path(_base("XDG_STATE_HOME") or Path("~/.local/state").expanduser())
        return _private(base / "tstorm" / "active")
    except (OSError, RuntimeError):  # the latter: no home is known
        return _temporary("active")


def scratch_directory() -> Path:
    """Where temporary folders are (runtime.scratch), beside the records."""
    return _private(directory().parent / "scratch")


def _sockets() -> Path:
    base = _base("XDG_RUNTIME_DIR")
    if base and len(base) < MAX_BASE:
        try:
            return _private(Path(base) / "tstorm")
        except OSError:
            pass  # set but not there, as under su: use the other place
    return _temporary()


def socket_path(run_id: str) -> Path:
    """Short whatever the run is called: a socket's path has at most 107 bytes."""
    return _sockets() / (hashlib.sha256(run_id.encode()).hexdigest()[:16] + ".sock")


def remove_stale_sockets() -> None:
    """Sockets that no record names and nobody listens on: their records were lost."""
    known = {record.socket for record in records()}
    for path in _sockets().glob("*.sock"):
        try:
            old = time.time() - path.lstat().st_mtime > STALE_SECONDS
            if old and str(path) not in known and not _listens(path):
                path.unlink()
        except FileNotFoundError:
            continue  # someone else did it


def remove_stale_drafts() -> None:
    """Records that their writer, killed, did not put in place."""
    for path in directory().glob(".*"):
        try:
            if time.time() - path.lstat().st_mtime > STALE_SECONDS:
                path.unlink()
        except FileNotFoundError:
            continue  # someone else did it


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # not ours to judge
    return True


def _path(run_id: str) -> Path:
    return directory() / f"{run_id}.json"


def _encode(record: Record) -> bytes:
    return json.dumps(asdict(record), sort_keys=True).encode()


def _decode(data: bytes) -> Record:
    values: dict[str, Any] = json.loads(data)
    keeper = values.pop("keeper")
    return Record(
        **{**values, "tstorm": Process(**values["tstorm"])},
        keeper=Process(**keeper) if keeper else None,
    )


def _draft(record: Record) -> Path:
    path = directory() / f".{record.run_id}.{os.getpid()}"
    try:
        path.write_bytes(_encode(record))
    except OSError as error:
        raise RunError(f"cannot record the run in {path.parent}: {error.strerror}") from error
    return path


def claim(record: Record) -> bool:
    """Makes the record; False if a run of this name is registered already."""
    temporary = _draft(record)
    try:
        os.link(temporary, _path(record.run_id))  # whole or not at all, never over another's
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    return True


def set_keeper(record: Record, keeper: Process) -> Record:
    updated = replace(record, keeper=keeper)
    temporary = _draft(updated)
    temporary.replace(_path(record.run_id))
    return updated


def remove(record: Record) -> None:
    Path(record.socket).unlink(missing_ok=True)
    _path(record.run_id).unlink(missing_ok=True)


def records() -> Iterator[Record]:
    """All of this user, by name. A file that is no record is passed over (it is not ours)."""
    for path in sorted(directory().glob("*.json")):
        try:
            yield _decode(path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError):
            continue


def find(run: str | None) -> Record:
    """A live run by id or run directory; with None the only one. RunError says what there is."""
    live = [record for record in records() if record.is_live]
    names = ", ".join(record.run_id for record in live) or "none"
    if run is None:
        if len(live) == 1:
            return live[0]
        what = "no run is going on" if not live else "more than one run is going on"
        raise RunError(what, f"name one of: {names}" if live else "start one with `tstorm run`")
    wanted = Path(os.path.realpath(run))
    for record in live:
        if record.run_id == run or Path(record.directory) == wanted:
            return record
    remedy = f"there are: {names}" if live else "no run at all is"
    raise RunError(f"no run {run!r} is going on", remedy)
