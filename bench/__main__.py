"""`python -m bench [--quick] [--only NAME…]`: measures, writes JSON, brings docs/performance.md up.

Output: bench/results/root.json or user.json, and NAME.json for routing, metadata, control, …, which
are the same for both (quick.json for --quick, which no document uses), and the tables of
docs/performance.md. Progress goes to stderr, the tables of those also to stdout.
Exit code 1 when a measurement failed (the others are still made and written) or when paths differ
from those that networkx finds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import RESULTS, compiling
from bench.agents import control, large, metadata, sharing_model
from bench.engine import commit, delay, many_flows, paths, rate, scale, throughput
from bench.engine.netns import isolate, privilege
from bench.errors import BenchError
from bench.machine import describe
from bench.report import section, update
from bench.routing import measure as routing
from bench.tables import Record
from bench.tcal import timings as tcal
from runtime.errors import RunError
from tests.datapath.client import RefusedError

FORMAT = 1
MEASURES: dict[str, Callable[[bool], list[Record]]] = {
    "compiling": compiling.measure,
    "commit": commit.measure,
    "delay": delay.measure,
    "throughput": throughput.measure,
    "rate": rate.measure,
    "paths": paths.measure,
    "scale": scale.measure,
    "many-flows": many_flows.measure,
    "routing": routing.measure,
    "metadata": metadata.measure,
    "control": control.measure,
    "agents": large.measure,
    "sharing-model": sharing_model.measure,
    "tcal": tcal.measure,
}
MISSED: dict[str, Callable[[list[Record]], list[str]]] = {
    "routing": routing.missed,
    "metadata": metadata.missed,
    "tcal": tcal.missed,
}
# Whoever measures: these need no namespaces, and each has a file of its own.
ALIKE = ("routing", "metadata", "control", "agents", "sharing-model", "tcal")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a look of under 90 s, not for figures"
    )
    parser.add_argument("--only", choices=sorted(MEASURES), action="append", help="may be repeated")
    parser.add_argument("--out", type=Path, help="where to write the JSON instead")
    options = parser.parse_args()
    names = options.only or list(MEASURES)
    if set(names) - set(ALIKE):
        isolate()
    document: dict[str, object] = {"format": FORMAT, "machine": describe(), "quick": options.quick}
    results, failures = _measure(names, options.quick)
    for path, part in _files(results, options.out, options.quick).items():
        _write(path, document, part, merge=bool(options.only))
        print(path)
    for name in set(results) & set(ALIKE):
        print(section(name, {**document, "results": results}))
    for name, missed in MISSED.items():
        for text in missed(results.get(name, [])):
            _say(f"missed: {text}")
    failures += routing.differs(results.get("routing", []))
    if not options.quick and options.out is None:
        update(RESULTS)
    return 1 if failures else 0


def _files(
    results: dict[str, list[Record]], out: Path | None, quick: bool
) -> dict[Path, dict[str, list[Record]]]:
    """Which results belong into which file."""
    if out or quick:
        return {out or RESULTS / "quick.json": results}
    made: dict[Path, dict[str, list[Record]]] = {}
    for name, rows in results.items():
        path = RESULTS / f"{name if name in ALIKE else privilege()}.json"
        made.setdefault(path, {})[name] = rows
    return made


def _write(
    path: Path, document: dict[str, object], results: dict[str, list[Record]], *, merge: bool
) -> None:
    """With `merge` what was measured of other things before stays."""
    if merge and path.exists():
        results = {**json.loads(path.read_text()).get("results", {}), **results}
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {**document, "results": results}
    path.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")


def _measure(names: list[str], quick: bool) -> tuple[dict[str, list[Record]], int]:
    results: dict[str, list[Record]] = {}
    failures = 0
    for name in names:
        began = time.monotonic()
        _say(f"{name} …")
        try:
            results[name] = MEASURES[name](quick)
        except (BenchError, RunError, RefusedError, EOFError, OSError) as error:
            failures += 1
            _say(f"{name} failed: {error}")
            continue
        for row in results[name]:
            _say("  " + " ".join(f"{key}={value}" for key, value in row.items()))
        _say(f"{name}: {time.monotonic() - began:.1f} s")
    return results, failures


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
