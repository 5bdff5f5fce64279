"""`tstorm check EXP.tdl`: diagnostics only."""

from __future__ import annotations

import click

from tstorm import options


@click.command()
@click.argument("file", metavar="EXP.tdl", type=options.INPUT)
@options.seed
@options.diagnostics
def command(file: str, seed: int | None, strict: bool, form: str) -> None:
    """Report everything that is wrong with EXP.tdl ('-' reads standard input).

    The file is compiled in full, so what only shows over time (too few instances to crash) is found
    too. Nothing is written. Ends with 1 when there is an error.

    \b
    Examples:
      tstorm check quickstart.tdl
      tstorm check --strict --format sarif quickstart.tdl > quickstart.sarif
    """
    from tstorm.loading import compile_file

    compile_file(file, seed, strict=strict, form=form)
