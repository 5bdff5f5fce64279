"""`python -m tstorm.testing PARENT run|exec …`: a command that ends with the process that wants it.

PARENT is that process. When it is gone, however it ended, this one is killed, and with it the run
(docs/run.md): so nothing outlives a test that was killed.

    run WORD…                         as `tstorm run WORD…`
    exec REFUSAL RUN INSTANCE WORD…   as `tstorm exec`, but what keeps the command from being run is
                                      written to the descriptor REFUSAL, since an exit code could be
                                      the command's own
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Sequence

CANNOT_ENTER = 125


def _end_with(parent: int) -> None:
    """From now on. A thread of its own waits; pidfds of ended processes are readable."""
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        _die()
    if os.getppid() != parent:  # it ended before, and the number is somebody else's
        _die()
    threading.Thread(target=_watch, args=(descriptor,), daemon=True).start()


def _watch(descriptor: int) -> None:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll()
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _execute(refusal: int, run: str, instance: str, argv: Sequence[str]) -> int:
    from runtime.errors import RunError
    from runtime.launch.enter import exec_argv

    os.set_inheritable(refusal, False)
    try:
        return exec_argv(run, instance, argv)
    except RunError as error:
        os.write(refusal, str(error).encode("utf-8", "backslashreplace"))
        return CANNOT_ENTER


def main() -> int:
    parent, verb, *words = sys.argv[1:]
    _end_with(int(parent))
    if verb == "exec":
        refusal, run, instance, *argv = words
        return _execute(int(refusal), run, instance, argv)
    from tstorm.__main__ import main as command

    sys.argv[1:] = [verb, *words]
    return command()


if __name__ == "__main__":
    sys.exit(main())
