"""`tstorm report RUN`: what a run came to, for people, programs, spreadsheets and CI services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.options import option_types
from tstorm.options.shared import run_argument

if TYPE_CHECKING:
    from tstorm.reporting.run_facts import RunFacts

_TABLES = ("paths", "pairs", "links", "probes", "figures", "events", "contacts")


@click.command()
@run_argument(required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json", "csv", "junit", "openmetrics", "perfetto", "otlp"]),
    help="What to make of it.  [default: by the suffix of -o: .html, .md, .json, .csv, .xml "
    "(JUnit) or .om (OpenMetrics); else md]",
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="F",
    type=option_types.TextType(),
    default="-",
    help="The file, or '-' for standard output; for all tables of CSV a folder.  [default: -]",
)
@click.option(
    "--table",
    type=click.Choice(_TABLES),
    help="CSV: only this table, as one file.",
)
@click.option(
    "--require",
    type=click.Choice(["valid", "degraded"]),
    help="JUnit: another verdict than this (or a better one) is a failure.  [default: as the run "
    "was asked]",
)
def command(
    run: str, form: str | None, target: str, table: str | None, require: str | None
) -> None:
    """Report what RUN came to: verdict, expectations, events, pairs, programs, links.

    RUN is a run's directory, or the name of one that goes on; of that the report has what was
    recorded so far. html is the page of the run directory, md a short page of Markdown, json one
    document for programs, junit a file for the test reports of GitHub, GitLab and Jenkins, csv the
    series as tables: paths (planned beside measured), pairs, links, probes, events and contacts
    (when nodes that move were linked); openmetrics has the series with their times for Prometheus
    and what reads the same; perfetto is a trace for ui.perfetto.dev, with packets as arrows where
    the run had --packets; otlp has spans for what reads OpenTelemetry. docs/reports.md describes
    them. What is written is whole or not there.

    \b
    Examples:
      tstorm report runs/first                            # Markdown on standard output
      tstorm report runs/first -o first.html
      tstorm report runs/first --format json | jq .verdict.state
      tstorm report runs/first -o junit.xml --require valid
      tstorm report runs/first --format csv -o series     # a folder with seven tables
      tstorm report runs/first --table probes -o - | head
      tstorm report runs/first -o first.om                # promtool tsdb create-blocks-from ...
      tstorm report runs/first --format perfetto -o trace.json   # open it in ui.perfetto.dev
      tstorm report runs/first --format otlp -o spans.json
    """
    form = _form(form, target, table)
    if require is not None and form != "junit":
        raise click.UsageError("--require is for --format junit.")
    from tstorm.command_support import errors_shown
    from tstorm.reporting import formats, output_files

    with errors_shown():
        facts = _gathered(run)
        if form == formats.CSV:
            _tables(facts, target, table)
            return
        pieces = formats.pieces(facts, form, require)
        if target == output_files.STDOUT:
            output_files.put_stdout(pieces)
        else:
            output_files.put_file(target, pieces)


def _form(form: str | None, target: str, table: str | None) -> str:
    """The format that is asked for. Usage errors."""
    from tstorm.reporting import formats

    if table is not None and form not in (None, formats.CSV):
        raise click.UsageError("--table is for --format csv.")
    found = form or (formats.CSV if table else formats.of_target(target))
    if found == formats.CSV and table is None and (target == "-" or target.endswith(".csv")):
        raise click.UsageError(
            "tables of CSV are several: -o FOLDER writes all, --table NAME writes one "
            f"({', '.join(_TABLES)})."
        )
    return found


def _gathered(run: str) -> RunFacts:
    from tstorm.reporting import output_files, run_facts

    found = output_files.gathered(run)
    if found.state in run_facts.SO_FAR:
        output.note(f"note: {run} {run_facts.SO_FAR[found.state]}")
    return found


def _tables(facts: RunFacts, target: str, table: str | None) -> None:
    from tstorm.reporting import formats, output_files

    found = formats.tables(facts, [table] if table else [])
    if table is None:
        output_files.put_folder(target, found, formats.is_table)
        return
    (rows,) = found.values()
    if target == output_files.STDOUT:
        output_files.put_stdout(rows)
    else:
        output_files.put_file(target, rows)
