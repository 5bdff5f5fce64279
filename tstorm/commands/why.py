"""`tstorm why RUN`: when a failure was decided, and what happened then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import INTERRUPTED, CommandError
from tstorm.options import option_types

if TYPE_CHECKING:
    from tstorm.why.decision_search import Estimate


@click.command()
@click.argument("run", metavar="RUN", type=option_types.TextType())
@click.option(
    "--branches",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    default=100,
    show_default=True,
    help="Judge by N runs at most.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=option_types.WholeNumber(min=1),
    help="Carry out N of them at a time.  [default: one for each processor]",
)
@click.option(
    "-o",
    "--output",
    "page",
    metavar="F",
    type=option_types.TextType(),
    help="Write the page of RUN there, with the probability below its timeline.",
)
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
def command(
    run: str, branches: int, jobs: int | None, page: str | None, quiet: bool, form: str
) -> None:
    """Find the moment at which the failure of the recorded run RUN was decided.

    RUN is carried out again and again in virtual time, each time the same as it was until some
    moment, and with other draws from then on (--reseed): of programs' random bytes, of losses and
    jitter, of orders (--scatter) and of drawn targets. Before the decision some of these branches
    pass; after it all of them fail. The moment is looked for by bisection, and what happened then
    is printed: events, lines of logs, packets. Earlier moments at which the failure became more
    likely are told, too.

    A moment counts as decided if eight branches in a row fail there (sixteen at the one that is
    found, if N suffices): with a failure that is likely anyway this may be chance; the intervals
    say how well each probability is known. A failure that does not depend on any draw is decided
    by the plan: 'tstorm shrink' is the tool for that.

    The same RUN gives the same answer each time.

    \b
    Examples:
      tstorm why runs/bank/seed-7
      tstorm why runs/bank/seed-7 -o why.html
      tstorm why runs/bank/seed-7 --branches 200 --format json
    """
    from tstorm.command_support import errors_shown
    from tstorm.reporting import output_files
    from tstorm.why import answer, decision

    def tell(one: Estimate) -> None:
        if not quiet:
            output.note(decision.row(one))

    with errors_shown():
        found = answer.answered(run, branches, jobs, tell)
        if page is not None:
            output_files.put_file(page, [answer.page(found).encode("utf-8")])
    with output.product_kept_going():
        if form == "json":
            output.emit_json(found.to_json())
        else:
            for line in found.text():
                output.line(line)
    if found.stopped:
        raise CommandError(code=INTERRUPTED)
