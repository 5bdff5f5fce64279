"""Names of links on the command line: `A--B` as TDL writes it, `A->B` as plans do."""

from __future__ import annotations

import click

from compiler.plan.types import Topology
from tdl.suggest import did_you_mean


def link_of(topology: Topology, name: str) -> int:
    """The direction from A to B; a service with one instance stands for it. Usage error."""
    ends = name.split("--") if "--" in name else name.split("->")
    single = {one.name: f"{one.name}.0" for one in topology.services if one.replicas == 1}
    wanted = "->".join(single.get(end.strip(), end.strip()) for end in ends)
    for number, link in enumerate(topology.links):
        if link.name == wanted:
            return number
    known = [link.name.replace("->", "--") for link in topology.links]
    hint = did_you_mean(wanted.replace("->", "--"), known)
    said = f" {hint[0].upper()}{hint[1:]}" if hint else ""
    raise click.BadParameter(f"no link '{name}'.{said}", param_hint="'--link'")
