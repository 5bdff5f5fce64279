"""`tstorm check EXP.tdl`: diagnostics only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm.options import types
from tstorm.options.shared import budget, diagnostics, params, seed, underlay

if TYPE_CHECKING:
    from compiler.pipeline import Compilation


@click.command()
@click.argument("file", metavar="EXP.tdl", type=types.INPUT)
@seed
@params
@budget
@underlay
@diagnostics
def command(
    file: str,
    seed: int | None,
    params: dict[str, str],
    budget_bps: int | None,
    underlay_ns: int | None,
    strict: bool,
    form: str,
    most: int | None,
) -> None:
    """Report everything that is wrong with EXP.tdl ('-' reads standard input), or what is in it.

    The file is compiled in full, so errors that only show over time (too few instances to crash)
    are found, too. Programs that are not on this machine are warned about. Nothing is written. Ends
    with 1 when there is an error.

    \b
    Examples:
      tstorm check quickstart.tdl
      tstorm check --strict --format sarif quickstart.tdl > quickstart.sarif
      tstorm check --budget 10Gb --underlay 200us quickstart.tdl
    """
    from compiler.feasibility.warnings import Machines
    from tstorm import onpath
    from tstorm.loading import compile_text, folder_of, read_source

    find = onpath.finder(folder_of(file))
    machines = Machines(budget_bps=budget_bps, underlay_ns=underlay_ns, find=find)
    raw = read_source(file)
    found = compile_text(
        raw, file, seed, strict=strict, form=form, machines=machines, most=most, params=params
    )
    if form == "text":
        click.echo(_summary(found))


def _summary(found: Compilation) -> str:
    """`ok: 2 services, 4 instances, 3 links, 12 events, ends at 25s`."""
    from compiler.say import moment, number

    topology = found.topology
    counts = {
        "service": len(topology.services),
        "instance": sum(node.service >= 0 for node in topology.nodes),
        "link": len(topology.links) // 2,
        "event": len(found.events),
    }
    if found.plan.expectations:
        counts["expectation"] = len(found.plan.expectations)
    said = ", ".join(number(count, what) for what, count in counts.items())
    warned = f" with {number(len(found.diagnostics), 'warning')}" if found.diagnostics else ""
    return f"ok{warned}: {said}, ends at {moment(found.timeline.end_ns)}"
