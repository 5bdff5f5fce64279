"""A file that says which interfaces an agent has attached, for whoever has to find what is left of
them when agent and datapath were killed.

The first line is the datapath's kind. Each other one is an interface, entered before it is
attached: the inode of its network namespace, its name, and a path that led to the namespace then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError


@dataclass(frozen=True, slots=True)
class Interface:
    inode: int  # of its network namespace
    name: str
    netns: str


def begin(file: Path, datapath: str) -> None:
    """Forgets what was there. OSError."""
    file.write_text(f"{datapath}\n")


def enter(file: Path, netns: str, name: str) -> None:
    """RunError for a namespace that is not there."""
    try:
        inode = Path(netns).stat().st_ino
        with file.open("a") as lines:
            lines.write(f"{inode} {name} {netns}\n")
    except OSError as error:
        raise RunError(f"cannot attach {name} of {netns}: {error.strerror}") from error


def read(file: Path) -> tuple[str, list[Interface]]:
    """Kind of the datapath, '' for no file, and interfaces, each once. A line that its writer was
    killed over is left out: that interface was not attached."""
    try:
        kind, *lines = file.read_text().split("\n")
    except OSError:
        return "", []
    words = [line.split(" ", 2) for line in lines[:-1]]
    return kind, list(dict.fromkeys([Interface(int(i), name, path) for i, name, path in words]))


def find(interface: Interface, proc: Path = Path("/proc")) -> str:
    """A path of its namespace now; '' if no process is in it any more."""
    places = [Path(interface.netns)]
    places += [entry / "ns/net" for entry in proc.iterdir() if entry.name.isdecimal()]
    for place in places:
        try:
            if os.stat(place).st_ino == interface.inode:  # noqa: PTH116  # a link of /proc
                return str(place)
        except OSError:
            continue  # ended meanwhile
    return ""
