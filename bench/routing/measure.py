"""The compiler at scale, beside scipy, rustworkx and networkx on the same networks.

Input: the texts of tests.plan.topologies. Output: rows told apart by `part`:
compile     `tstorm compile` of the whole file;
query       `tstorm paths` about one pair in the middle of the experiment, median of five;
all-pairs   the properties of all paths between instances, from the links on;
repair      the routes of every epoch by repairing those of the one before;
recompute   the shortest path trees of some epochs from scratch, by a library;
ratio       one repaired epoch against one recomputed by the best library;
agreement   all paths of sampled sources against networkx, exactly, after every 50th event;
growth      the exponent of each over the sizes; target: what is to be reached, and whether it is.

Every row is measured in a process of its own. Where a library would take minutes it has fewer
sources or epochs, which the row says, and is extrapolated in proportion to them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import ROOT
from bench.errors import BenchError
from bench.routing.judge import growths, targets
from bench.tables import Record
from tests.plan.topologies import EVENTS, INSTANCES, scale_free

SIZES = (1000, 2000, 4000)
LARGE = 10_000
QUICK = (250,)
EVERY = 50  # events between two comparisons with networkx
SAMPLED, SAMPLED_LARGE = 5, 2  # sources in each of these comparisons
REPEATS = 3  # of what takes seconds at most; the best counts
PLAN_FILES = (
    *("plan.json", "source.tdl", "topology.json"),
    *("timeline.jsonl", "snapshots.jsonl", "routes.bin"),
)

# tool, over what, repeats, sources at most (0 = all)
_PAIRS = (
    ("tstorm", "bridges", REPEATS, 0),
    ("scipy", "bridges", REPEATS, 0),
    ("rustworkx", "bridges", REPEATS, 0),
    ("networkx", "bridges", 1, 0),
    ("scipy", "whole", 1, 0),
    ("rustworkx", "whole", 1, 0),
    ("networkx", "whole", 1, 100),
)
_PAIRS_LARGE = (
    ("tstorm", "bridges", 1, 0),
    ("scipy", "bridges", 1, 0),
    ("rustworkx", "bridges", 1, 0),
)
# tool, over what, epochs
_EPOCHS = (
    ("scipy", "bridges", 20),
    ("rustworkx", "bridges", 10),
    ("networkx", "bridges", 1),
    ("scipy", "whole", 3),
    ("rustworkx", "whole", 1),
)
_EPOCHS_LARGE = (("scipy", "bridges", 3), ("rustworkx", "bridges", 3))


def measure(quick: bool) -> list[Record]:
    """All rows. Raises BenchError if something fails or is missing, not for a target missed."""
    rows: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in QUICK if quick else (*SIZES, LARGE):
            rows += _at(size, Path(folder))
    found = growths(rows)
    return [*rows, *found, *targets(rows)]


def _at(size: int, folder: Path) -> Iterator[Record]:
    large = size == LARGE
    source, plan = folder / f"{size}.tdl", folder / f"{size}.plan"
    source.write_text(scale_free(size))
    yield _said(size, _compile(source, plan, size))
    yield _said(size, _query(plan, size))
    for row in _all_pairs(plan, _PAIRS_LARGE if large else _PAIRS, size not in QUICK):
        yield _said(size, row)
    repaired = _said(size, {"part": "repair", **_job("repair", plan)})
    recomputed: list[Record] = []
    for tool, over, count in _EPOCHS_LARGE if large else _EPOCHS:
        row = _job("recompute", plan, tool, over, count)
        recomputed.append(_said(size, {"part": "recompute", "tool": tool, "over": over, **row}))
    yield from (repaired, *recomputed, _said(size, _ratio(repaired, recomputed)))
    found = _job("agree", plan, SAMPLED_LARGE if large else SAMPLED, EVERY)
    yield _said(size, {"part": "agreement", **found})


def _said(size: int, row: Record) -> Record:
    """The row with its size; it also goes to stderr at once, since all of it takes minutes."""
    made = {"part": row["part"], "size": size, **row}
    print("  " + " ".join(f"{key}={value}" for key, value in made.items()), file=sys.stderr)
    return made


def _job(*words: object) -> Record:
    """One job of bench.routing.job in a process of its own."""
    argv = [sys.executable, "-m", "bench.routing.job", *map(str, words)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{words[0]} {' '.join(map(str, words[2:]))}: {done.stderr.strip()}")
    record: Record = json.loads(done.stdout)
    return record


def _command(*words: str) -> Record:
    """A whole tstorm command; raises BenchError with its own words when it fails."""
    argv = [
        sys.executable,
        "-m",
        "bench.routing.measured",
        sys.executable,
        "-m",
        "tstorm",
        *words,
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    record: Record = json.loads(done.stdout)
    if record["status"] != 0:
        raise BenchError(f"tstorm {words[0]} failed: {record['stderr'].strip()[-500:]}")
    return record


def _compile(source: Path, plan: Path, size: int) -> Record:
    bare = _command("compile", str(source), "-o", str(plan), "--no-manifests")
    done = _command("compile", str(source), "-o", str(plan))
    return {
        "part": "compile",
        "instances": INSTANCES.get(size, size * 2 // 3),
        "events": EVENTS,
        **_figures(done),
        "without_manifests": _figures(bare),
        "plan_bytes": sum((plan / name).stat().st_size for name in PLAN_FILES),
        "manifests_bytes": sum(file.stat().st_size for file in (plan / "manifests").iterdir()),
        "text_bytes": source.stat().st_size,
    }


def _figures(done: Record) -> Record:
    return {name: done[name] for name in ("wall_s", "cpu_s", "peak_mib")}


def _query(plan: Path, size: int) -> Record:
    last = INSTANCES.get(size, size * 2 // 3) - 1
    at = f"{EVENTS // 2}s"
    words = ("paths", str(plan), "--at", at, "--from", "n0", "--to", f"n{last}")
    runs = [_command(*words) for _ in range(5)]
    if any(f"n{last}.0" not in run["stdout"] for run in runs):
        raise BenchError(f"tstorm {' '.join(words[2:])} does not show the pair")
    return {
        "part": "query",
        **{name: statistics.median(run[name] for run in runs) for name in _figures(runs[0])},
    }


def _all_pairs(
    plan: Path, wanted: tuple[tuple[str, str, int, int], ...], repeated: bool
) -> Iterator[Record]:
    """Delays and hops are compared source by source; the first tool is the measure."""
    ours: dict[str, list[int]] = {}
    for tool, over, repeats, most in wanted:
        runs = [
            _job("all-pairs", plan, tool, over, most) for _ in range(repeats if repeated else 1)
        ]
        row = min(runs, key=lambda run: run["wall_s"])
        sums = row.pop("sums")
        ours = ours or sums
        differ = [source for source, found in sums.items() if found != ours[source]]
        if differ:
            raise BenchError(f"{tool} over {over}: other delays or hops from {differ[:10]}")
        share = len(sums) / len(ours)
        row |= {f"all_{name}": round(row[name] / share, 4) for name in ("wall_s", "cpu_s")}
        yield {"part": "all-pairs", "tool": tool, "over": over, **row, "of": len(ours)}


def _ratio(repaired: Record, recomputed: list[Record]) -> Record:
    """`ratio_if_needed`: as if the library too had known which epochs need no search."""
    best = min(recomputed, key=lambda row: row["mean_ms"])
    epochs = repaired["epochs"]
    needed = best["mean_ms"] * repaired["new_lengths"] / epochs
    return {
        "part": "ratio",
        "best": f"{best['tool']} over {best['over']}",
        "best_ms": best["mean_ms"],
        "repair_ms": repaired["mean_ms"],
        "best_all_epochs_s": round(best["mean_ms"] * epochs / 1000, 2),
        "ratio": round(best["mean_ms"] / repaired["mean_ms"], 1),
        "ratio_if_needed": round(needed / repaired["mean_ms"], 1),
    }


def missed(rows: list[Record]) -> list[str]:
    """Targets missed, in words; an agreement that fails is among them."""
    return [
        f"{row['what']}: {row['measured']} instead of {row['bound']}"
        for row in rows
        if row["part"] == "target" and not row["met"]
    ]


def differs(rows: list[Record]) -> int:
    """How many sizes have paths that networkx finds otherwise."""
    return sum(row["part"] == "agreement" and bool(row["differences"]) for row in rows)
