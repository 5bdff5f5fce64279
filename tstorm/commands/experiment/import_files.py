"""`tstorm import FILE`: a file of another tool as TDL."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.options import option_types
from tstorm.options.shared import params

STDOUT = "-"


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=option_types.INPUT)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="EXP.tdl",
    default=STDOUT,
    type=option_types.TextType(),
    help="Where to write it; '-', the default, is standard output.",
)
@params
def command(files: tuple[str, ...], target: str, params: dict[str, str]) -> None:
    """Print what the FILEs of another tool say as TDL: one file, or several that are merged.

    It reads Compose files (docs/from-compose.md), and topologies of Kollaps, containerlab, Mininet
    and others (docs/import.md), by their names. What cannot be carried over is told with its place.
    The text compiles to the same plan as 'tstorm compile' of the file, and from then on it is
    yours; 'include' in a TDL file reads the file itself each time.

    \b
    Examples:
      tstorm import docker-compose.yml
      tstorm import topo.py:tree,depth=2 -o exp.tdl
      tstorm import docker-compose.yml docker-compose.test.yml --param TAG=2 -o shop.tdl
    """
    from tstorm.command_support import errors_shown
    from tstorm.loading import is_foreign, translated
    from tstorm.reporting import output_files

    for file in files:
        if not is_foreign(file):
            raise CommandError(f"error: {file}: of no format that is known (docs/import.md)")
    text = translated(files[0], files[1:], params)
    if target == STDOUT:
        click.echo(text, nl=False)
        return
    with errors_shown():
        output_files.put_file(target, [text.encode()])
    there, here = Path(target).absolute().parent, Path(files[0]).absolute().parent
    if os.path.realpath(there) != os.path.realpath(here) and any(
        word in text for word in (" files=", " mount=")
    ):
        output.note(f"note: names of files in it begin in {here}: put it there")
