"""`tstorm compile EXP.tdl`: text in, plan directory out."""

from __future__ import annotations

from pathlib import Path

import click

from tstorm import options


@click.command()
@click.argument("file", metavar="EXP.tdl", type=options.INPUT)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=options.DIRECTORY,
    help="The plan directory.  [default: EXP.plan in the working directory]",
)
@options.seed
@options.diagnostics
def command(file: str, output: str | None, seed: int | None, strict: bool, form: str) -> None:
    """Compile EXP.tdl ('-' reads standard input) into a plan directory.

    The same text and seed give the same bytes everywhere. The plan is written whole or not at all;
    an older plan in its place is replaced, anything else is left alone.

    \b
    Examples:
      tstorm compile quickstart.tdl                 # writes quickstart.plan
      tstorm compile quickstart.tdl -o out/p --seed 7
      generate | tstorm compile - -o generated.plan
    """
    if output == "-":
        raise click.BadParameter(
            "a plan is a directory and cannot go to standard output; "
            "for its content see 'tstorm events' and 'tstorm paths'",
            param_hint="'-o'",
        )
    from tstorm.loading import compile_file, source_name, write_plan

    compilation = compile_file(file, seed, strict=strict, form=form)
    directory = Path(output) if output else Path(Path(source_name(file)).stem + ".plan")
    digest = write_plan(compilation, directory)
    click.echo(
        f"{directory}: {len(compilation.events)} events, seed {compilation.plan.seed}, "
        f"sha256 {digest}",
        err=form != "text",
    )
