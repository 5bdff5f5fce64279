"""Writes what became of the expectations at the end of events.jsonl, a line each (`expectation`).

A file whose last line was cut, because its writer was killed, is left as it is: a line more would
make a damaged one of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from runtime.rundir.held_directory import HeldDirectory, write_all
from runtime.rundir.line_files import encode
from runtime.rundir.runfiles import EVENTS, EXPECTATION

_SAID = ("text", "line", "file", "state", "message")


def append(directory: HeldDirectory, found: Iterable[Mapping[str, Any]]) -> None:
    """OSError, RunError."""
    if not directory.has(EVENTS) or directory.tail(EVENTS, 1) != b"\n":
        return
    data = b"".join(encode(_record(one)) for one in found)
    descriptor = directory.append_to(EVENTS)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)


def _record(one: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: one[name] for name in _SAID}
    return {"kind": EXPECTATION, "target": one["subject"], "planned_ns": one["at_ns"], **said}
