"""`tstorm capture RUN INSTANCE|--link A--B`: packets of a run, as pcapng."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exit_codes import OK, CommandError
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument

if TYPE_CHECKING:
    from tstorm.live.capturing import Captured, CaptureTarget, PacketSource

STDOUT = "-"


@click.command()
@run_argument(required=True)
@click.argument("instance", metavar="[INSTANCE]", required=False)
@click.option(
    "--link",
    metavar="A--B",
    help="At a link, before its queue and behind it; A->B is one direction.",
)
@click.option(
    "-w",
    "--write",
    "out",
    metavar="F.pcapng",
    default=STDOUT,
    show_default=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="The file to write; there must be none of this name. - is standard output.",
)
@click.option(
    "--filter",
    "expression",
    metavar="EXPR",
    help="Only packets that this matches, in the language of pcap-filter(7); takes libpcap.",
)
@click.option("--probes", is_flag=True, help="Also the run's own probes.")
@in_cluster
def command(
    run: str,
    instance: str | None,
    link: str | None,
    out: str,
    expression: str | None,
    *,
    probes: bool,
    cluster: Where | None,
) -> None:
    """Write the packets of RUN from now on as pcapng, which Wireshark and tshark read.

    At an INSTANCE it has what the instance sends, as it comes to its link, and what comes to it. At
    a link it has what is offered to it (interface A->B/offered) and what leaves it (A->B), or is
    dropped on it, with the cause as the packet's comment. Times are those of the engine. It goes on
    until the run has ended or Ctrl-C.

    Whoever reads too slowly loses packets from the capture, which says how many; the run never
    waits. Of a run that has ended, packets are those that it kept (--packets): what left links or
    was dropped. Over local hosts a path between two instances is one queue, at the host of the one
    that sends: --link A--B names two instances, and packets of all hosts are one file in the order
    of time. A run in virtual time is refused while it goes on.

    In a cluster (RUN is the directory of such a run, or --backend k8s) commands in the pods of
    agents read packets. At an INSTANCE it is what passes the network of its pod, with the times of
    its node's clock. --link A--B names two instances, as over local hosts: it has what the packet
    engines of their nodes have, and is refused where the kernel's traffic control shapes the run.

    \b
    Examples:
      tstorm capture runs/a client.0 -w - | wireshark -k -i -
      tstorm capture runs/a --link client--s1 -w link.pcapng
      tstorm capture runs/hosts --link client.0--db.1 -w path.pcapng
      tstorm capture runs/a db.1 --filter "tcp port 5432" | tshark -r -
      tstorm capture --backend k8s trial-7 client.0 -w c.pcapng
      tstorm capture --backend k8s trial-7 --link client.0--db.1 -w p.pcapng
    """
    from compiler.plan.format import PlanError
    from runtime.errors import RunError
    from tstorm.command_support import errors_shown
    from tstorm.live import capturing, packet_filter

    if (instance is None) == (link is None):
        raise click.UsageError("name an INSTANCE or --link A--B.")
    if out == STDOUT and sys.stdout.isatty():
        raise click.UsageError("packets are no text: name a file with -w, or a pipe behind this.")
    with errors_shown():
        wanted = packet_filter.compiled(expression) if expression else None
        program = b"" if wanted is None else wanted.instructions
        target, is_link = instance or link or "", link is not None
        asked = capturing.CaptureTarget(target, is_link, probes, wanted, program)
        try:
            source = capturing.opened(run, asked, cluster)
        except PlanError as error:
            raise RunError(f"the run's plan cannot be read: {error}") from error
        if source.left_out:
            names = ", ".join(source.left_out)
            output.note(f"note: without what is between it and {names}: there is no path now")
        captured = _written(source, asked, out)
    missing = f"; {captured.missing:,} were lost: they were read too slowly" * bool(
        captured.missing
    )
    cut = f"; later ones of {', '.join(captured.cut)} are missing: what wrote them was cut off"
    output.note(f"{captured.written:,} packets{missing}{cut * bool(captured.cut)}")


def _written(source: PacketSource, asked: CaptureTarget, out: str) -> Captured:
    from runtime.errors import RunError
    from tstorm.live import capturing

    try:
        if out == STDOUT:
            return capturing.write(source, asked, sys.stdout.buffer)
        with Path(out).open("xb") as file:
            try:
                return capturing.write(source, asked, file)
            except RunError:  # what is read is damaged
                Path(out).unlink(missing_ok=True)
                raise
    except BrokenPipeError:
        output.drop(sys.stdout)
        raise CommandError("note: the reader has gone, which ends the capture", OK) from None
    except FileExistsError:
        raise CommandError(f"error: {out} is there already\nhint: name another file") from None
    except OSError as error:
        raise CommandError(f"error: {out}: {error.strerror}") from error
