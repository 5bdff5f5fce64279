"""The experiments of the paper on virtual time (docs/fidelity.md), carried out in virtual time and,
beside it in the same minutes, in real time; and one of ours with a thousand programs, in virtual
time twice, whose runs must be the same to the last byte.

`python -m bench.virtual.paper [NAME …]` writes bench/results/virtual-paper.json; what it is told to
measure replaces what the file has of it. It ends with 1 if a rate in virtual time is more than 1 %
off or the two runs differ. `python -m bench.report` brings the table of docs/fidelity.md up to it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import RESULTS, ROOT, machine
from bench.tables import Record, Table
from runtime.virtual.kernel import kernel_cache
from tests.virtual import repeating, scenes

FILE = RESULTS / "virtual-paper.json"
WITHIN = 0.01
SECONDS = 0.6  # of a flow on the chain
PHASE_SECONDS = 5  # the paper's are ten times as long
HOSTS_RAMP_SECONDS = 1.0  # a window for 42 ms takes longer
MEMBERS, SIDE = 1000, 10


@dataclass(frozen=True, slots=True)
class Run:
    directory: Path
    time: str  # virtual, real
    seconds: float  # of the whole command
    cpu_seconds: float
    load: str

    @property
    def verdict(self) -> str:
        return str(json.loads((self.directory / "summary.json").read_bytes())["verdict"]["state"])


def carry_out(source: Path, kind: str, out: Path) -> Run:
    """A run of it, in virtual or in real time."""
    command = [sys.executable, "-m", "tstorm", "run", str(source), "--quiet", "--out", str(out)]
    load = Path("/proc/loadavg").read_text().split()[0]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, "--time", kind],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(out, kind, seconds, used, load)


def _cost(run: Run, busy_seconds: float) -> Record:
    """`busy_seconds`: how long the experiment has traffic; what is idle takes no time."""
    return {
        "seconds": round(run.seconds, 2),
        "cpu_seconds": round(run.cpu_seconds, 2),
        "busy_seconds": busy_seconds,
        "verdict": run.verdict,
        "load_1min": run.load,
    }


def _rates(expected_bps: float, got_bps: list[float]) -> Record:
    """`off`: of the flow that is furthest from what was expected."""
    worst = max(got_bps, key=lambda rate: abs(rate / expected_bps - 1))
    return {
        "expected_bps": round(expected_bps),
        "goodput_bps": [round(rate) for rate in got_bps],
        "off": worst / expected_bps - 1,
    }


def chain(folder: Path, switches: int, rate_bps: int) -> Record:
    source = folder / "chain.tdl"
    source.write_text(scenes.chain(switches, rate_bps, SECONDS))
    row: Record = {}
    for kind in ("virtual", "real"):
        run = carry_out(source, kind, folder / kind)
        got = scenes.goodput_bps(run.directory, "server.0", scenes.RAMP_SECONDS)
        row[kind] = {**_rates(rate_bps * scenes.PAYLOAD, [got]), **_cost(run, SECONDS)}
    return row


def hosts(folder: Path) -> Record:
    source = folder / "hosts.tdl"
    source.write_text(scenes.line_of_hosts(PHASE_SECONDS))
    row: Record = {}
    for kind in ("virtual", "real"):
        run = carry_out(source, kind, folder / kind)
        got = [
            scenes.goodput_bps(run.directory, f"h{h}.0", HOSTS_RAMP_SECONDS)
            for _, h in scenes.PAIRS
        ]
        row[kind] = {**_rates(100e6 * scenes.PAYLOAD, got), **_cost(run, 4 * PHASE_SECONDS)}
    return row


def gossip(folder: Path) -> Record:
    source = folder / "gossip.tdl"
    source.write_text(scenes.gossip(MEMBERS, SIDE))
    scenes.compile_rumour(folder)
    row: Record = {}
    for kind in ("virtual", "real"):
        run = carry_out(source, kind, folder / kind)
        row[kind] = {
            **scenes.spread(run.directory, MEMBERS, SIDE),
            **_cost(run, scenes.END_MS / 1000),
        }
    again = carry_out(source, "virtual", folder / "again")
    digests = [repeating.contents(folder / name)[0] for name in ("virtual", "again")]
    row["repeats"] = digests[0] == digests[1]
    row["again_seconds"] = round(again.seconds, 2)
    return row


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    figure: str
    what: str
    paper: str  # what it measured, without and with virtual time
    measure: Callable[[Path], Record]


def _chain(figure: str, switches: int, rate_gbps: int, paper: str) -> Experiment:
    return Experiment(
        f"chain-{switches}-{rate_gbps}G",
        figure,
        f"{switches} switches, {rate_gbps} Gb/s",
        paper,
        lambda folder: chain(folder, switches, rate_gbps * scenes.GIGA),
    )


ALL = (
    _chain("4, 5", 40, 4, "as expected; as expected"),
    _chain("4", 40, 8, "28 % short; as expected"),
    _chain("4", 40, 10, "39 % short; as expected"),
    _chain("5", 20, 4, "falls from here on; 3.8 Gb/s"),
    _chain("5", 60, 4, "41 % short; 3.8 Gb/s"),
    _chain("5", 80, 4, "65 % short; 3.8 Gb/s"),
    _chain("5", 100, 4, "83 % short; 3.8 Gb/s"),
    Experiment(
        "hosts",
        "6, table 1",
        "100 hosts, five flows of 100 Mb/s",
        "unstable; near 100 Mb/s, 5.5 to 10 times slower",
        hosts,
    ),
    Experiment("gossip", "–", f"{MEMBERS:,} programs, {SIDE**2} bridges", "–", gossip),
)


def _time_text(ns: int) -> str:
    return f"{ns / 1000:.1f} µs" if ns < 1_000_000 else f"{ns / 1e6:.1f} ms"


def _short(part: Record) -> str:
    if "messages" in part:
        late = f"{_time_text(part['late_p50_ns'])}, at most {_time_text(part['late_max_ns'])}"
        return f"{part['members']:,} know after {part['rounds']:.1f} rounds; late by {late}"
    rates = [rate / 1e9 for rate in part["goodput_bps"]]
    unit, digits = ("Gb/s", 3) if min(rates) > 1 else ("Mb/s", 2)
    found = sorted({f"{rate * (1 if unit == 'Gb/s' else 1000):.{digits}f}" for rate in rates})
    text = " to ".join(dict.fromkeys((found[0], found[-1])))
    return f"{text} {unit}, {100 * part['off']:+.2f} %"


def _slowness(part: Record) -> str:
    times = (part[name] / part["busy_seconds"] for name in ("seconds", "cpu_seconds"))
    return ", ".join(f"{time:.1f}" for time in times)


TABLES = (
    Table(
        {
            "Figure": "{figure}",
            "Experiment": "{what}",
            "The paper: plain; in virtual time": "{paper}",
            "Here, plain": lambda row: f"{_short(row['real'])}, {row['real']['verdict'].upper()}",
            "Here, in virtual time": lambda row: (
                _short(row["virtual"]) + ("; twice the same" if row.get("repeats") else "")
            ),
            "real s, CPU s for a virtual one": lambda row: _slowness(row["virtual"]),
        }
    ),
)


def is_wrong(row: Record) -> bool:
    return abs(row["virtual"].get("off", 0)) > WITHIN or row.get("repeats") is False


def measure(experiment: Experiment) -> Record:
    with tempfile.TemporaryDirectory(prefix="ts-paper-") as folder:
        found = experiment.measure(Path(folder))
    words = {name: getattr(experiment, name) for name in ("name", "figure", "what", "paper")}
    return {**words, **found}


def main(names: list[str]) -> int:
    rows = {row["name"]: row for row in _recorded()}
    wrong = 0
    for experiment in (one for one in ALL if not names or one.name in names):
        row = measure(experiment)
        print(row, flush=True)
        rows[experiment.name] = row
        _write([rows[one.name] for one in ALL if one.name in rows])
        wrong += is_wrong(row)
    return 1 if wrong else 0


def _recorded() -> list[Record]:
    return json.loads(FILE.read_text())["results"]["paper"] if FILE.exists() else []


def _write(rows: list[Record]) -> None:
    kernel = kernel_cache.find()
    about = {**machine.describe(), "guest": kernel.facts.version if kernel else "named"}
    document = {"machine": about, "results": {"paper": rows}}
    FILE.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
