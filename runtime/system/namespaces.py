"""Why the kernel refuses namespaces to a user, and what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with"
        " `userns,` for tstorm-ns",
    ),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    ("user/max_net_namespaces", "0", "sysctl user.max_net_namespaces=10000"),
    ("user/max_pid_namespaces", "0", "sysctl user.max_pid_namespaces=10000"),
)

_HOSTS = Path("/etc/hosts")
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def _value(name: str, root: Path) -> str:
    try:
        return (root / name).read_text().strip()
    except OSError:
        return ""  # this kernel has no such switch


def refusal_remedy(sysctls: Path = Path("/proc/sys")) -> str:
    """What to change, from what the kernel's switches say now."""
    if not _HOSTS.exists():
        return "create /etc/hosts, which may be empty: a run puts its own over it"
    found = [f"as root: {fix}" for name, bad, fix in _SWITCHES if _value(name, sysctls) == bad]
    if found:
        return "; ".join(found)
    if any(Path(mark).exists() for mark in _CONTAINER_MARKS):
        return (
            "this is a container: start it with --cap-add SYS_ADMIN --cap-add NET_ADMIN and run as"
            " root, or with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
            " and run as an ordinary user"
        )
    if os.geteuid() != 0:
        return "a seccomp filter or security module forbids it; run as root, or ask `tstorm doctor`"
    return "even root may not: a seccomp filter, or missing CAP_SYS_ADMIN; ask `tstorm doctor`"
