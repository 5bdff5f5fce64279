"""Scale-free networks as TDL texts: `python -m tests.plan.topologies 1000`.

A third of the elements are bridges that form a Barabási-Albert graph with m = 2 (Barabási and
Albert, "Emergence of scaling in random networks", Science 286, 1999): each new bridge links to two
earlier ones, chosen in proportion to their degree. The others are services of one instance with one
link each, to a bridge chosen in the same way. The sizes are those of Table 4 of the Kollaps paper,
and 10,000.

Method, so that another program can make the same texts: every number comes from compiler.draws
(docs/draws.md), with the statement key of (seed, "scale-free SIZE", 0) and one stream for each of
`core`, `edge`, `link` and `event`. A list of ends holds both ends of every link made so far; a
bridge is chosen by drawing a position in it. It starts with the link s0--s1. Nothing depends on a
Python version, on `random` or on a library.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.draws import Stream, statement_key

SEED = 1
EVENTS = 1000
INSTANCES = {1000: 666, 2000: 1344, 4000: 2668, 10000: 6667}  # the rest are bridges
_LINKS_PER_BRIDGE = 2
_RATES_MB = (10, 50, 100, 500, 1000)
_WEIGHTS = (("switch", 30), ("latency", 25), ("rate", 15), ("loss", 15), ("jitter", 15))


@dataclass(frozen=True, slots=True)
class Wire:
    """One link of the text, with both directions; `core` if it is between two bridges."""

    a: str
    b: str
    core: bool


def instances(size: int) -> int:
    """How many of `size` elements are instances: those of the table, else two thirds."""
    return INSTANCES.get(size, size * 2 // 3)


def scale_free(size: int, events: int = EVENTS, seed: int = SEED, step_us: int = 1) -> str:
    """A TDL text with `size` elements and `events` link events, one a second from 1 s on.

    Latencies are 0.5 to 10 ms in steps of `step_us`: the larger, the more paths are equally long.
    Raises ValueError for a size with fewer than three bridges.
    """
    key = statement_key(seed, f"scale-free {size}", 0)
    wires = _wires(size, key)
    bridges = size - instances(size)
    lines = [f"# {instances(size)} instances, {bridges} bridges, {events} link events, seed {seed}"]
    lines += [f"service n{index} img=x" for index in range(instances(size))]
    lines += [f"bridge s{index}" for index in range(bridges)]
    properties = Stream(key, "link")
    lines += [_declared(wire, properties, step_us) for wire in wires]
    lines += _events(wires, events, Stream(key, "event"), step_us)
    lines.append(f"at {events + 1}s quit")
    return "\n".join(lines) + "\n"


def _wires(size: int, key: bytes) -> list[Wire]:
    bridges = size - instances(size)
    if bridges <= _LINKS_PER_BRIDGE:
        raise ValueError(f"{size} elements have {bridges} bridges, which is too few")
    ends = [0, 1]
    wires = [Wire("s0", "s1", True)]
    core = Stream(key, "core")
    for new in range(_LINKS_PER_BRIDGE, bridges):
        chosen: list[int] = []
        while len(chosen) < _LINKS_PER_BRIDGE:
            old = ends[core.below(len(ends))]
            if old not in chosen:
                chosen.append(old)
        for old in chosen:
            wires.append(Wire(f"s{old}", f"s{new}", True))
            ends += [old, new]
    edge = Stream(key, "edge")
    for new in range(instances(size)):
        old = ends[edge.below(len(ends))]
        wires.append(Wire(f"n{new}", f"s{old}", False))
        ends.append(old)
    return wires


def _declared(wire: Wire, draws: Stream, step_us: int) -> str:
    words = [f"link {wire.a}--{wire.b}", _latency(draws, step_us), _jitter(draws)]
    loss = _loss(draws)
    if draws.below(4) == 0:  # three links of four lose nothing
        words.append(loss)
    return " ".join([*words, f"up={_rate(draws)}", f"down={_rate(draws)}"])


def _latency(draws: Stream, step_us: int) -> str:
    return f"latency={500 + step_us * draws.below(9500 // step_us + 1)}us"


def _jitter(draws: Stream) -> str:
    return f"jitter={draws.below(500_001)}ns"


def _loss(draws: Stream) -> str:
    return f"loss={draws.below(10_001) / 1_000_000:.6f}"


def _rate(draws: Stream) -> str:
    return f"{_RATES_MB[draws.below(len(_RATES_MB))]}Mb"


def _events(wires: list[Wire], count: int, draws: Stream, step_us: int) -> Iterator[str]:
    """Half of them on links between bridges. Half of the switches end an outage under way, and the
    last events end those that are left: what is cut off for good would be warned about."""
    core = [wire for wire in wires if wire.core]
    access = [wire for wire in wires if not wire.core]
    down: list[Wire] = []
    for at_s in range(1, count + 1):
        left = count - at_s  # events after this one: room for no more outages than these can end
        kind = _kind(draws)
        if kind == "switch" and not down and not left:
            kind = "latency"
        full = len(down) >= left
        if len(down) > left or (kind == "switch" and down and (full or draws.below(2))):
            wire = down.pop(draws.below(len(down)))
            yield f"at {at_s}s {wire.a}--{wire.b} join"
            continue
        among = core if draws.below(2) else access
        wire = among[draws.below(len(among))]
        while kind == "switch" and wire in down:
            wire = among[draws.below(len(among))]
        if kind == "switch":
            down.append(wire)
            yield f"at {at_s}s {wire.a}--{wire.b} leave"
        else:
            yield f"at {at_s}s {_set(wire, kind, draws, step_us)}"


def _kind(draws: Stream) -> str:
    position = draws.below(sum(weight for _, weight in _WEIGHTS))
    for kind, weight in _WEIGHTS:
        if position < weight:
            return kind
        position -= weight
    raise AssertionError("below() draws below the sum of the weights")


def _set(wire: Wire, kind: str, draws: Stream, step_us: int) -> str:
    """One event of three concerns one direction only. New rates are fine-grained: 1 Mb to 1 Gb."""
    ends = ("--", "--", "->")[draws.below(3)]
    if kind == "latency":
        value = _latency(draws, step_us)
    elif kind == "rate":
        value = f"up={1000 + draws.below(999_001)}Kb"
    else:
        value = {"loss": _loss, "jitter": _jitter}[kind](draws)
    return f"{wire.a}{ends}{wire.b} set {value}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.plan.topologies", description=__doc__)
    parser.add_argument("size", type=int, help="how many instances and bridges together")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    sys.stdout.write(scale_free(options.size, options.events, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
