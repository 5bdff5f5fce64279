"""Facts about the machine for a run's manifest. Only read, never needed: '' or 0 when unknown."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path


def tool_version() -> str:
    try:
        return metadata.version("thunderstorm")
    except metadata.PackageNotFoundError:
        return "source"


def _field(path: str, name: str) -> str:
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def facts() -> dict[str, object]:
    memory = _field("/proc/meminfo", "MemTotal").split()
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory[0]) * 1024 if memory else 0,
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "system": platform.version(),
        "python": platform.python_version(),
        "tstorm": tool_version(),
    }
