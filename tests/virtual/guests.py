"""A bare guest for tests of the kernel: a shell script is all that runs in it."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runtime.virtual.clockpage import ClockPage

PROGRAMS = Path(__file__).parent / "programs"

_INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t tmpfs run /run; mount -t devtmpfs dev /dev
( {script} ) >{folder}/out 2>&1 </dev/null
halt -f
"""


@dataclass(frozen=True)
class Guest:
    process: subprocess.Popen[bytes]
    page: ClockPage
    folder: Path

    def end(self) -> str:
        """Waits for its end; what its script said."""
        console = self.folder / "console"
        assert self.process.wait(60) == 0, console.read_text(errors="replace")
        return self.said()

    def said(self) -> str:
        return (self.folder / "out").read_text()

    def processes(self) -> dict[int, str]:
        """What is alive of it on the host, with names: all are in its session."""
        return dict(session(self.process.pid))


def compiled(name: str, folder: Path, *words: str) -> Path:
    """A program of programs/."""
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    subprocess.run(["cc", "-O1", "-o", str(program), str(source), *words], check=True)
    return program


@contextmanager
def guest(
    kernel: Sequence[str],
    script: str,
    folder: Path,
    limit_ns: int | None = None,
    line: int | None = None,
    page: ClockPage | None = None,
) -> Iterator[Guest]:
    """`kernel`: its path and words for its command line. `line`: a descriptor, its serial line
    /dev/ttyS0. Killed at the end, if it has not ended."""
    init = folder / "init"
    init.write_text(_INIT.format(script=script, folder=folder))
    init.chmod(0o755)
    page = page or ClockPage.create()
    page.limit_ns = limit_ns
    descriptors = [page.fileno()] if line is None else [page.fileno(), line]
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            [
                *kernel,
                *("rootfstype=hostfs", "rootflags=/", "rw", "mem=256M", f"init={init}"),
                *(f"uml_dir={folder}/", "time-travel=inf-cpu", "noreboot", "quiet"),
                *("time-travel-start=946684800000000000", "con=null", "con0=null"),
                *(f"tstorm_page=fd:{page.fileno()}", f"tstorm_parent={os.getpid()}"),
                *([] if line is None else [f"ssl0=fd:{line}"]),
            ],
            pass_fds=descriptors,
            env={"TMPDIR": "/nonexistent"},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
    try:
        yield Guest(process, page, folder)
    finally:
        process.kill()
        process.wait()
        page.close()


def session(leader: int) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1 :].rsplit(")", 1)
        state, _, _, session = rest.split()[:4]
        if int(session) == leader and state != "Z":
            yield int(entry.name), name
