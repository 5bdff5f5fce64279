"""`tstorm plot RUN|EXP`: a pair, a link or the timeline, or the network, for papers and pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output, units
from tstorm.options import option_types
from tstorm.options.shared import seed

if TYPE_CHECKING:
    from tstorm.plotting.pair_picture import Drawn
    from tstorm.plotting.subject import Subject

_PICTURES, _TEXTS = (".svg", ".png"), (".dot", ".mmd", ".graphml")


@click.command()
@click.argument("source", metavar="RUN|EXP", type=option_types.INPUT)
@click.option("--pair", metavar="A B", nargs=2, help="Delay and throughput from A to B over time.")
@click.option("--link", metavar="A--B", help="Throughput, queues and losses of a link over time.")
@click.option(
    "--timeline", is_flag=True, help="Who is there when, and what changes, as it is planned."
)
@click.option("--topology", is_flag=True, help="The network at a moment.")
@click.option(
    "--at", "at_ns", metavar="T", type=option_types.DURATION, help="When (--topology; default 0s)."
)
@click.option(
    "--epochs", is_flag=True, help="--topology: in the folder F, the network from each change on."
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="F",
    type=option_types.TextType(),
    required=True,
    help="The file: F.svg or F.png; --topology also F.dot, F.mmd (Mermaid) or F.graphml.",
)
@seed
def command(
    source: str,
    pair: tuple[str, str] | None,
    link: str | None,
    timeline: bool,
    topology: bool,
    at_ns: int | None,
    epochs: bool,
    target: str,
    seed: int | None,
) -> None:
    """Draw a pair, a link, the timeline or the network of a run or an experiment.

    RUN is a run's directory, EXP a plan or a TDL file, of which only what is planned is drawn.
    Planned delays are a line, measured ones dots, events are marked with their statements; grey is
    where no path is. The timeline has a bar for each element that something happens to, as long as
    it is there. The network is that at T, events at T included; links of a run have the colour
    of what they carried; as DOT, Mermaid or GraphML it has what is planned at T. With --epochs the
    folder F has such a file for the start and for each time at which the network changes. The same
    input gives the same bytes. Pictures take matplotlib: pip install 'tstorm[plot]'.
    docs/reports.md has more.

    \b
    Examples:
      tstorm plot runs/first --pair client server.0 -o pair.svg
      tstorm plot runs/first --link s1--s2 -o link.png
      tstorm plot quickstart.tdl --pair client server.0 -o planned.svg
      tstorm plot quickstart.tdl --timeline -o timeline.svg
      tstorm plot runs/first --topology --at 16s -o network.svg
      tstorm plot quickstart.tdl --topology -o network.graphml
      tstorm plot quickstart.tdl --topology --epochs -o network.svg
    """
    suffix = Path(target).suffix.lower()
    if suffix not in _PICTURES and not (topology and suffix in _TEXTS):
        message = f"{target!r} is neither .svg nor .png; pictures have one of these suffixes"
        if topology:
            message += f", the network also {', '.join(_TEXTS)}"
        if suffix in _TEXTS:
            message = f"{target!r}: only the network (--topology) can be a {suffix}"
        raise click.BadParameter(message, param_hint="'-o'")
    if (pair is not None) + (link is not None) + timeline + topology != 1:
        message = "say what to draw: either --pair A B, --link A--B, --timeline or --topology."
        raise click.UsageError(message)
    if (at_ns is not None or epochs) and not topology:
        word = "--epochs" if epochs else "--at"
        raise click.UsageError(f"{word} is for --topology: all else is drawn over time.")
    if at_ns is not None and epochs:
        raise click.UsageError("either --at T or --epochs, which draws each time.")
    from tstorm.command_support import errors_shown
    from tstorm.plotting.subject import subject
    from tstorm.reporting import output_files

    with errors_shown():
        what = subject(source, seed)
        if epochs:
            _put_epochs(what, target, suffix)
            return
        drawn = _network(what, at_ns, suffix) if topology else _drawn(what, pair, link, suffix)
        for text in drawn.notes:
            output.note(f"note: {text}")
        output_files.put_file(target, [drawn.data])


def _put_epochs(what: Subject, target: str, suffix: str) -> None:
    """One after the other, each written before the next is drawn."""
    from tstorm.plotting import epoch_pictures
    from tstorm.reporting import output_files

    folder = str(Path(target).with_suffix(""))
    found = epoch_pictures.EpochPictures(what, suffix)
    files = found.files()
    output_files.put_folder(folder, files, epoch_pictures.is_one)
    for text in (*found.notes, f"{folder} has {len(files)} epochs"):
        output.note(f"note: {text}")


def _drawn(what: Subject, pair: tuple[str, str] | None, link: str | None, suffix: str) -> Drawn:
    from tstorm.instance_names import one_instance

    topology = what.plan.topology
    if pair is not None:
        from tstorm.plotting import pair_picture as pairs

        ends = [one_instance(topology.services, topology.nodes, name, "--pair") for name in pair]
        if ends[0] == ends[1]:
            raise click.BadParameter("a pair is two instances.", param_hint="'--pair'")
        return pairs.draw(what, ends[0], ends[1], suffix)
    if link is None:
        from tstorm.plotting import timeline_picture

        return timeline_picture.draw(what, suffix)
    from tstorm.plotting import link_picture as links
    from tstorm.plotting.subject import link_of

    return links.draw(what, link_of(topology, link), suffix)


def _network(what: Subject, at_ns: int | None, suffix: str) -> Drawn:
    from tstorm.plotting import topology_text

    if at_ns is None:
        output.note("note: at 0s; --at T is another time")
    elif at_ns > what.plan.end_ns:
        output.note(f"note: the experiment ends at {units.duration(what.plan.end_ns)}")
    if suffix in _TEXTS:
        from tstorm.plotting.pair_picture import Drawn

        return Drawn(topology_text.text(what, at_ns or 0, suffix).encode(), ())
    from tstorm.plotting import topology_picture

    return topology_picture.draw(what, at_ns or 0, suffix)
