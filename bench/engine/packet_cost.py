"""What a packet costs the packet engine alone, without system calls: instructions, counted by
valgrind, and processor time. Of this tree and of any commits beside it, so that what a change to
the engine costs those who do not use it is known whatever else the machine does.

`python -m bench.engine.packet_cost [COMMIT …]` writes bench/results/packet-cost.json. Needs cc,
valgrind, and git for commits. Each world is counted with N frames and with 2 N: the difference are
N frames without what the program takes to begin. For time, versions take turns, and the median of
the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import RESULTS, ROOT, machine
from bench.tables import Record, table

FILE = RESULTS / "packet-cost.json"
DRIVER = Path(__file__).with_suffix(".c")
THIS = "this tree"
_SOURCES = (
    "pktd/core/*.c",
    "pktd/core/*/*.c",
    "pktd/record/*.c",
    "pktd/capture/*.c",
    "pktd/protocol/*.c",
    "pktd/ports/port_names.c",
    "pktd/tests/sim.c",
    "pktd/tests/frames.c",
    "common/*.c",
    "common/netlink/*.c",
)
_RATE, _DELAY = "rate=1000000000 queue=1000000", "delay=5000000"
_NONE = "jitter=0 loss=0 dist=normal up=1"
# What it is called, frames, words of the driver, properties.
WORLDS = (
    ("delay", 10_000, "1 36 0", f"rate=0 queue=0 {_DELAY} {_NONE}"),
    ("rate and delay", 10_000, "1 36 0", f"{_RATE} {_DELAY} {_NONE}"),
    ("rate and delay, of 400 in turn", 10_000, "100 36 0", f"{_RATE} {_DELAY} {_NONE}"),
    (
        "rate, delay, jitter and loss",
        10_000,
        "1 36 0",
        f"{_RATE} {_DELAY} jitter=100000 loss=10000000 dist=normal up=1",
    ),
    (
        "rate and delay; super-packets of 40 segments",
        1000,
        "1 57920 1448",
        f"{_RATE} {_DELAY} {_NONE}",
    ),
)
ROUNDS, LONGER = 9, 20  # of time: with so many times the frames


def sources(tree: Path) -> list[Path]:
    """Of pktd in `tree` what decides about packets, and the sim that drives it."""
    found = (path for pattern in _SOURCES for path in (tree / "tcal_c").glob(pattern))
    return sorted(path for path in found if not path.name.startswith("test_"))


def _build(tree: Path, program: Path) -> None:
    flags = ["-O2", "-g", "-std=c11", "-D_GNU_SOURCE", '-DVERSION="0"', f"-I{tree / 'tcal_c'}"]
    files = [str(path) for path in (program, DRIVER, *sources(tree))]
    words = ["cc", *flags, "-o", *files, "-pthread", "-lm"]
    subprocess.run(words, check=True)


def _instructions(program: Path, frames: int, words: Sequence[str]) -> int:
    with tempfile.NamedTemporaryFile(prefix="ts-callgrind-") as out:
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", str(program)]
        subprocess.run([*argv, str(frames), *words], check=True, capture_output=True)
        found = re.search(r"^summary: (\d+)", Path(out.name).read_text(), re.MULTILINE)
    assert found, "callgrind wrote no summary"
    return int(found.group(1))


def _ns(program: Path, frames: int, words: Sequence[str]) -> float:
    said = subprocess.run(
        [program, str(frames), *words], check=True, capture_output=True, text=True
    )
    return float(said.stdout)


def measure(programs: dict[str, Path]) -> list[Record]:
    """A row {world, of, instructions, ns} for each world and program, by what it is made of."""
    rows: list[Record] = []
    for world, frames, numbers, properties in WORLDS:
        words = [*numbers.split(), properties]
        times: dict[str, list[float]] = {of: [] for of in programs}
        for turn in range(ROUNDS):
            order = list(programs)
            for of in order[turn % len(order) :] + order[: turn % len(order)]:
                times[of].append(_ns(programs[of], frames * LONGER, words))
        for of, program in programs.items():
            counted = [_instructions(program, frames * many, words) for many in (1, 2)]
            row = {
                "world": world,
                "of": of,
                "instructions": (counted[1] - counted[0]) // frames,
                "ns": round(statistics.median(times[of]), 1),
            }
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    return rows


def by_world(rows: Sequence[Record]) -> str:
    """A line a world, two columns a version."""
    versions = list(dict.fromkeys(row["of"] for row in rows))
    head = ["Two links each with"]
    for of in versions:
        head += [f"{of}: instructions", "ns"]
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        found = {row["of"]: row for row in rows if row["world"] == world}
        cells = [(found[of]["instructions"], found[of]["ns"]) for of in versions]
        lines.append([world, *(f"{value:,}" for pair in cells for value in pair)])
    return table(head, lines)


TABLES = (by_world,)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commits", nargs="*", metavar="COMMIT")
    commits: list[str] = parser.parse_args().commits
    with tempfile.TemporaryDirectory(prefix="ts-packet-cost-") as name:
        trees = {commit: Path(name) / str(at) for at, commit in enumerate(commits)}
        for commit, tree in trees.items():
            tree.mkdir()
            packed = subprocess.run(
                ["git", "-C", ROOT, "archive", commit, "tcal_c"], check=True, capture_output=True
            )
            subprocess.run(["tar", "-x", "-C", tree], input=packed.stdout, check=True)
        programs: dict[str, Path] = {}
        for of, tree in {**trees, THIS: ROOT}.items():
            programs[of] = Path(name) / f"program-{len(programs)}"
            _build(tree, programs[of])
        document = {"machine": machine.describe(), "results": {"packet-cost": measure(programs)}}
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
