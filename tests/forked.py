"""Programs of this project as processes that are copies of the test's own.

To start Python and import what the command is made of takes 0.3 to 0.5 s of a processor, most of
what a short run costs, and whoever tests has imported all of that. So the process forks and goes on
as the program: with arguments, environment, folder, streams and signals as if it had been started,
and nothing else of the test's. What it starts in turn is started. That the command starts from
nothing, and in any surroundings, is for those to assert who start it (tests/pages, tests/cli,
tests/runtime/test_surroundings.py).
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import functools
import gc
import importlib
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from tdl.parser import parse_partial

Main = Callable[[], object]  # its result is the exit code

DEADLINE_SECONDS = 400.0  # only what hangs takes so long
TSTORM = "tstorm.__main__"  # a module with a function `main`
# What commands import when they need it: once here, and not in each process.
_LATER = (
    *("tstorm.commands.run", "tstorm.commands.replay", "tstorm.commands.inspect"),
    *("compiler.pipeline", "compiler.feasibility.warnings", "tstorm.campaign.carryout"),
    *("runtime.launch.launch", "runtime.page.page_file", "runtime.doctor.checks"),
)
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 4, 24  # linux/prctl.h
_CAPABILITIES = 64


def popen(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    user: int | None = None,
    limits: Callable[[], None] = lambda: None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """As subprocess.Popen of `python -m module argument…`. `user`: becomes this one, who is in the
    group of the same number and has no rights of root's; from root alone. `limits` sets those of
    the process, before anything of the program happens."""
    main = _imported(module)
    environment = dict(environment)
    argv = [f"forked {module}", *arguments]
    kept = {0, 1, 2, *options.get("pass_fds", ())}

    def goes_on() -> NoReturn:
        _go_on(main, argv, environment, kept, user, limits)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's threads do nothing of this
        return subprocess.Popen(
            argv,
            env=environment,
            preexec_fn=goes_on,  # noqa: PLW1509 - never returns
            **options,
        )


def run(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout: float = DEADLINE_SECONDS,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """To its end, as subprocess.run does with text that is captured."""
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with popen(module, arguments, environment, **{**said, **options}) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@functools.cache
def _imported(module: str) -> Main:
    for name in _LATER:
        importlib.import_module(name)
    parse_partial("")  # makes the parser's tables
    main: Main = importlib.import_module(module).main
    return main


def _go_on(
    main: Main,
    argv: Sequence[str],
    environment: Mapping[str, str],
    kept: set[int],
    user: int | None,
    limits: Callable[[], None],
) -> NoReturn:
    """The rest of the process. It ends without what the test would do at its own end."""
    code: object = 1
    try:
        gc.freeze()  # what was there stays where it is, and shared
        _forget(kept)
        if user is not None:
            _become(user)
        limits()
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = list(argv)
        sys.orig_argv = [sys.executable, *argv]
        _open_streams(unbuffered=bool(environment.get("PYTHONUNBUFFERED")))
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # told, as Python does
        traceback.print_exc()
    finally:
        _end(code)


def _forget(kept: set[int]) -> None:
    """What the test has set for its own process."""
    faulthandler.disable()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # of the listing itself
    asyncio.set_event_loop_policy(None)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    tempfile.tempdir = None


def _become(user: int) -> None:
    """As setpriv(1) with --bounding-set=-all. Whoever has changed users may not be looked at in
    /proc until this is said; exec would say so."""
    libc = ctypes.CDLL(None)
    for capability in range(_CAPABILITIES):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def _open_streams(*, unbuffered: bool) -> None:
    def opened(number: int, mode: str) -> io.TextIOWrapper:
        raw = open(number, mode, buffering=-1, closefd=False)  # noqa: SIM115
        errors = "backslashreplace" if number == 2 else "surrogateescape"
        lines = number == 2 or raw.isatty()
        return io.TextIOWrapper(
            raw, encoding="utf-8", errors=errors, line_buffering=lines, write_through=unbuffered
        )

    sys.stdin = sys.__stdin__ = opened(0, "rb")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = opened(1, "wb")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = opened(2, "wb")  # type: ignore[misc]


def _end(code: object) -> NoReturn:
    if isinstance(code, str):
        print(code, file=sys.stderr)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # its reader is gone
    os._exit(code if isinstance(code, int) else int(code is not None))
