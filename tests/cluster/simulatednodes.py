"""Supervisors and agents of fake nodes: `python -m tests.cluster.simulatednodes PLAN RUN FIRST N`.

Input: a plan, how the nodes' names begin, and which of them. They listen at loopback addresses of
their own (`address`), with the real ports. Prints a line when they do; ends with standard input.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compiler.plan.paths.path import Paths
from compiler.plan.reader import Plan, read_plan
from runtime.rpc import jsonobject, secure
from runtime.system.process_limits import raise_limit
from tests.cluster import fakenodes
from tests.doubles.node import UNDERLAY_NS, FakeNode


def address(number: int) -> str:
    return f"127.90.{number // 200}.{number % 200 + 1}"


def as_planned(node: FakeNode, paths: Paths) -> Callable[[int, str], int]:
    """Round trips of the plan, over what the network below takes."""

    def rtt_ns(source: int, destination: str) -> int:
        target = [pair[0] for pair in node.addresses].index(destination)
        found = paths.path(source, target).rtt_ns
        return 10**10 if found is None else found + UNDERLAY_NS

    return rtt_ns


_PREPARATIONS: dict[bytes, dict[str, Any]] = {}


def _decode(data: bytes) -> dict[str, Any]:
    """Reads what all preparations have in common once: a thousand machines would do it side by
    side, and here each would have a copy of its own."""
    head, separator, tail = data.rpartition(b',"host":')
    if not separator or not head.startswith(b'{"do":"prepare"'):
        return jsonobject.decode(data)
    if head not in _PREPARATIONS:
        _PREPARATIONS[head] = jsonobject.decode(head + b"}")
    return {**_PREPARATIONS[head], **jsonobject.decode(b'{"host":' + tail)}


async def serve(plan: Plan, run: str, numbers: range) -> None:
    raise_limit(0)
    secure._decode = _decode
    paths = Paths(plan.state_at(0))
    made = []
    for number in numbers:
        node = FakeNode(number, plan, fakenodes.name(run, number), address(number))
        node.rtt_ns = as_planned(node, paths)
        await node.listen()
        made.append(node)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for node in made:
        await node.die()


if __name__ == "__main__":
    first, count = int(sys.argv[3]), int(sys.argv[4])
    asyncio.run(serve(read_plan(Path(sys.argv[1])), sys.argv[2], range(first, first + count)))
