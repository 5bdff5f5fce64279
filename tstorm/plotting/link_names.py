"""Names of links on the command line: `A--B` as TDL writes it, `A->B` as plans do, and in front of
either, or alone, what `name=` calls a link."""

from __future__ import annotations

import click

from compiler.plan.types import Topology, direction_name, named_direction
from tdl.suggest import did_you_mean


def link_of(topology: Topology, name: str) -> int:
    """The direction from A to B; a service with one instance stands for it. Of several between
    the two the first that is declared, unless it is named. Usage error."""
    single = {one.name: f"{one.name}.0" for one in topology.services if one.replicas == 1}
    src, dst, called = (word.strip() for word in named_direction(name.replace("--", "->")))
    src, dst = single.get(src, src), single.get(dst, dst)
    wanted = direction_name(src, dst, called)
    for number, link in enumerate(topology.links):
        a, b, its = named_direction(link.name)
        if ((a, b) == (src, dst) and called in ("", its)) or (its and its == name.strip()):
            return number
    known = [link.name.replace("->", "--") for link in topology.links]
    hint = did_you_mean(wanted.replace("->", "--"), known)
    said = f" {hint[0].upper()}{hint[1:]}" if hint else ""
    raise click.BadParameter(f"no link '{name}'.{said}", param_hint="'--link'")
