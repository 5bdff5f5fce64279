"""Brings the tables of docs/performance.md and docs/fidelity.md up to the JSON under bench/results.

Each holds two marker lines, `<!-- begin figures -->` and `<!-- end figures -->`. Between them
everything is generated, the rest is written by hand. `python -m bench.report` does only this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import RESULTS, ROOT, cluster, compiling
from bench.agents import control, large, metadata, sharing_model
from bench.engine import (
    commit,
    delay,
    many_flows,
    packet_cost,
    paths,
    rate,
    scale,
    stalls,
    throughput,
)
from bench.errors import BenchError
from bench.hosts import agree, congestion, reaction, shares, sharing, small, soak_judge
from bench.papers import rows as papers
from bench.papers.catalogue import ALL
from bench.routing import by_size
from bench.tables import Record, Tables
from bench.tcal import timings
from bench.virtual import aqm, hunt, paper, proof, speed, why

_ENGINE: dict[str, Tables] = {
    "throughput": throughput.TABLES,
    "delay": delay.TABLES,
    "rate": rate.TABLES,
    "paths": paths.TABLES,
    "scale": scale.TABLES,
    "many-flows": many_flows.TABLES,
    "commit": commit.TABLES,
    "compiling": compiling.TABLES,
}
# By file of results, in the document's order: a title, and tables by name of the results in it.
Sections = Mapping[str, tuple[str, Mapping[str, Tables]]]
PERFORMANCE: Sections = {
    "root": ("As root", _ENGINE),
    "user": ("As an ordinary user, in a user namespace", _ENGINE),
    "packet-cost": (
        "What a packet costs: `python -m bench.engine.packet_cost e3bfcb0b^ 4162a824^`",
        {"packet-cost": packet_cost.TABLES},
    ),
    "routing": ("Scale-free networks", {"routing": by_size.TABLES}),
    "metadata": ("Metadata between agents", {"metadata": metadata.TABLES}),
    "control": ("Control of agents", {"control": control.TABLES}),
    "agents": ("A thousand agents", {"agents": large.TABLES}),
    "cluster": ("A thousand nodes of a cluster: `make bench-cluster`", {"cluster": cluster.TABLES}),
    "sharing-model": ("Sharing model", {"sharing-model": sharing_model.TABLES}),
    "tcal": ("The kernel's datapath", {"tcal": timings.TABLES}),
    "hosts": (
        "Hosts: `python -m bench.hosts`",
        {
            "shares": shares.TABLES,
            "reaction": reaction.TABLES,
            "agree": agree.TABLES,
            "congestion": congestion.TABLES,
            "small": small.TABLES,
        },
    ),
    "soak": (
        "Soak: `python -m bench.hosts --only soak --minutes 20`",
        {"soak": soak_judge.TABLES},
    ),
    "stalls": (
        "Programs that do not run: `python -m bench.hosts --only stalls`",
        {"stalls": stalls.TABLES},
    ),
    "sharing": ("Sharing: examples/sixclients.tdl", {"sharing": sharing.TABLES}),
    "virtual-proof": ("Virtual time repeats: `make bench-virtual`", {"proof": proof.TABLES}),
    "virtual-why": (
        "The moment that decided: `python -m bench.virtual.why`",
        {"why": why.TABLES},
    ),
    "virtual-hunt": (
        "Storms to a bug: `python -m bench.virtual.hunt`",
        {"hunt": hunt.TABLES, "guest": hunt.IN_GUEST},
    ),
    "virtual-speed": ("Virtual time: `python -m bench.virtual.speed`", {"speed": speed.TABLES}),
}


FIDELITY: Sections = {
    **{
        f"papers/{name}": (
            f"{experiment.title}: `--only {name}`",
            {"rows": papers.TABLES, "cannot": papers.CANNOT},
        )
        for name, experiment in ALL.items()
    },
    "virtual-paper": ("Virtual time: `make bench-virtual`", {"paper": paper.TABLES}),
    "virtual-aqm": ("Queues that drop early: `python -m bench.virtual.aqm`", {"aqm": aqm.TABLES}),
}
DOCUMENTS: Mapping[Path, Sections] = {
    ROOT / "docs" / "performance.md": PERFORMANCE,
    ROOT / "docs" / "fidelity.md": FIDELITY,
}


def update(results: Path, documents: Mapping[Path, Sections] = DOCUMENTS) -> None:
    """Rewrites the generated part of each. Raises BenchError when its markers are missing."""
    pattern = re.compile(r"(<!-- begin figures -->\n).*?(<!-- end figures -->)", re.DOTALL)
    for document, sections in documents.items():
        text = document.read_text()
        found = pattern.search(text)
        if not found:
            raise BenchError(f"{document} has no '<!-- begin figures -->' … '<!-- end figures -->'")
        made = found.group(1) + figures(results, sections) + found.group(2)
        document.write_text(text[: found.start()] + made + text[found.end() :])


def figures(results: Path, sections: Sections) -> str:
    """The generated text for every result file that is there."""
    absent = [name for name in sections if not (results / f"{name}.json").exists()]
    parts = [
        section(name, json.loads((results / f"{name}.json").read_text()), sections)
        for name in sections
        if (results / f"{name}.json").exists()
    ]
    if not parts:
        return "No figures yet: run `make bench`.\n"
    if unmeasured := [name.partition("/")[2] for name in absent if "/" in name]:
        names = ", ".join(unmeasured)
        parts.append(f"Not measured yet (`python -m bench.papers --missing`): {names}.\n")
    return "\n".join(parts)


def section(name: str, document: Record, sections: Sections = PERFORMANCE) -> str:
    """The text of one file of results."""
    title, tables = sections[name]
    text = [f"### {title}\n", _machine(document["machine"])]
    for part, made in tables.items():
        if rows := document["results"].get(part):
            text += [make(rows) for make in made]
    return "\n".join(text)


def _machine(machine: Record) -> str:
    """What bench.machine has found, as a paragraph. Older results do not say how quiet it was."""
    late_us = machine.get("timers_late_p99_us")
    quiet = "" if late_us is None else f"; 1 of 100 timers late by {late_us / 1000:.2g} ms or more"
    steal = machine.get("steal_percent_before")
    quiet += f", taken by the hypervisor: {steal} %" if steal is not None else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib']} MiB, "
        f"{machine['kernel']}, virtual machine: {machine['hypervisor']}, load average before: "
        f"{machine['load_1min_before']}{quiet}.\n"
    )


if __name__ == "__main__":
    update(RESULTS)
    sys.exit(0)
