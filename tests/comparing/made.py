"""Run directories and campaigns with figures that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.options import DEFAULTS
from runtime.probing.probe_record import (
    ONE_CLOCK,
    ONE_WAY,
    OpenProbe,
    Probe,
    ProbesHeader,
    line,
)
from runtime.rundir.line_files import encode
from runtime.rundir.rundir import encode_json
from runtime.rundir.runfiles import FORMAT, VERSION
from tstorm.campaign import campaign_directory
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.points import Grid
from tstorm.campaign.results import PointResult

MS = 10**6
SECOND = 10**9
PAIRS = (("a.0", "b.0"), ("b.0", "a.0"))
# The programs of a run end after it, which takes them 5 s here.
EVENTS = (
    {"kind": "quit", "target": "", "applied_ns": 2 * SECOND, "planned_ns": 2 * SECOND},
    {
        "kind": "exit",
        "target": "a.0",
        "applied_ns": 7 * SECOND,
        "status": 0,
        "signal": 15,
        "asked": True,
    },
)
NONE: Mapping[str, str | None] = {}
HEADER = ProbesHeader(0, ONE_CLOCK, ONE_WAY, PAIRS, SECOND, (SECOND, SECOND), 2)


def run(
    place: Path,
    *,
    seed: int = 1,
    verdict: str = "valid",
    delays_ns: Sequence[int | None] = (),
    delivered_bytes: int = 0,
    failures: Sequence[str] = (),
    expectations: Sequence[Mapping[str, Any]] = (),
    figures: Mapping[str, str | None] = NONE,
    outcome: str = "completed",
    events: Sequence[Mapping[str, Any]] = EVENTS,
    settings: Mapping[str, str] | None = None,
    open_: int = 0,
    told: bool = True,
    **options: Any,
) -> Path:
    """`delays_ns` of the probes from a.0 to b.0; those back are sent between two of them, and take
    1 ms. Behind them so many are `open_`, if that was `told`."""
    place.mkdir(parents=True)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "run_id": "r",
        "experiment": "e",
        "plan_digest": "d",
        "seed": seed,
        "options": {**DEFAULTS.to_record(), **options},
        "outcome": outcome,
        **({"instance_network": settings} if settings else {}),
    }
    drops = {"drop_queue": 0, "drop_loss": 0, "drop_down": 0}
    counted = {"offered_pkts": 1, "delivered_pkts": 1, "delivered_bytes": delivered_bytes}
    summary = {
        "verdict": {"state": verdict},
        "outcome": outcome,
        "events": {"applied": 0, "planned": 0, "lag": {"p99_ns": 0, "max_ns": 0}},
        "links": [],
        "failures": [{"target": name, "last_log_line": ""} for name in failures],
        "pairs": [{"src": "a.0", "dst": "b.0", **counted, **drops}],
        **({"expectations": list(expectations)} if expectations else {}),
        "figures": [figure(name, value) for name, value in figures.items()],
    }
    (place / "manifest.json").write_bytes(encode_json(manifest))
    (place / "summary.json").write_bytes(encode_json(summary))
    (place / "events.jsonl").write_bytes(b"".join(map(encode, events)))
    apart_ns = SECOND * options.get("pace", 1)  # plan time, which alone is faster
    probes = [
        probe
        for number, delay_ns in enumerate(delays_ns)
        for probe in (
            Probe(0, number * apart_ns, delay_ns),
            Probe(1, number * apart_ns + apart_ns // 2, MS),
        )
    ]
    whole = len(delays_ns) + open_
    late = [OpenProbe(0, number * apart_ns) for number in range(len(delays_ns), whole)]
    report = line(whole * apart_ns, probes, open_=late, last=True)
    if not told:  # as in a cluster
        probes += [Probe(1, number * apart_ns, MS) for number in range(len(delays_ns), whole)]
        report = line(whole * apart_ns, probes)
    records = [HEADER.to_record(), report]
    if probes:
        (place / "probes.jsonl").write_bytes(b"".join(map(encode, records)))
    return place


def campaign(
    place: Path, runs: Sequence[Mapping[str, Any]], params: Sequence[str] = (), **more: Any
) -> Path:
    """A run for each seed from 1 on with these figures, for each value of the parameter `x`. `by`:
    the figure `lost` of a run for each value."""
    grid = Grid(range(1, len(runs) + 1), (("x", tuple(params)),) if params else ())
    record = CampaignRecord("e", "e.tdl", "d", grid, DEFAULTS)
    with campaign_directory.opened(place, record) as made:
        for point in grid.points():
            one = dict(runs[point.seed - 1])
            for value in one.pop("by", {}).get(dict(point.params).get("x"), ()):
                one["figures"] = {"lost": value}
            run(made.place(point), seed=point.seed, **{**one, **more})
            outcome = str(one.get("outcome", "completed"))
            made.add(PointResult(point, 0, outcome, "valid", ran=True))
    return place


def figure(name: str, value: str | None) -> dict[str, Any]:
    """As summary.json has it."""
    about = {"text": f'figure {name} = log a "([0-9]+)"', "line": 1, "file": "", "message": ""}
    return {**about, "name": name, "instance": "a.0", "value": value}


def expectation(text: str, state: str, figure: int | None = None, unit: str = "") -> dict[str, Any]:
    """As summary.json has it."""
    about = {"text": text, "line": 1, "file": "", "kind": "rtt", "message": "", "subject": ""}
    bounds = {"threshold": 5 * MS, "at_ns": None, "log": []}
    return {**about, **bounds, "state": state, "figure": figure, "unit": unit}


def rows(document: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The figures of `tstorm compare --format json`, by name and subject."""
    found = json.loads(document)["figures"]
    return {(one["figure"], one["params"] + one["of"]): one for one in found}
