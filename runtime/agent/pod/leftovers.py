"""Removes what a killed datapath has left at interfaces: filters of pktd, the tree of tcald.

A datapath takes over what another one of its kind has left when it attaches, and removes it when it
detaches (docs/pktd.md, docs/tcal.md). So a new one attaches once more to every interface that the
agent has entered in its file, and ends.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

from runtime.agent.pod.node_facts import NOWHERE
from runtime.agent.process import portlog
from runtime.datapath import pktd
from runtime.datapath.pktd import Engine, EngineError
from runtime.errors import RunError
from runtime.system import compiled_programs

PROGRAMS = {"user": "pktd", "kernel": "tcald"}
_GONE = os.strerror(errno.ENODEV)


async def remove(file: Path, log: IO[bytes]) -> str:
    """What could not be removed, and why; '' if nothing is left, and then no file either."""
    kind, entered = portlog.read(file)
    found = [(place, one.name) for one in entered if (place := portlog.find(one))]
    if found:
        try:
            left = await _attach_once(PROGRAMS[kind], found, log)
        except RunError as error:
            left = str(error)
        if left:
            return left
    file.unlink(missing_ok=True)
    return ""


async def _attach_once(program: str, ports: list[tuple[str, str]], log: IO[bytes]) -> str:
    process = await pktd.start([str(compiled_programs.find(program))], log, program)
    left = []
    try:
        for number, (netns, name) in enumerate(ports):
            left.append(await _attached(process.engine, number, netns, name))
    finally:
        status = await process.end()
    if status:
        left.append(f"{program} ended with status {status}")
    return "; ".join(filter(None, left))


async def _attached(engine: Engine, number: int, netns: str, name: str) -> str:
    """Why it could not be, '' if it is or if the interface is gone."""
    try:
        await engine.call(f"attach {number} netns={netns} if={name} prefix={NOWHERE}")
    except EngineError as error:
        return "" if error.message.endswith(_GONE) else error.message
    return ""
