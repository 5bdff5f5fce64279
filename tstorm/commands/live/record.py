"""`tstorm record RUN -o EXP.tdl`: what a run became, as a TDL file."""

from __future__ import annotations

from pathlib import Path

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.options.shared import run_argument


@click.command()
@run_argument(required=True)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="EXP.tdl",
    required=True,
    type=click.Path(dir_okay=False),
    help="The file to write; there must be none of this name.",
)
def command(run: str, out: str) -> None:
    """Write the experiment that RUN became: its own text, and what `tstorm do` has added and each
    `when` has done.

    Every action stands with the times at which it was carried out, and with what it has drawn. The
    text is compiled before it is written: its plan has the events of the run at the same moments.
    RUN may be going on: what is done to it later is missing then.

    Names of included files and of files= are as in the experiment's own text: write EXP.tdl beside
    it.

    \b
    Examples:
      tstorm record runs/a -o again.tdl
      tstorm record quickstart-20260301T120000Z -o steered.tdl && tstorm run steered.tdl
    """
    from compiler.plan.parts import action_texts
    from runtime.launch.run_status import directory_of, goes_on
    from runtime.rundir.rundir import plan_in
    from tstorm.command_support import errors_shown
    from tstorm.live import recording

    path = Path(out)
    with errors_shown():
        try:
            directory = directory_of(run)
            plan = plan_in(directory)
            if not goes_on(directory):
                recording.check_all_there(directory, plan)
            text = recording.text_of(plan, path.absolute().parent)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise CommandError(f"error: {out} is there already\nhint: name another file") from None
        except OSError as error:
            raise CommandError(f"error: {out}: {error.strerror}") from error
    count = sum(action_texts.number_of(name) > 0 for name in plan.attached.includes)
    fired = sum(action_texts.firing_of(name) is not None for name in plan.attached.includes)
    done = "1 action" if count - fired == 1 else f"{count - fired} actions"
    reacted = f", {fired} of reactions" if fired else ""
    output.line(f"{out}: {len(plan.events)} events, {done} by hand{reacted}")
