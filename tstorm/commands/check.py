"""`tstorm check EXP.tdl`: diagnostics only."""

from __future__ import annotations

import click

from tstorm import parameters


@click.command()
@click.argument("file", metavar="EXP.tdl", type=parameters.INPUT)
@parameters.seed
@parameters.budget
@parameters.underlay
@parameters.diagnostics
def command(
    file: str,
    seed: int | None,
    budget_bps: int | None,
    underlay_ns: int | None,
    strict: bool,
    form: str,
    most: int | None,
) -> None:
    """Report everything that is wrong with EXP.tdl ('-' reads standard input).

    The file is compiled in full, so errors that only show over time (too few instances to crash)
    are found, too. Nothing is written. Ends with 1 when there is an error.

    \b
    Examples:
      tstorm check quickstart.tdl
      tstorm check --strict --format sarif quickstart.tdl > quickstart.sarif
      tstorm check --budget 10Gb --underlay 200us quickstart.tdl
    """
    from compiler.feasibility.warnings import Machines
    from tstorm.loading import compile_text, read_source

    machines = Machines(budget_bps=budget_bps, underlay_ns=underlay_ns)
    raw = read_source(file)
    compile_text(raw, file, seed, strict=strict, form=form, machines=machines, most=most)
