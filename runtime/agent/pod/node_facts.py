"""What a node is and can do, found out by trying it.

The engine is really attached to the interface of the agent's own pod, for prefixes that are set
aside for documentation (RFC 5737, RFC 3849), so that no packet goes there: what a kernel or a
network plugin refuses at this interface it refuses at those of instances.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import IO

from compiler.plan.format import TOOL_VERSION
from runtime.agent.pod.pod_messages import EngineFacts, NodeFacts
from runtime.datapath import kernelprobe, pktd
from runtime.errors import RunError
from runtime.system import compiled_programs
from runtime.system.network.interface import INTERFACE

PROBE_SECONDS = 20.0
NOWHERE = "192.0.2.0/24,2001:db8::/32"
_PROC = Path("/proc")


async def find(name: str, digest: str, log: IO[bytes], *, running: bool) -> NodeFacts:
    """`name` is the node's. Takes about half a second."""
    return NodeFacts(
        node=name,
        digest=digest,
        version=TOOL_VERSION,
        kernel=await asyncio.to_thread(_kernel),
        user=await _engine(log),
        boot_id=(_PROC / "sys/kernel/random/boot_id").read_text().strip(),
        uname=" ".join([os.uname().sysname, os.uname().release, os.uname().machine]),
        cgroup=cgroup_kind((_PROC / "self/cgroup").read_text()),
        running=running,
    )


def _kernel() -> dict[str, str]:
    try:
        argv = [str(compiled_programs.find("tcald")), "--probe"]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"the probe": f"it took longer than {PROBE_SECONDS:.0f} s"}
    except OSError as error:
        return {"the probe": f"it cannot be started: {error.strerror}"}
    except RunError as error:
        return {"the probe": str(error)}
    return kernelprobe.lacks(done)


async def _engine(log: IO[bytes]) -> EngineFacts:
    try:
        process = await pktd.start([str(compiled_programs.find("pktd"))], log)
    except RunError as error:
        return EngineFacts(str(error))
    try:
        line = f"attach 0 netns=/proc/self/ns/net if={INTERFACE} prefix={NOWHERE}"
        found = (await process.engine.call(line)).values()
    except RunError as error:
        return EngineFacts(str(error))
    finally:
        await process.end()
    scheduling = process.facts.get("sched", "")
    return EngineFacts("", found.get("kind", ""), found.get("stamp", ""), scheduling)


def cgroup_kind(text: str) -> str:
    """v1, v2 or hybrid (both), from the lines of /proc/PID/cgroup (cgroups(7))."""
    unified = re.search(r"^0::", text, re.MULTILINE)
    named = re.search(r"^[1-9]\d*:", text, re.MULTILINE)
    return "hybrid" if unified and named else "v2" if unified else "v1"
