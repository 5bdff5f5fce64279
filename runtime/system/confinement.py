"""A program that nobody here has written, run to its end without rights: it sees some files, which
it cannot write, and nothing else of the machine (tcal_c/ns/confine.c).

What it may use is bounded: memory, time of a processor, time by the clock, and what it says. Where
the kernel refuses any of this, the program does not run.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError
from runtime.system import namespaces, process_limits

MEMORY_MIB = 512
CPU_SECONDS = 10
SECONDS = 30.0  # by the clock, on a machine that has other work
MAX_OUTPUT = 4 << 20
_KEPT_WORDS = 4096
_CHUNK = 1 << 16
_REFUSED = (125, 126, 127)  # tstorm-ns, and the program that it cannot start: it says why
_KEEPER = "tstorm-ns: "
_ENDED_BY_CPU = (128 + 9, 128 + 24)  # SIGKILL, which nobody else sends, and SIGXCPU


@dataclass(frozen=True, slots=True)
class Confined:
    """What a confined program said on standard output, and why it did not get to its end, if so."""

    output: bytes
    stopped: str = ""


def without_nested(paths: Iterable[str]) -> list[str]:
    """Without what lies in another of them."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path.startswith(f"{one.rstrip('/')}/") for one in kept):
            kept.append(path)
    return kept


def run_confined(keeper: Path, argv: Sequence[str], shown: Iterable[str]) -> Confined:
    """`shown`: absolute paths that exist, a link as itself. RunError where this machine cannot
    confine a program."""
    userns = ["--userns"] if os.geteuid() != 0 else []
    asked = [str(keeper), "sandbox", "--parent", str(os.getpid()), *userns]
    asked += ["--memory", str(MEMORY_MIB), "--cpu", str(CPU_SECONDS)]
    for path in without_nested(shown):
        asked += ["--show", path]
    asked += ["--", *argv]
    try:
        process = subprocess.Popen(
            asked,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
        )
    except OSError as error:
        remedy = process_limits.remedy(error.errno or 0)
        raise RunError(f"it cannot be started: {error.strerror}", remedy) from error
    with process:
        try:
            said, words, stopped = _heard(process)
        finally:
            process.kill()  # its namespaces end with it
    last = (words.decode(errors="replace").strip().splitlines() or [""])[-1]
    refused = process.returncode in _REFUSED and last.startswith(_KEEPER)
    if refused and not said and not stopped:
        raise RunError(last.removeprefix(_KEEPER), namespaces.refusal_remedy())
    if not stopped and process.returncode in _ENDED_BY_CPU:
        stopped = f"it took more than {CPU_SECONDS} s of a processor"
    if not stopped and process.returncode != 0:
        stopped = f"it ended with status {process.returncode}"
    return Confined(said, stopped)


def _heard(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes, str]:
    """What it says until it ends, the last of its words on standard error, and why not to wait any
    longer."""
    assert process.stdout
    assert process.stderr
    said, words = bytearray(), bytearray()
    deadline = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as waiting:
        for stream, kept in ((process.stdout, said), (process.stderr, words)):
            waiting.register(stream, selectors.EVENT_READ, kept)
        while waiting.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(said), bytes(words), f"it took longer than {SECONDS:.0f} s"
            for key, _ in waiting.select(left):
                data = os.read(key.fd, _CHUNK)
                if not data:
                    waiting.unregister(key.fileobj)
                key.data.extend(data)
            del words[:-_KEPT_WORDS]
            if len(said) > MAX_OUTPUT:
                return bytes(said), bytes(words), f"it says more than {MAX_OUTPUT >> 20} MiB"
    process.wait()
    return bytes(said), bytes(words), ""
