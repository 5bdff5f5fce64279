"""`python -m bench.hosts [--only PART…] [--seeds N]`: runs over local hosts against the model.

shares      the papers' networks over 1, 2 and 4 hosts: measured shares against the model's
agree       random networks, hop-exact and over hosts: rate of every flow, round trip of a probe
reaction    how long until two flows have their shares after the second has begun
congestion  what TCP sees at a link that is too small, over hosts and hop-exact
soak        a long run: does anything grow or drift (only when asked for; --minutes)

Writes bench/results/hosts.json (the soak: soak.json) and its tables in docs/performance.md, where
it stands what is measured how. Exit code 1 when a bound is missed (the figures are written all the
same). --keep: the run directories stay there.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.engine.probing import Record
from bench.errors import BenchError
from bench.hosts import congestion, reaction, report, shares, soak, soak_report
from bench.machine import describe
from bench.report import RESULTS, ROOT, update
from tests.runs import scenes
from tests.runs.delivered import Delivered
from tests.runs.runlog import IncompleteRunError, RunLog
from tests.runs.scenes import Scene

FIRST = -10  # nice; only root may
WINDOW_S = (4.0, 11.5)  # of a random experiment: settled, and before the programs end


def main() -> int:
    options = _options()
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)  # before what else the machine does
    results: dict[str, list[Record]] = {}
    try:
        with _folder(options.keep) as folder:
            for name in options.only or [name for name in PARTS if name != "soak"]:
                results[name] = PARTS[name](folder, options)
    except (BenchError, IncompleteRunError) as error:
        print(f"hosts: {error}", file=sys.stderr)
        return 1
    finally:
        _write(results, partly=bool(options.only))
    missed = report.missed(results) + soak_report.missed(results.get("soak", ()))
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="may be repeated")
    parser.add_argument("--seeds", type=int, default=12, help="how many random networks")
    parser.add_argument("--minutes", type=int, default=20, help="how long the soak is")
    parser.add_argument("--keep", type=Path, help="a folder for the run directories, which stay")
    return parser.parse_args()


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="tstorm-bench-") as folder:
        yield Path(folder)


def _write(results: dict[str, list[Record]], *, partly: bool) -> None:
    """Each file keeps what was not measured now, if only parts were asked for."""
    machine = {**describe(), "privilege": "root" if os.geteuid() == 0 else "user"}
    files = {name: RESULTS / ("soak.json" if name == "soak" else "hosts.json") for name in results}
    for path in sorted(set(files.values())):
        now = {name: rows for name, rows in results.items() if files[name] == path}
        before = json.loads(path.read_text())["results"] if partly and path.exists() else {}
        document = {"format": 1, "machine": machine, "results": {**before, **now}}
        RESULTS.mkdir(exist_ok=True)
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        reporter = soak_report if path.name == "soak.json" else report
        print(reporter.section({**document, "results": now}))
    if files:
        update(RESULTS)


def carry_out(source: Path, out: Path, hosts: int, *more: str) -> Path:
    """Runs an experiment; 0 hosts: hop-exact. The run directory."""
    argv = [sys.executable, "-m", "tstorm", "run", str(source), "--out", str(out), "--quiet"]
    argv += ["--hosts", str(hosts)] if hosts else []
    done = subprocess.run([*argv, *more], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BenchError(f"{source.name} over {hosts} hosts ended with {done.returncode}")
    return out


def _shares(folder: Path, _options: Namespace) -> list[Record]:
    return shares.measure(folder, carry_out)


def _reaction(folder: Path, _options: Namespace) -> list[Record]:
    source = folder / "reaction.tdl"
    source.write_text(reaction.text(sys.executable))
    rows = []
    for hosts in (1, 2, 4):
        run = carry_out(source, folder / f"reaction-{hosts}", hosts)
        rows.append({"hosts": hosts, **reaction.read(run)})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _agree(folder: Path, options: Namespace) -> list[Record]:
    rows: list[Record] = []
    for seed in range(1, options.seeds + 1):
        scene = scenes.random_scene(seed)
        source = folder / f"random-{seed}.tdl"
        source.write_text(scene.text)
        hosts = 2 + seed % 3
        exact = carry_out(source, folder / f"random-{seed}-exact", 0)
        spread = carry_out(source, folder / f"random-{seed}-hosts", hosts)
        rows.append(_compared(scene, exact, spread, hosts))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _compared(scene: Scene, exact: Path, spread: Path, hosts: int) -> Record:
    rates = [_delivered(run) for run in (exact, spread)]
    names = sorted(scene.shares)
    return {
        "seed": scene.seed,
        "hosts": hosts,
        "full_links": scene.full,
        "flows": names,
        "elastic": [name in scene.elastic for name in names],
        "model_mbps": [round(scene.shares[name] / 1e6, 3) for name in names],
        "exact_mbps": [round(rates[0][name] / 1e6, 3) for name in names],
        "hosts_mbps": [round(rates[1][name] / 1e6, 3) for name in names],
        "probe_waits": scene.probe_waits,
        "exact_rtt_ms": _round_trip(exact),
        "hosts_rtt_ms": _round_trip(spread),
    }


def _delivered(run: Path) -> dict[str, float]:
    """b/s of IP bytes delivered by client's service, from the run's counters over the window."""
    found = Delivered(run)
    return {
        source.partition(".")[0]: found.mean_bps((source, dest), *WINDOW_S)
        for source, dest in found.pairs()
        if source[0] == "c" and dest == f"s{source[1:]}"
    }


def _round_trip(run: Path) -> float:
    """Median of the probe in ms over the window."""
    low, high = WINDOW_S
    probes = RunLog(run).probes("p.0")
    found = [p.rtt_ms for p in probes if low <= p.sent_s <= high and p.rtt_ms is not None]
    if len(found) < 20:
        raise BenchError(f"{run.name}: only {len(found)} probes came back")
    return round(statistics.median(found), 4)


def _congestion(folder: Path, _options: Namespace) -> list[Record]:
    return congestion.measure(folder, carry_out)


def _soak(folder: Path, options: Namespace) -> list[Record]:
    return soak.measure(folder, options.minutes)


PARTS: dict[str, Callable[[Path, Namespace], list[Record]]] = {
    "shares": _shares,
    "agree": _agree,
    "congestion": _congestion,
    "reaction": _reaction,
    "soak": _soak,
}

if __name__ == "__main__":
    sys.exit(main())
