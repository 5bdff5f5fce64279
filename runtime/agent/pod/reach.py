"""Sends ICMP echoes from inside an instance's network: what its packets really meet (tprobe)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess

from runtime.agent.pod.podprocesses import PROC
from runtime.agent.process.orders import EchoProbe
from runtime.errors import RunError
from runtime.system import compiled_programs

SPARE_SECONDS = 5.0  # for processes to start and end, beside the probes' own time


async def reach(network: int, probe: EchoProbe) -> list[int]:
    """The round-trip times, ns, of the echoes that were answered, in their order.

    `network` is a process in the network. Raises RunError where no echo can be sent at all.
    """
    seconds = (probe.count * probe.interval_ns + probe.timeout_ns) / 1e9 + SPARE_SECONDS
    process = await start(network, probe)
    try:
        said, complaints = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise RunError(f"the echoes to {probe.address} did not end in {seconds:.0f} s") from error
    lines = [json.loads(line) for line in said.splitlines()]
    if not lines:
        reason = complaints.decode(errors="replace").strip()
        raise RunError(f"no echo could be sent to {probe.address}: {reason:.400}")
    return [round(line["rtt_us"] * 1000) for line in lines if "rtt_us" in line]


async def start(network: int, probe: EchoProbe) -> asyncio.subprocess.Process:
    """A tprobe there, with a line for each echo."""
    words = ["rtt", probe.address, "--mode", "icmp", "--each", "--probe"]
    words += ["--count", str(probe.count), "--interval", f"{probe.interval_ns}ns"]
    words += ["--timeout", f"{probe.timeout_ns}ns"]
    try:
        space = os.open(PROC / str(network) / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(f"the network of process {network} is gone: {error.strerror}") from error
    enter = ["in", "--net", str(space), "--parent", str(os.getpid())]
    try:
        return await asyncio.create_subprocess_exec(
            compiled_programs.find("tstorm-ns"),
            *enter,
            str(compiled_programs.find("tprobe")),
            *words,
            pass_fds=[space],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise RunError(f"no probe can be started: {error.strerror}") from error
    finally:
        os.close(space)
