"""Agents that answer at once, all in one process: `python -m bench.agents.simulated COUNT STEPS`.

The run's key comes as hexadecimal digits on standard input, the agents' ports go as JSON to
standard output; the process ends with its standard input. After a start each agent says that it has
applied STEPS steps, one a second, as agents do; nothing is emulated.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from typing import Any

from runtime.rpc import secure
from runtime.rpc.jsonobject import decode
from runtime.rpc.secure import ChannelError
from runtime.system.process_limits import raise_limit
from tests.doubles.agent import FakePeer

STEP_NS = 1_000_000_000


class Agent(FakePeer):
    """Answers at once, whatever it is asked."""

    def __init__(self, steps: int = 0) -> None:
        super().__init__()
        self._steps = steps

    async def _handle(self, request: dict[str, Any], now: int) -> Mapping[str, object]:
        if request["do"] == "time":
            return {"t2": now, "t3": time.monotonic_ns()}
        if request["do"] == "start":
            self.do(self._tell(request["t0_ns"]))
        return {"digest": request.get("digest", "")}

    async def _tell(self, t0_ns: int) -> None:
        """As an agent whose steps come one after the other."""
        for step in range(self._steps):
            await asyncio.sleep(max(t0_ns + step * STEP_NS - time.monotonic_ns(), 0) / 1e9)
            elapsed = time.monotonic_ns() - t0_ns
            try:
                self.say(say="applied", step=step, elapsed_ns=elapsed, late=False)
            except ChannelError:
                return  # the run is over


def _skim(data: bytes) -> dict[str, Any]:
    """Reads no more of a long preparation than is answered: in a cluster a thousand machines read
    theirs side by side, here one process would do nothing else for seconds."""
    found = re.search(rb'^{"do":"prepare","run":"[^"]*","digest":"([^"]*)"', data)
    return {"do": "prepare", "digest": found[1].decode()} if found else decode(data)


async def _serve(count: int, steps: int) -> None:
    raise_limit(0)
    secure._decode = _skim
    key = bytes.fromhex(sys.stdin.readline())
    agents = [Agent(steps) for _ in range(count)]
    for agent in agents:
        await agent.listen(key)
    print(json.dumps([agent.port for agent in agents]), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
