"""A pipe from an engine to who looks on. It has a name, in a folder that the engine was given, only
until both ends are open.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from runtime.errors import unwritten
from runtime.rundir.held_directory import HeldDirectory

MOST_PLACES = 16  # of one capture of an engine
OFFERED = "/offered"  # ends an interface's name: before the queue
LIVE_BYTES = 16 << 20  # room in the engine for packets that are on their way to pipes
_PIPE_BYTES = 1 << 20  # room in a pipe, as far as the kernel grants it


def arguments(folder: HeldDirectory, *, live: bool) -> Sequence[str]:
    """For pktd's command line; the descriptor is inherited. `live`: only for pipes."""
    room = ("--capture-bytes", str(LIVE_BYTES)) if live else ()
    return ("--captures", str(folder.descriptor), *room)


async def open_pipe(folder: HeldDirectory, begin: Callable[[str], Awaitable[object]]) -> int:
    """`begin` has pktd write to the pipe of that name what passes, until its reader goes. Returns
    that end. RunError."""
    name = f"capture-{secrets.token_hex(8)}"
    try:
        os.mkfifo(name, 0o600, dir_fd=folder.descriptor)
        try:
            how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            reader = os.open(name, how, dir_fd=folder.descriptor)
            with suppress(OSError):  # more than the user may have: it keeps what it has
                fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            try:
                await begin(name)
            except BaseException:
                os.close(reader)
                raise
        finally:
            os.unlink(name, dir_fd=folder.descriptor)
    except OSError as error:
        raise unwritten(error) from error
    os.set_blocking(reader, True)
    return reader
