"""One measurement of a plan in a process of its own: one line of JSON on standard output.

`python -m bench.routing.job JOB PLAN [TOOL WAY COUNT]`. Reading the plan is not part of what is
timed; it is part of the peak of memory, for all alike. That is VmHWM of /proc/self/status, which
unlike ru_maxrss does not remember the process that started this one.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.errors import BenchError
from bench.routing.check import check
from bench.routing.graphs import Graph, access, bridges, whole
from bench.tables import Record
from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, read_plan
from compiler.plan.state import NetworkState
from compiler.plan.types import Epoch

if TYPE_CHECKING:  # numpy would count in the memory of those who do without
    from bench.routing.peers import Block, Figures
    from compiler.plan.paths.collapse import RouteRow

_Item = TypeVar("_Item")


class Watch:
    """Wall and CPU seconds spent inside what it times; CPU counts all threads."""

    def __init__(self) -> None:
        self.wall_s = 0.0
        self.cpu_s = 0.0

    def times(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Times the making of each item, not what is done with it."""
        source = iter(items)
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            item = next(source, None)
            self.wall_s += time.perf_counter() - wall
            self.cpu_s += time.process_time() - cpu
            if item is None:
                return
            yield item

    def record(self) -> Record:
        return {
            "wall_s": round(self.wall_s, 5),
            "cpu_s": round(self.cpu_s, 5),
            "peak_mib": peak_mib(),
        }


