"""All experiments, in the order of docs/fidelity.md and of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.papers import (
    database,
    dynamics,
    fattree,
    filters,
    flows,
    inner,
    internet,
    machines,
    moving,
    pings,
    rates,
    scalefree,
    sharing,
    trunk,
)
from bench.papers.context import Context
from bench.tables import Record


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the document calls it, and who makes its rows."""

    title: str
    measure: Callable[[Context], list[Record]]


KOLLAPS, STORM, EMULATOR = "Kollaps", "Thunderstorm", "Link emulator"
INTERNET, NESTED = "Internet paths", "NestedNet"
ALL: Mapping[str, Experiment] = {
    "rates": Experiment(f"{KOLLAPS}, Table 2: rates", rates.table_2),
    "jitter": Experiment(f"{KOLLAPS}, Table 3: jitter between regions", pings.table_3),
    "scalefree": Experiment(f"{KOLLAPS}, Table 4: large networks", scalefree.measure),
    "flows": Experiment(f"{KOLLAPS}, Fig. 5: long and short flows", flows.figure_5),
    "curl": Experiment(f"{KOLLAPS}, Fig. 6: short connections", flows.figure_6),
    "mixed": Experiment(f"{KOLLAPS}, Fig. 7: mixed flows", flows.figure_7),
    "shares": Experiment(f"{KOLLAPS}, Fig. 8: shares", sharing.figure_8),
    "dynamics": Experiment(f"{STORM}, Fig. 8: changing topology", dynamics.figure_8),
    "dumbbell": Experiment(f"{STORM}, Fig. 9: shares and reaction", sharing.figure_9),
    "copy": Experiment(f"{STORM}, Fig. 10: background traffic", dynamics.figure_10),
    "geo-curve": Experiment(f"{STORM}, Fig. 11: a replicated database", database.figure_11),
    "geo-dynamic": Experiment(f"{STORM}, Fig. 12: its latency over time", database.figure_12),
    "lossy-100M": Experiment(f"{STORM}, Fig. 13: a database and loss", database.figure_13),
    "lossy-1G": Experiment(f"{STORM}, Fig. 14: the same at 1 Gb/s", database.figure_14),
    "emulator-rates": Experiment(f"{EMULATOR}, Table 4.1: bandwidth", rates.table_41),
    "emulator-delays": Experiment(f"{EMULATOR}, Table 4.2: delay", pings.table_42),
    "emulator-trunk": Experiment(f"{EMULATOR}, Figs 4.12 to 4.15: two clients", trunk.measure),
    "paths": Experiment(f"{INTERNET}, Table 2: a flow each way", internet.table_2),
    "paths-trip": Experiment(f"{INTERNET}, Fig. 5: round trips beside a flow", internet.figure_5),
    "paths-capacity": Experiment(f"{INTERNET}, Fig. 6: capacities", internet.figure_6),
    "paths-flows": Experiment(f"{INTERNET}, Fig. 8: several flows", internet.figure_8),
    "paths-shared": Experiment(f"{INTERNET}, Fig. 9: shared bottlenecks", internet.figure_9),
    "fattree": Experiment("Virtual time, Figs 7 to 11: a fat tree", fattree.measure),
    "machines": Experiment(f"{NESTED}, Tables 3.1, 3.8: machines with parts", machines.measure),
    "inner": Experiment(f"{NESTED}, Tables 3.2 to 3.7, Fig. 3.16: flows", inner.measure),
    "moving": Experiment(f"{NESTED}: machines that move and route", moving.measure),
    "filters": Experiment("Destinations: 1 to 64 k", filters.measure),
}
