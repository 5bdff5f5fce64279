"""The machine that figures belong to: what matters for them, and nothing that names it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from bench.engine.netns import privilege


def describe() -> dict[str, str | int]:
    """CPU, cores, memory, kernel, Python, and whether this is root."""
    info = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _read("/proc/meminfo"), re.MULTILINE)
    return {
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 0,
        "cpu": model.group(1) if model else "unknown",
        "hypervisor": "yes" if re.search(r"^flags.*\bhypervisor\b", info, re.MULTILINE) else "no",
        "kernel": _kernel(),
        "load_1min_before": _read("/proc/loadavg").split()[0],
        "memory_mib": int(memory.group(1)) // 1024 if memory else 0,
        "privilege": privilege(),
        "python": platform.python_version(),
    }


def _kernel() -> str:
    """The version without a vendor's suffix, which may name a place."""
    found = re.match(r"\d+\.\d+(\.\d+)?", platform.release())
    return f"{platform.system()} {found.group(0) if found else 'unknown'}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
