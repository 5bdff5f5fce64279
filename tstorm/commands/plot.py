"""`tstorm plot RUN|EXP`: pictures of a pair or a link over time, for papers and pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output, parameters

if TYPE_CHECKING:
    from tstorm.plotting.pair import Drawn
    from tstorm.plotting.subject import Subject

_SUFFIXES = (".svg", ".png")


@click.command()
@click.argument("source", metavar="RUN|EXP", type=parameters.INPUT)
@click.option("--pair", metavar="A B", nargs=2, help="Delay and throughput from A to B over time.")
@click.option("--link", metavar="A--B", help="Throughput, queues and losses of a link over time.")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="F",
    type=parameters.Text(),
    required=True,
    help="The file: F.svg or F.png.",
)
@parameters.seed
def command(
    source: str, pair: tuple[str, str] | None, link: str | None, target: str, seed: int | None
) -> None:
    """Draw a pair or a link of a run or an experiment.

    RUN is a run's directory, EXP a plan or a TDL file, of which only what is planned is drawn.
    Planned delays are a line, measured ones dots, events are marked with their statements; grey is
    where no path is. The same input gives the same bytes. It takes matplotlib: pip install
    'thunderstorm[plot]'. docs/reports.md has pictures.

    \b
    Examples:
      tstorm plot runs/first --pair client server.0 -o pair.svg
      tstorm plot runs/first --link s1--s2 -o link.png
      tstorm plot quickstart.tdl --pair client server.0 -o planned.svg
    """
    suffix = Path(target).suffix.lower()
    if suffix not in _SUFFIXES:
        message = f"{target!r} is neither .svg nor .png; pictures have one of these suffixes"
        raise click.BadParameter(message, param_hint="'-o'")
    if (pair is None) == (link is None):
        raise click.UsageError("say what to draw: either --pair A B or --link A--B.")
    from tstorm.plotting.subject import subject
    from tstorm.reporting import place
    from tstorm.running import errors_shown

    with errors_shown():
        drawn = _drawn(subject(source, seed), pair, link, suffix)
        for text in drawn.notes:
            output.note(f"note: {text}")
        place.put_file(target, [drawn.data])


def _drawn(what: Subject, pair: tuple[str, str] | None, link: str | None, suffix: str) -> Drawn:
    from tstorm.naming import one_instance

    topology = what.plan.topology
    if pair is not None:
        from tstorm.plotting import pair as pairs

        ends = [one_instance(topology.services, topology.nodes, name, "--pair") for name in pair]
        if ends[0] == ends[1]:
            raise click.BadParameter("a pair is two instances.", param_hint="'--pair'")
        return pairs.draw(what, ends[0], ends[1], suffix)
    from tstorm.plotting import link as links
    from tstorm.plotting.naming import link_of

    return links.draw(what, link_of(topology, str(link)), suffix)
