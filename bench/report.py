"""Brings the tables of docs/performance.md up to the JSON under bench/results.

The document holds two marker lines, `<!-- begin figures -->` and `<!-- end figures -->`. Between
them everything is generated, the rest is written by hand. `python -m bench.report` does only this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import RESULTS, ROOT, cluster, compiling
from bench.agents import control, large, metadata, sharing_model
from bench.engine import commit, delay, paths, rate, scale, throughput
from bench.errors import BenchError
from bench.hosts import agree, congestion, reaction, shares, sharing, soak_judge
from bench.routing import by_size
from bench.tables import Record, Tables
from bench.tcal import timings

DOCUMENT = ROOT / "docs" / "performance.md"

_ENGINE: dict[str, Tables] = {
    "throughput": throughput.TABLES,
    "delay": delay.TABLES,
    "rate": rate.TABLES,
    "paths": paths.TABLES,
    "scale": scale.TABLES,
    "commit": commit.TABLES,
    "compiling": compiling.TABLES,
}
# By file of results, in the document's order: a title, and tables by name of the results in it.
SECTIONS: dict[str, tuple[str, Mapping[str, Tables]]] = {
    "root": ("As root", _ENGINE),
    "user": ("As an ordinary user, in a user namespace", _ENGINE),
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
        },
    ),
    "soak": (
        "Soak: `python -m bench.hosts --only soak --minutes 20`",
        {"soak": soak_judge.TABLES},
    ),
    "sharing": ("Sharing: examples/sixclients.tdl", {"sharing": sharing.TABLES}),
}


def update(results: Path, document: Path = DOCUMENT) -> None:
    """Rewrites the generated part of `document`. Raises BenchError when its markers are missing."""
    text = document.read_text()
    pattern = re.compile(r"(<!-- begin figures -->\n).*?(<!-- end figures -->)", re.DOTALL)
    if not pattern.search(text):
        raise BenchError(f"{document} has no '<!-- begin figures -->' … '<!-- end figures -->'")
    made = figures(results)
    document.write_text(pattern.sub(lambda found: found.group(1) + made + found.group(2), text))


def figures(results: Path) -> str:
    """The generated text for every result file that is there."""
    parts = [
        section(name, json.loads((results / f"{name}.json").read_text()))
        for name in SECTIONS
        if (results / f"{name}.json").exists()
    ]
    return "\n".join(parts) if parts else "No figures yet: run `make bench`.\n"


def section(name: str, document: Record) -> str:
    """The text of one file of results."""
    title, tables = SECTIONS[name]
    text = [f"### {title}\n", _machine(document["machine"])]
    for part, made in tables.items():
        if rows := document["results"].get(part):
            text += [make(rows) for make in made]
    return "\n".join(text)


def _machine(machine: Record) -> str:
    """What bench.machine has found, as a paragraph."""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib']} MiB, "
        f"{machine['kernel']}, virtual machine: {machine['hypervisor']}, load average before: "
        f"{machine['load_1min_before']}.\n"
    )


if __name__ == "__main__":
    update(RESULTS)
    sys.exit(0)
