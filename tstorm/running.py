"""What the commands that touch runs share: errors, carrying a plan out, and telling the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.exits import CommandError
from tstorm.loading import plan_errors_shown

if TYPE_CHECKING:
    from runtime.options import RunOptions, RunResult
    from runtime.progress import Progress
    from tstorm.loading import PlanOnDisk
    from tstorm.options import Running


@contextmanager
def errors_shown() -> Iterator[None]:
    """Turns a RunError or PlanError inside into the command's end, with its own exit code."""
    from runtime.errors import RunError

    try:
        with plan_errors_shown():
            yield
    except RunError as error:
        remedy = f"\nhint: {output.visible(error.remedy)}" if error.remedy else ""
        said = output.visible(error.message)
        raise CommandError(f"error: {said}{remedy}", error.exit_code) from error


def options_of(
    asked: Running, *, seed: int | None = None, recorded: Mapping[str, Any] | None = None
) -> RunOptions:
    """What the command line says, else what the manifest of an earlier run says, else defaults."""
    from runtime.options import RunOptions

    before = dict(recorded["options"]) if recorded else {}
    said = {
        "until_ns": asked.until_ns,
        "start_at_ns": asked.start_at_ns,
        "pace": asked.pace,
        "datapath": asked.datapath,
        "hosts": asked.hosts,
        "clock_budget_ns": asked.clock_budget_ns,
        "on_agent_loss": asked.on_agent_loss,
        "allow_spoofing": asked.allow_spoofing,
    }
    before.update((key, value) for key, value in said.items() if value is not None)
    if not before.get("hosts") and (asked.clock_budget_ns or asked.on_agent_loss):
        raise click.UsageError("--clock-budget and --on-agent-loss are for runs with --hosts.")
    return RunOptions(
        out=Path(asked.out) if asked.out else None,
        name=recorded["experiment"] if recorded else "",
        seed=seed,
        **before,
    )


def carry_out(plan: PlanOnDisk, options: RunOptions, *, quiet: bool) -> RunResult:
    """Runs the plan with progress on stderr."""
    from compiler.plan.reader import read_plan
    from runtime.errors import UnfitError
    from runtime.run import run
    from tstorm import misfits, progress

    with progress.reporter(quiet) as show:
        released = False

        def relay(record: Progress) -> None:
            nonlocal released
            if not released:  # the run has its own copy of the plan by now
                plan.release()
                released = True
            show(record)

        try:
            return run(plan.path, options, relay)
        except UnfitError as error:
            source = read_plan(plan.path, lazy=True).source
            raise misfits.shown(error, plan.source_name, source) from error


def report(result: RunResult, form: str, **more: object) -> None:
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
                **more,
            }
        )
    else:
        output.path(result.directory)
