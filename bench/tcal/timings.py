"""How fast tcald initialises, changes and reads paths, beside `tc -batch` and pyroute2.

Needs a kernel with netem: this one, else user-mode Linux (tests/netem). All three are measured in
the same machine, one after the other; each figure is the least of some attempts (few for tc and
pyroute2, which take seconds). A user-mode kernel is slow: ratios say more than milliseconds.

    python -m bench --only tcal         into bench/results/tcal.json and docs/performance.md
    python -m bench.tcal.timings                only measures; JSON lines to stdout
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from bench import ROOT
from bench.engine.netns import Namespace, run
from bench.engine.probing import program
from bench.errors import BenchError
from bench.tables import Record, Table
from bench.tcal.peers import DEVICE, Pyroute2, TcBatch, destination
from tests.datapath.client import Client

WITH_NETEM = ROOT / "tests/netem/with_netem.py"
DESTINATIONS = 1000
INSTANCES = 100
STEPS = {  # step: (what it is, target in ms)
    "initialise": (f"initialise {DESTINATIONS:,} destinations", 100),
    "rates": (f"change {DESTINATIONS:,} rates", 10),
    "delays": (f"change {DESTINATIONS:,} delays and losses", 20),
    "usage": (f"read the usage of {DESTINATIONS:,}", 2),
    "mesh": (f"change rate, delay and loss of {INSTANCES} × {INSTANCES - 1} paths", 150),
}
_PATH = "rate=10000000 delay=1000000 jitter=0 loss=0 queue=100000 up=1"
Times = dict[str, list[float]]


def _kernel(rows: Sequence[Record]) -> str:
    return f"Under {rows[0]['kernel']}.\n"


TABLES = (
    _kernel,
    Table(
        {
            "tcald": "{what}",
            "target": "{target_ms} ms",
            "in force after": "{tcald_ms} ms",
            "staged before": "{staged_ms} ms",
            "`tc -batch`": "{tc_batch_ms:g} ms ({tc_batch_ratio:g} ×)",
            "pyroute2": "{pyroute2_ms:g} ms ({pyroute2_ratio:g} ×)",
        }
    ),
)


def missed(rows: Sequence[Record]) -> list[str]:
    """Targets that were missed, each with what was measured."""
    return [
        f"{row['what']}: {row['tcald_ms']} ms, not {row['target_ms']}"
        for row in rows
        if row["tcald_ms"] > row["target_ms"]
    ]


def measure(quick: bool) -> list[Record]:
    """Rows of {step, what, target_ms, tcald_ms, …}, measured where the kernel has netem."""
    argv = [sys.executable, str(WITH_NETEM), "--", sys.executable, "-m", "bench.tcal.timings"]
    argv += ["--quick"] if quick else []
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"measuring under a kernel with netem failed ({done.returncode})")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_here(quick: bool) -> list[Record]:
    """The same under this kernel."""
    attempts, turns = (1, 2) if quick else (3, 5)
    _say("tcald")
    found = {"tcald": _tcald(attempts, turns)}
    for kind in (TcBatch, Pyroute2):
        _say(kind.name)
        found[kind.name] = _peer(kind, 1, 2)  # each some seconds: they are not near the targets
    mesh, batch = _mesh(turns)
    found["tcald"] |= mesh
    found[TcBatch.name] |= batch
    least = {name: {key: min(ms) for key, ms in times.items()} for name, times in found.items()}
    return [_row(step, least) for step in STEPS]


def _row(step: str, least: dict[str, dict[str, float]]) -> Record:
    what, target = STEPS[step]
    kernel = f"Linux {os.uname().release}"
    if "TSTORM_NETEM_VM" in os.environ:
        kernel += " (user-mode Linux)"
    row: Record = {"step": step, "what": what, "target_ms": target, "kernel": kernel}
    ours = least["tcald"]
    row["tcald_ms"] = round(ours[step], 2)
    if f"{step} staged" in ours:
        row["staged_ms"] = round(ours[f"{step} staged"], 2)
    for name, key in ((TcBatch.name, "tc_batch"), (Pyroute2.name, "pyroute2")):
        if step in least[name]:
            row[f"{key}_ms"] = round(least[name][step], 1)
            row[f"{key}_ratio"] = round(least[name][step] / ours[step], 1)
    return row


def instances(far: Namespace, count: int) -> list[Namespace]:
    """Namespaces with an eth0 that is up and asks for no addresses; the other ends are in `far`."""
    spaces = [Namespace() for _ in range(count)]
    lines = []
    for number, space in enumerate(spaces):
        peer = f"peer name {DEVICE} netns {space.path.parts[2]}"
        lines += [f"link add far{number} type veth {peer}", f"link set far{number} up"]
    far.ip_batch(lines)
    for number, space in enumerate(spaces):
        address = "10.77.0.1/16" if count == 1 else f"{destination(number)}/16"
        space.ip_batch([f"addr add {address} dev {DEVICE}", f"link set {DEVICE} arp off up"])
    return spaces


def timed_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _say(what: str) -> None:
    print(f"  {what} …", file=sys.stderr, flush=True)


def _add(times: Times, step: str, ms: float) -> None:
    times.setdefault(step, []).append(ms)


def _initialise(_turn: int) -> Iterator[str]:
    yield "node 0 ip=10.77.0.1"
    yield "bind 0 0"
    for index in range(DESTINATIONS):
        yield f"node {index + 1} ip={destination(index)}"
        yield f"path 0 {index + 1} {_PATH}"


def _rates(turn: int) -> Iterator[str]:
    for index in range(DESTINATIONS):
        yield f"path 0 {index + 1} rate={20_000_000 + 8000 * turn}"


def _delays(turn: int) -> Iterator[str]:
    for index in range(DESTINATIONS):
        yield f"path 0 {index + 1} delay={2_000_000 + 1000 * turn} loss=10000000"


def _step(tcald: Client, times: Times, step: str, lines: Iterable[str]) -> None:
    """Staging, which an agent does ahead of time, and from the commit until all is in force."""
    given = list(lines)
    _add(times, f"{step} staged", timed_ms(lambda: tcald.all(given)))
    _add(times, step, timed_ms(tcald.commit))


def _tcald(attempts: int, turns: int) -> Times:
    times: Times = {}
    for _ in range(attempts):
        far = Namespace()
        (space,) = instances(far, 1)
        with Client.start(program("tcald")) as tcald:
            tcald(f"attach 0 netns={space.path} if={DEVICE} prefix=10.77.0.0/16")
            _step(tcald, times, "initialise", _initialise(0))
            for turn in range(turns):
                _step(tcald, times, "rates", _rates(turn))
                _step(tcald, times, "delays", _delays(turn))
                _step(tcald, {}, "no loss", (f"path 0 {i + 1} loss=0" for i in range(DESTINATIONS)))
                _move(space)
                _add(times, "usage", timed_ms(partial(_usage, tcald)))
        space.close()
        far.close()
    return times


def _usage(tcald: Client) -> None:
    found = len(tcald.body("usage"))
    if found != DESTINATIONS:
        raise BenchError(f"tcald told the usage of {found} of {DESTINATIONS} paths")


def _move(space: Namespace) -> None:
    """A datagram to every destination, so that there is a usage to tell."""
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "for to in sys.stdin.read().split(): s.sendto(b'x', (to, 9))"
    )
    everybody = " ".join(destination(index) for index in range(DESTINATIONS))
    run(space.argv([sys.executable, "-S", "-c", code]), everybody)
    time.sleep(0.3)  # the delays are some milliseconds


def _peer(kind: type[TcBatch] | type[Pyroute2], attempts: int, turns: int) -> Times:
    times: Times = {}
    for _ in range(attempts):
        far = Namespace()
        (space,) = instances(far, 1)
        made = kind(space)
        _add(times, "initialise", timed_ms(partial(made.initialise, DESTINATIONS)))
        for turn in range(turns):
            _add(times, "rates", timed_ms(partial(made.rates, DESTINATIONS, turn)))
            _add(times, "delays", timed_ms(partial(made.delays, DESTINATIONS, turn)))
            _add(times, "usage", timed_ms(partial(made.usage, DESTINATIONS)))
        made.close()
        space.close()
        far.close()
    return times


def _mesh(turns: int) -> tuple[Times, Times]:
    """All paths between INSTANCES namespaces changed at once: tcald, and one tc a namespace."""
    far = Namespace()
    spaces = instances(far, INSTANCES)
    _say("mesh")
    ours: Times = {}
    theirs: Times = {}
    with Client.start(program("tcald")) as tcald:
        tcald.all(
            f"attach {n} netns={space.path} if={DEVICE} prefix=10.77.0.0/16"
            for n, space in enumerate(spaces)
        )
        tcald.all(f"node {n} ip={destination(n)}" for n in range(INSTANCES))
        tcald.all(f"bind {n} {n}" for n in range(INSTANCES))
        tcald.all(_mesh_lines(_PATH))
        tcald.commit()
        for turn in range(turns):
            words = (
                f"rate={30_000_000 + 8000 * turn} delay={3_000_000 + 1000 * turn} loss={turn}000"
            )
            _step(tcald, ours, "mesh", _mesh_lines(words))
        tcald.all(f"detach {n}" for n in range(INSTANCES))
    peers = [TcBatch(space) for space in spaces]
    for peer in peers:
        peer.initialise(INSTANCES - 1)
    start = time.perf_counter()
    for peer in peers:
        peer.both(INSTANCES - 1, 0)
    _add(theirs, "mesh", (time.perf_counter() - start) * 1000)
    for space in (*spaces, far):
        space.close()
    return ours, theirs


def _mesh_lines(words: str) -> Iterator[str]:
    for source in range(INSTANCES):
        for dest in range(INSTANCES):
            if source != dest:
                yield f"path {source} {dest} {words}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    made = measure_here if "TSTORM_TEST_NETEM" in os.environ else measure
    for row in made(options.quick):
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
