"""What the commands that touch runs share: errors, carrying a plan out, and telling the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.exits import CommandError
from tstorm.loading import plan_errors_shown

if TYPE_CHECKING:
    from runtime.options import RunResult
    from tstorm.options import Running


@contextmanager
def errors_shown() -> Iterator[None]:
    """Turns a RunError or PlanError inside into the command's end, with its own exit code."""
    from runtime.errors import RunError

    try:
        with plan_errors_shown():
            yield
    except RunError as error:
        remedy = f"\nhint: {error.remedy}" if error.remedy else ""
        raise CommandError(f"error: {error.message}{remedy}", error.exit_code) from error


def carry_out(plan: Path, asked: Running, *, seed: int | None, quiet: bool) -> RunResult:
    """Runs the plan in directory `plan` with progress on stderr."""
    from tstorm import progress

    with errors_shown(), progress.reporter(quiet) as reporter:
        from runtime.options import RunOptions
        from runtime.run import run

        options = RunOptions(
            out=Path(asked.out) if asked.out else None,
            until_ns=asked.until_ns,
            start_at_ns=asked.start_at_ns or 0,
            pace=asked.pace or 1,
            datapath=asked.datapath or "auto",
            seed=seed,
        )
        return run(plan, options, reporter)


def report(result: RunResult, form: str) -> None:
    """The run directory (text) or summary (JSON) on stdout, a failure's reason on stderr."""
    if result.message:
        output.note(f"{'error' if result.exit_code else 'note'}: {result.message}")
    if form == "json":
        output.emit_json(
            {
                "directory": str(result.directory),
                "outcome": result.outcome,
                "run": result.run_id,
                "summary": dict(result.summary),
            }
        )
    else:
        click.echo(str(result.directory))
