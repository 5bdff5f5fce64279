"""`tstorm doctor`: what this machine can do, found out by trying."""

from __future__ import annotations

from dataclasses import asdict

import click

from tstorm import output, parameters
from tstorm.exits import CANNOT, CommandError


@click.command()
@parameters.table_or_json
def command(form: str) -> None:
    """Check whether this machine can run experiments, how well, and what to do about problems.

    It tries everything for real, in throw-away namespaces: "ok" works in a run, "warn" works less
    well, and "fail" makes runs impossible. Ends with 3 if anything is "fail".

    \b
    Examples:
      tstorm doctor
      tstorm doctor --format json | jq '.[] | select(.status != "ok")'
    """
    from tstorm.running import errors_shown

    with errors_shown():
        from runtime.doctor.checks import FAIL, probe

        checks = probe()
    if form == "json":
        output.emit_json_rows(asdict(check) for check in checks)
    else:
        output.emit_table(
            ("CHECK", "STATUS", "DETAIL"),
            ((check.name, check.status, check.detail) for check in checks),
        )
        for check in checks:
            if check.remedy:
                output.note(f"{check.name}: {check.remedy}")
    if any(check.status == FAIL for check in checks):
        raise CommandError("error: this machine cannot run experiments as it is", CANNOT)
