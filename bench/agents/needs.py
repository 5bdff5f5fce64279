"""What an agent's own computing costs: the start and the steps, `python -m bench.agents.needs`.

Scale-free networks (tests.plan.topologies), the instances placed on a few hosts, one of them
measured: CPU seconds to make all lines of the first step, then CPU milliseconds a step for those
after it, the longest slice (how long the sharing loop could be held up), and lines a
step. Nothing is sent.
"""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import dataclass

from compiler.pipeline import compile_source
from runtime.agent.path.path_updates import PathUpdates, StagedPaths
from runtime.options import RunOptions
from runtime.schedule import Schedule
from tests.plan.topologies import scale_free

CASES = ((1000, 4), (2000, 4), (4000, 16))  # elements of the network, hosts
STEPS = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """Times are of the processor: what else the machine does matters less."""

    paths: int
    start_s: float
    steps: int
    step_ms: float
    slice_ms: float
    lines: float  # a step


def measure(size: int, hosts: int, steps: int = STEPS) -> Cost:
    plan = compile_source(scale_free(size, steps).encode(), filename="n.tdl", seed=None).plan
    own = range(0, plan.core.endpoints, hosts)
    needs = PathUpdates(plan, Schedule(plan, RunOptions()), own)
    begin = time.process_time()
    paths = sum(len(part) for part in needs.begin())
    start_s = time.process_time() - begin
    gc.collect()
    gc.freeze()  # as an agent does
    longest, lines, count = 0.0, 0, 0
    begin = last = time.process_time()
    for stage in needs.later():
        now = time.process_time()
        longest, last = max(longest, now - last), now
        if isinstance(stage, StagedPaths):
            count += 1
            lines += sum(map(len, stage.parts))
    total = last - begin
    gc.unfreeze()
    return Cost(paths, start_s, count, total / count * 1e3, longest * 1e3, lines / count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    steps = parser.parse_args().steps
    print("| elements, hosts | paths | start, s | a step, ms | longest slice, ms | lines a step |")
    print("|---|---|---|---|---|---|")
    for size, hosts in CASES:
        cost = measure(size, hosts, steps)
        print(
            f"| {size:,}, {hosts} | {cost.paths:,} | {cost.start_s:.2f} | {cost.step_ms:.1f}"
            f" | {cost.slice_ms:.1f} | {cost.lines:.0f} |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
