"""The machine that figures belong to: what matters for them, and nothing that names it."""

from __future__ import annotations

import os
import platform
import re
import time
from pathlib import Path

from bench.engine.netns import privilege

_SLEEPS, _SLEEP_S = 200, 0.005
_STEAL = 7  # of /proc/stat: user nice system idle iowait irq softirq steal


def describe() -> dict[str, str | int]:
    """CPU, cores, memory, kernel, Python, whether this is root, and how quiet it is: within one
    second in which it has nothing to do, how late timers were (µs, 99 of 100 were earlier) and what
    its hypervisor took of the processors. What is late then is not the engine's doing."""
    stolen, began = stolen_s(), time.monotonic()
    late_us = _late_us()
    steal = (stolen_s() - stolen) / (time.monotonic() - began) / (os.cpu_count() or 1)
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
        "steal_percent_before": f"{steal * 100:.1f}",
        "timers_late_p99_us": round(late_us),
    }


def stolen_s() -> float:
    """Seconds of all processors that a hypervisor has taken so far: /proc/stat, proc(5)."""
    fields = _read("/proc/stat").split("\n")[0].split()[1:]
    return int(fields[_STEAL]) / os.sysconf("SC_CLK_TCK") if len(fields) > _STEAL else 0.0


def _late_us() -> float:
    late: list[int] = []
    for _ in range(_SLEEPS):
        due_ns = time.monotonic_ns() + round(_SLEEP_S * 1e9)
        time.sleep(_SLEEP_S)
        late.append(time.monotonic_ns() - due_ns)
    return sorted(late)[_SLEEPS * 99 // 100] / 1000


def _kernel() -> str:
    """The version without a vendor's suffix, which may name a place."""
    found = re.match(r"\d+\.\d+(\.\d+)?", platform.release())
    return f"{platform.system()} {found.group(0) if found else 'unknown'}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
