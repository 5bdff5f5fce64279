"""What a report tells of a run, from its directory: finished, failed, killed or still going on.

Input: a run directory, which is foreign data: what is used has its shape checked first. Output: one
record that all formats are made of. A run without a summary (it goes on, was killed, or failed
early) gets one from the files that are there, with a verdict that says that nothing was judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.plan.reader import Plan, read_plan
from runtime.errors import RunError
from runtime.json_schema import (
    INTEGER,
    REMEDY,
    Shape,
    check,
)
from runtime.judge.run_end import RunEnd
from runtime.judge.verdict import Judge
from runtime.options import decode
from runtime.results import failed
from runtime.results.summary import summarise
from runtime.rundir.eventlog import read_events
from runtime.rundir.rundir import RunDirectory
from runtime.rundir.runfiles import EVENTS, PLAN, SAMPLES, SUMMARY, check_summary

FINISHED, RUNNING, UNFINISHED, UNSEEN = "finished", "running", "unfinished", "unseen"
PASSED, EXPECTATION_FAILED, NOT_MEASURED = "passed", "failed", "not_measured"
_WHY = {
    FINISHED: "the run ended before anything was judged",
    RUNNING: "the run goes on",
    UNFINISHED: "the run was ended from outside before it was judged",
    UNSEEN: "only the user whose run it is can see whether it goes on",
}
SO_FAR = {  # of runs that have not finished, for people
    RUNNING: "goes on: this is what it has recorded so far",
    UNFINISHED: "was ended from outside: this is what it had recorded",
    UNSEEN: "is another user's, who alone can see whether it goes on: this is what it has recorded",
}
_ENDED = Shape({"status": INTEGER, "signal": INTEGER})
_DIFFERENTLY = ("still_running", "error", "killed")  # how a program fails that has not ended


@dataclass(frozen=True, slots=True)
class RunFacts:
    """`state` is FINISHED, RUNNING or UNFINISHED (killed before it could say how it ended), or
    UNSEEN: one of the two, of another user's run;
    `paths` are the certificate's rows, which set measured beside planned."""

    directory: RunDirectory
    plan: Plan
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    state: str
    expectations: Sequence[Mapping[str, Any]]
    paths: Sequence[Mapping[str, Any]]

    @property
    def verdict(self) -> Mapping[str, Any]:
        found = self.summary.get("verdict")
        return found if isinstance(found, dict) else {}

    @property
    def result(self) -> Mapping[str, Any]:
        """Whether it failed, and by what (runtime.results.failed)."""
        return failed.record(
            self.summary, decode(self.manifest["options"], "options"), self.plan.end_ns
        )

    def events(self) -> Iterator[dict[str, Any]]:
        """In order of completion. RunError for a damaged line."""
        return read_events(self.directory) if self.directory.has(EVENTS) else iter(())


def named(numbers: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """What the numbers of a row of SAMPLES stand for. RunError if it is none of this plan."""
    if not all(0 <= at < len(names) for at in numbers):
        raise RunError(f"{SAMPLES} has a row that is none of this plan: {list(numbers)}", REMEDY)
    return tuple(names[at] for at in numbers)


def gather(directory: RunDirectory, *, live: bool | None) -> RunFacts:
    """`live`: whether the run goes on, None if that cannot be seen. RunError, PlanError."""
    manifest = directory.manifest()
    plan = read_plan(directory.path / PLAN, lazy=True)
    open_state = UNSEEN if live is None else RUNNING if live else UNFINISHED
    state = FINISHED if "outcome" in manifest else open_state
    summary = directory.summary() or _so_far(directory, plan, manifest, state)
    if state == FINISHED:  # the manifest is closed last and knows better
        end = {"outcome": manifest["outcome"], "message": manifest.get("message", "")}
        summary = {**summary, **end}
    place = str(directory / SUMMARY)
    _check_failures(summary, place)
    return RunFacts(
        directory,
        plan,
        manifest,
        summary,
        state,
        summary.get("expectations", []),
        directory.certificate().get("pairs", []),
    )


def _check_failures(summary: Mapping[str, Any], place: str) -> None:
    for one in summary.get("failures", ()):
        if not any(one.get(name) for name in _DIFFERENTLY):
            check(one, _ENDED, f"{place}: failures")


def _so_far(
    directory: RunDirectory, plan: Plan, manifest: Mapping[str, Any], state: str
) -> dict[str, Any]:
    """A summary of what is there."""
    end = RunEnd(manifest.get("outcome", state), manifest.get("message", ""))
    try:
        found = summarise(directory, plan, len(plan.events), end)
    except (KeyError, TypeError) as error:  # of lines whose shape leaves more open than it reads
        raise RunError(f"{directory.path}: its records lack {error}", REMEDY) from error
    check_summary(found, f"{directory.path}: what it has recorded")
    return {**found, "verdict": Judge(unmeasured=_WHY[state]).verdict()}
