"""`follow`: everything of the run that grows, from where the caller has it, as one stream.

Frames are lines of JSON: `{"file": F, "offset": N, "bytes": L}` and then L raw bytes of a file of
the run directory; `{"plan": DIGEST, "shard": I, "of": N, "bytes": L}` and then L bytes of a shard,
once the plan in force is not the one that the run began with; `{"message": …, "have": N}`, a line
of MESSAGES that ends at byte N of it; `{"progress": …}`, the latest record; `{"beat": true}` once a
second; at last the final message and `{"end": true}`. It reads files only, so it may be killed at
any time, and started again.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from compiler.plan.format import HEADER, PlanError
from compiler.plan.storage import plan_shards
from runtime.errors import RunError
from runtime.job.container_paths import (
    FINAL,
    MESSAGES,
    PROGRESS,
    ContainerPaths,
)
from runtime.json_schema import (
    COUNT,
    Each,
    Shape,
    check,
    parse,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import DRIVER_LOG, EVENTS, LOG_TIMES, LOGS, PLAN, PROBES, SAMPLES

FRAME_BYTES = 1 << 20
BEAT_SECONDS = 1.0
LOOK_SECONDS = 0.2  # between two looks, or ten times as long as a look takes
START_SECONDS = 60.0  # for the Job to be there
_TOP = (EVENTS, SAMPLES, LOG_TIMES, PROBES, DRIVER_LOG)
_REQUEST = Shape({"have": Each(COUNT)})
_ANY_SIZE = 1 << 62
REQUEST_BYTES = 1 << 22  # 5,000 logs take less than 500 kB


def read_request(stream: BinaryIO) -> dict[str, int]:
    """What the caller has, bytes by file: a line. RunError. It is no argument: of these one has at
    most 128 KiB, and all of them are in the address of an exec."""
    line = stream.readline(REQUEST_BYTES + 1)
    if len(line) > REQUEST_BYTES:
        raise RunError(f"the request has more than {REQUEST_BYTES} bytes")
    request = parse(line, "the request")
    check(request, _REQUEST, "the request")
    return dict(request["have"])


class JobFollower:
    def __init__(self, places: ContainerPaths, have: dict[str, int], out: BinaryIO) -> None:
        self._places = places
        self._have = have
        self._out = out
        self._progress = b""
        self._plan = ""  # the digest of the one that the caller has, once it is known
        self._next_beat = 0.0
        began = places.socket.exists()  # else the Job is about to begin
        self._patient_until = 0.0 if began else time.monotonic() + START_SECONDS

    def run(self) -> None:
        """To the end of the run. RunError if the Job has ended without one, or the caller has what
        never was; OSError if nobody reads."""
        while True:
            start = time.monotonic()
            final = self._final()  # before the look: nothing grows once it is there
            moved = self._look()
            if final and not moved:
                have = self._have.get(MESSAGES, 0)
                self._put(b'{"message":%s,"have":%d}\n' % (final.rstrip(), have))
                self._put(b'{"end":true}\n')
                return
            if not moved:
                self._beat()
                time.sleep(max(LOOK_SECONDS, 10 * (time.monotonic() - start)))

    # -- what there is --------------------------------------------------------------------------

    def _final(self) -> bytes:
        """b'' before the end."""
        try:
            return (self._places.home / FINAL).read_bytes()
        except FileNotFoundError:
            return b""

    def _look(self) -> bool:
        """Sends what is new, at most one frame of each file; whether there was anything."""
        moved = self._messages()
        for folder, name, size in self._files():
            moved = self._file(folder, name, size) or moved
        moved = self._longer_plan() or moved
        self._latest()
        return moved

    def _longer_plan(self) -> bool:
        """Sends the plan in force where it is another than before. It is known whole once its
        digest fits, whoever puts the next one in its place meanwhile."""
        digest = _digest_of(self._places.run / PLAN)
        self._plan = self._plan or _digest_of(self._places.plan)
        if digest in ("", self._plan):
            return False
        try:
            found, shards = shards_of(self._places.run / PLAN)
        except (PlanError, OSError):
            return True  # it is being replaced: looks again
        for number, data in enumerate(shards):
            head = {"plan": found, "shard": number, "of": len(shards), "bytes": len(data)}
            self._put(_line(head) + data)
        self._plan = found
        return True

    def _files(self) -> Iterator[tuple[str, str, int]]:
        """Folder ('' or LOGS), name and size of each file that grows, in order."""
        for folder in ("", LOGS):
            try:
                entries = sorted(
                    os.scandir(self._places.run / folder), key=lambda entry: entry.name
                )
            except FileNotFoundError:
                continue  # the run directory is about to be made
            for entry in entries:
                if (folder or entry.name in _TOP) and entry.is_file(follow_symlinks=False):
                    yield folder, entry.name, entry.stat(follow_symlinks=False).st_size

    def _file(self, folder: str, name: str, size: int) -> bool:
        key = f"{folder}/{name}" if folder else name
        have = self._have.get(key, 0)
        _check_have(key, have, size)
        if have == size and key in self._have:
            return False  # but one that is empty is told of once
        data = _read(self._places.run / folder, name, have, min(size - have, FRAME_BYTES))
        self._put(_line({"file": key, "offset": have, "bytes": len(data)}) + data)
        self._have[key] = have + len(data)
        return True

    def _messages(self) -> bool:
        """Whole lines only."""
        try:
            size = (self._places.home / MESSAGES).stat().st_size
        except FileNotFoundError:
            return False
        have = self._have.get(MESSAGES, 0)
        _check_have(MESSAGES, have, size)
        data = _read(self._places.home, MESSAGES, have, size - have)
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            have += len(line)
            self._put(b'{"message":%s,"have":%d}\n' % (line[:-1], have))
        moved = have > self._have.get(MESSAGES, 0)
        self._have[MESSAGES] = have
        return moved

    def _latest(self) -> None:
        try:
            found = (self._places.home / PROGRESS).read_bytes()
        except FileNotFoundError:
            return
        if found != self._progress:
            self._progress = found
            self._put(found)

    # -- what is sent ---------------------------------------------------------------------------

    def _beat(self) -> None:
        """A Job that is gone without a final message will never say one."""
        if time.monotonic() < self._next_beat:
            return
        self._next_beat = time.monotonic() + BEAT_SECONDS
        if is_up(self._places):
            self._patient_until = 0.0  # it has begun
        elif not self._final() and time.monotonic() > self._patient_until:
            raise RunError("the coordinator's Job has ended without a word")
        self._put(b'{"beat":true}\n')

    def _put(self, data: bytes) -> None:
        self._out.write(data)
        self._out.flush()


def _digest_of(place: Path) -> str:
    """Of the plan there; '' where there is none."""
    try:
        return hashlib.sha256((place / HEADER).read_bytes()).hexdigest()
    except OSError:
        return ""


def shards_of(place: Path) -> tuple[str, list[bytes]]:
    """Digest and shards of the plan there. PlanError, OSError, also while it is being replaced."""
    from compiler.plan.reader import read_plan  # not above: most callers need none

    plan = read_plan(place, lazy=True)
    shards = plan_shards.pack({name: plan.raw(name) for name in plan.names})
    return plan.digest, list(shards.values())


def _line(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _read(folder: Path, name: str, offset: int, most: int) -> bytes:
    with HeldDirectory.hold(folder).reading(name, _ANY_SIZE) as file:
        file.seek(offset)
        return file.read(most)


def _check_have(name: str, have: int, size: int) -> None:
    if have > size:
        raise RunError(
            f"the request says that {have} bytes of {name} are there already, and it has {size}",
            "it is of another run: begin with nothing",
        )


def is_up(places: ContainerPaths) -> bool:
    """Whether the Job listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(places.socket))
        except OSError:
            return False
    return True
