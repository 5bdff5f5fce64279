"""Where the queue is: what TCP and UDP see at structures of tc, beside a real bottleneck router."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.errors import BenchError
from bench.netns import Namespace
from bench.probing import Record
from bench.tcal_structures import FAR, STRUCTURES, Bottleneck

PATHS = (
    Bottleneck(20_000_000, 10_000_000, 50_000),
    Bottleneck(100_000_000, 10_000_000, 62_500),
)


@contextmanager
def sinking(space: Namespace) -> Iterator[None]:
    argv = space.argv([sys.executable, "-m", "bench.tcal_flows", "sink"])
    sink = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert sink.stdout is not None
        if sink.stdout.readline() != "ready\n":
            raise BenchError("the sink did not start")
        yield
    finally:
        sink.kill()
        sink.wait()


def flows(space: Namespace, *words: str) -> Record:
    argv = space.argv([sys.executable, "-m", "bench.tcal_flows", *words])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"traffic failed: {done.stderr.strip()}")
    record: Record = json.loads(done.stdout)
    return record


def one(name: str, path: Bottleneck, seconds: float, kinds: list[str]) -> list[Record]:
    made = STRUCTURES[name](path)
    base = {
        "structure": name,
        "rate_bps": path.rate_bps,
        "delay_ns": path.delay_ns,
        "queue_bytes": path.queue_bytes,
    }
    rows = []
    try:
        with sinking(made.b):
            for kind in kinds:
                if kind == "udp":
                    row = flows(
                        made.a, "udp", FAR, "--rate", str(path.rate_bps * 3 // 2), "--seconds", "5"
                    )
                else:
                    cc, count = kind.split(":")
                    row = flows(
                        made.a,
                        "tcp",
                        FAR,
                        "--cc",
                        cc,
                        "--flows",
                        count,
                        "--seconds",
                        str(seconds),
                        "--skip",
                        str(seconds / 4),
                    )
                rows.append({**base, "traffic": kind, **row})
                print(json.dumps(rows[-1]), flush=True)
    finally:
        made.close()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--structures", nargs="*", default=list(STRUCTURES))
    parser.add_argument(
        "--traffic", nargs="*", default=["cubic:1", "cubic:4", "reno:1", "reno:4", "udp"]
    )
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--paths", type=int, nargs="*", default=[0])
    given = parser.parse_args()
    for index in given.paths:
        for name in given.structures:
            one(name, PATHS[index], given.seconds, given.traffic)
    return 0


if __name__ == "__main__":
    sys.exit(main())
