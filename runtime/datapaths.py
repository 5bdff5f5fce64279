"""Which program carries packets, and whether this machine can run it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from runtime import programs
from runtime.errors import MachineError
from runtime.options import RunOptions

PROBE_SECONDS = 20.0
KERNEL_REMEDY = (
    "use --datapath user, which needs no module; or load what is missing as root:"
    " modprobe -a sch_htb sch_netem cls_u32"
)


def choose(options: RunOptions, keeper: Path) -> tuple[str, ...]:
    """The command. Raises MachineError if it is missing, or the kernel lacks what it needs."""
    if options.datapath == "kernel":
        tcald = programs.find("tcald")
        refusal = kernel_refusal(tcald, keeper)
        if refusal:
            raise MachineError(
                f"the kernel's datapath does not work here: {refusal}", KERNEL_REMEDY
            )
        return (str(tcald),)
    share = ("--cpu-share", str(options.hosts)) if options.hosts > 1 else ()
    return (str(programs.find("pktd")), *share)


def kernel_refusal(tcald: Path, keeper: Path) -> str:
    """Why the kernel cannot do it, found out by adding the qdiscs in a throw-away namespace; ''."""
    argv = [str(keeper), "sandbox", "--parent", str(os.getpid())]
    argv += ["--userns"] if os.geteuid() != 0 else []
    argv += ["--", str(tcald), "--probe"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the probe took longer than {PROBE_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return said[-1] if said else f"the probe ended with status {done.returncode}"