def peak_mib() -> float:
    """The most memory that this process has had resident, in MiB."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return round(int(found.group(1)) / 1024, 1)


def evenly(items: Sequence[int], count: int) -> list[int]:
    """`count` of the items, evenly spread; all of them for 0."""
    if not count or count >= len(items):
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


# --- all pairs -------------------------------------------------------------------------------


def all_pairs(plan: Plan, tool: str, way: str, count: int) -> Record:
    """All pairs at the start, from the links to the composed figures. `sums`, for comparison:
    for each source the sum of the delays and of the hops to all destinations."""
    state = plan.state_at(0)
    watch = Watch()
    sums: dict[int, tuple[int, int]] = {}
    if tool == "tstorm":
        for row in watch.times(_own_rows(plan, state)):
            sums[row.source] = (sum(row.totals.delay_ns), sum(row.hops))
    else:
        from bench.routing import peers

        peers.load(tool)
        for figures in watch.times(_library_figures(state, tool, way, count)):
            parts = (figures.sources, figures.delay_ns.sum(axis=1), figures.hops.sum(axis=1))
            for source, delay, hops in zip(*parts, strict=True):
                sums[source] = (int(delay), int(hops))
    return {**watch.record(), "sources": len(sums), "sums": sums}


def _own_rows(plan: Plan, state: NetworkState) -> Iterator[RouteRow]:
    """Routes from nothing, and the figures of all instances."""
    from compiler.plan.paths.collapse import Collapse
    from compiler.plan.routes.routing import Routes

    routes = Routes(plan.topology)
    routes.apply(plan.epochs[0].links)
    made = NetworkState(
        topology=plan.topology,
        core=routes.core,
        epoch=0,
        at_ns=0,
        nodes=state.nodes,
        links=state.links,
        table=routes.table,
    )
    yield from Collapse(plan.topology).rows(made, range(routes.core.endpoints))


def _library_figures(state: NetworkState, tool: str, way: str, count: int) -> Iterator[Figures]:
    from bench.routing import peers

    instances = state.core.endpoints
    if way == "whole":
        graph, wanted = whole(state), evenly(range(instances), count)
    else:
        graph, beside = bridges(state), access(state)
        wanted = sorted(set(beside.anchor))
    blocks = _blocks(graph, tool, wanted)
    if way == "whole":
        for block in blocks:
            yield peers.finish(peers.columns(block, instances))
    else:
        for block in peers.Extension(beside).extend(list(blocks), instances):
            yield peers.finish(block)


def _blocks(graph: Graph, tool: str, sources: Sequence[int]) -> Iterator[Block]:
    from bench.routing import peers

    if tool == "networkx":
        yield from peers.networkx_blocks(graph, sources)
        return
    trees = {"scipy": peers.scipy_trees, "rustworkx": peers.rustworkx_trees}[tool]
    composer = peers.Composer(graph)
    for chunk, lengths, before in trees(graph, sources):
        yield composer.compose(chunk, lengths, before)


# --- events ----------------------------------------------------------------------------------


def repair(plan: Plan) -> Record:
    """Every epoch after the first: the repair alone, and with the folding of events."""
    from compiler.plan.routes.routing import Routes, snapshots

    epochs = plan.epochs
    routes = Routes(plan.topology)
    routes.apply(epochs[0].links)
    lengths = {link: -1 for links in routes.core.out for link in links}
    _new_lengths(lengths, epochs[0])
    times: list[int] = []
    changed = cells = moved = 0
    for epoch in epochs[1:]:
        began = time.perf_counter_ns()
        delta = routes.apply(epoch.links)
        times.append(time.perf_counter_ns() - began)
        cells += len(delta.cells)
        changed += bool(delta.cells)
        moved += _new_lengths(lengths, epoch)
    watch = Watch()
    for _ in watch.times(snapshots(plan.topology, plan.events)):
        pass
    times.sort()
    return {
        **watch.record(),
        "epochs": len(times),
        "repair_s": round(sum(times) / 1e9, 5),
        "mean_ms": round(sum(times) / len(times) / 1e6, 5),
        "median_ms": round(times[len(times) // 2] / 1e6, 5),
        "max_ms": round(times[-1] / 1e6, 5),
        "new_lengths": moved,
        "changed_routes": changed,
        "cells": cells,
    }


def _new_lengths(lengths: dict[int, int], epoch: Epoch) -> bool:
    """Whether a link of the core has another length now: without that no route can change."""
    now = {link: state.delay_ns if state.up else -1 for link, state in epoch.links}
    found = {link: new for link, new in now.items() if lengths.get(link, new) != new}
    lengths.update(found)
    return bool(found)


def recompute(plan: Plan, tool: str, way: str, count: int) -> Record:
    """Shortest path trees from scratch in `count` of the epochs; nothing is composed."""
    from bench.routing import peers

    trees = {
        "scipy": peers.scipy_trees,
        "rustworkx": peers.rustworkx_trees,
        "networkx": peers.networkx_trees,
    }[tool]
    peers.load(tool)
    watch = Watch()
    numbers = evenly(range(1, len(plan.epochs)), count)
    for number in numbers:
        state = plan.state_at(plan.epochs[number].at_ns)
        core = state.core
        if way == "whole":
            graph, sources = whole(state), list(range(core.endpoints))
        else:
            graph = bridges(state)
            sources = [node - core.endpoints for node in core.columns]
        for _ in watch.times(trees(graph, sources)):
            pass
    made = watch.record()
    return {
        **made,
        "epochs": len(numbers),
        "mean_ms": round(made["wall_s"] / len(numbers) * 1e3, 4),
    }


# --- agreement -------------------------------------------------------------------------------


def agree(plan: Plan, sources: int, every: int) -> Record:
    found = check(plan, sources=sources, every=every)
    return {
        "epochs": found.epochs,
        "sources": found.sources,
        "pairs": found.pairs,
        "paths": found.paths,
        "tied": found.tied,
        "differences": found.differences,
    }


JOBS: dict[str, Callable[[Plan, list[str]], Record]] = {
    "all-pairs": lambda plan, rest: all_pairs(plan, rest[0], rest[1], int(rest[2])),
    "repair": lambda plan, rest: repair(plan),  # noqa: ARG005
    "recompute": lambda plan, rest: recompute(plan, rest[0], rest[1], int(rest[2])),
    "agree": lambda plan, rest: agree(plan, int(rest[0]), int(rest[1])),
}


def main() -> int:
    job, path, *rest = sys.argv[1:]
    try:
        json.dump(JOBS[job](read_plan(Path(path)), rest), sys.stdout)
    except (BenchError, PlanError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
