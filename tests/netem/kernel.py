"""Whether this kernel has what the kernel datapath needs.

Found by adding it in a throwaway namespace, not by looking for modules: they may be built in,
refused, or loaded on demand.
"""

from __future__ import annotations

import os
import shutil

from tests.cli.process import ended

SEARCH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
TRIAL = (
    "link add name probe type dummy",
    "qdisc add dev probe root handle 1: htb default 2",
    "class add dev probe parent 1: classid 1:2 htb rate 1mbit",
    "qdisc add dev probe parent 1:2 handle 2: netem delay 1ms limit 10",
    "filter add dev probe parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1/32 flowid 1:2",
)


def isolation(*more: str) -> list[str]:
    """unshare(1) into a network namespace that ends with what runs in it."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = shutil.which("unshare", path=SEARCH) or "unshare"
    return [unshare, *user, "--net", "--fork", "--kill-child", *more, "--"]


def why_no_netem() -> str:
    """What this kernel refuses, in its own words, '' if nothing."""
    programs = {name: shutil.which(name, path=SEARCH) for name in ("unshare", "ip", "tc")}
    for name, found in programs.items():
        if found is None:
            return f"'{name}' is missing: apt-get install util-linux iproute2"
    script = " && ".join(
        f"{'ip' if line.startswith('link') else 'tc'} {line}" for line in TRIAL
    )  # constants only
    done = ended([*isolation(), "sh", "-c", script], env={**os.environ, "PATH": SEARCH})
    if done.returncode == 0:
        return ""
    words = " ".join(done.stderr.split()) or f"status {done.returncode}"
    return f"this kernel ({os.uname().release}) lacks htb, netem or u32: {words}"
