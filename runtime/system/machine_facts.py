"""Facts about the machine for a run's manifest. Only read, never needed: '' or 0 when unknown."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from compiler.plan.format import TOOL_VERSION


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


NET = Path("/proc/sys/net")
_TCP = (
    *("tcp_congestion_control", "tcp_available_congestion_control", "tcp_rmem", "tcp_wmem"),
    *("tcp_mem", "tcp_ecn", "tcp_sack", "tcp_timestamps", "tcp_window_scaling", "tcp_fastopen"),
    *("tcp_mtu_probing", "tcp_slow_start_after_idle", "tcp_no_metrics_save", "tcp_early_retrans"),
    *("tcp_recovery", "tcp_syn_retries", "tcp_retries2", "tcp_fin_timeout", "tcp_notsent_lowat"),
    *("tcp_keepalive_time", "tcp_max_syn_backlog", "ip_local_port_range"),
    *("tcp_moderate_rcvbuf", "tcp_limit_output_bytes", "tcp_autocorking", "tcp_abort_on_overflow"),
    *("udp_mem", "udp_rmem_min", "udp_wmem_min", "ipfrag_high_thresh", "ip_forward"),
)
_CORE = (
    *("rmem_default", "rmem_max", "wmem_default", "wmem_max", "default_qdisc", "somaxconn"),
    *("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "optmem_max"),
)


def network_settings(net: Path = NET) -> dict[str, str]:
    """What of the machine's settings programs in instances meet too: new network namespaces take
    congestion control, buffers and the like from the machine. By their sysctl names; those that
    this kernel has."""
    names = [f"ipv4/{name}" for name in _TCP] + [f"core/{name}" for name in _CORE]
    found = {f"net.{name.replace('/', '.')}": network_words(name, net) for name in names}
    return {name: " ".join(words) for name, words in found.items() if words is not None}


def network_words(name: str, net: Path = NET) -> list[str] | None:
    """Of such a setting (`ipv4/tcp_rmem`); None if this kernel has none."""
    try:
        return (net / name).read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return None


def facts() -> dict[str, object]:
    system = os.uname()  # `platform` asks this, and is slow to import
    memory = _field("/proc/meminfo", "MemTotal").split()
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory[0]) * 1024 if memory else 0,
        "architecture": system.machine,
        "kernel": system.release,
        "system": system.version,
        "python": sys.version.split()[0],
        "tstorm": TOOL_VERSION,
        "network": network_settings(),
    }
