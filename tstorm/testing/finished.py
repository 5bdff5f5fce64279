"""A finished run: what it came to, read from its directory.

The directory is foreign data, as for everybody who reads one (runtime/rundir): what is damaged is
an ExperimentError that names the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, read_plan
from runtime.errors import RunError
from runtime.judge import verdict_text
from runtime.judge.verdict import UNKNOWN
from runtime.options import COMPLETED, REQUIRED
from runtime.rundir import logmarks, rundir
from runtime.rundir.eventlog import read_events
from runtime.rundir.runfiles import EVENTS, LOGS, PLAN, REPORT
from tstorm.testing import pair_series
from tstorm.testing.experiment_errors import ExpectationsError, ExperimentError, NotTrustedError
from tstorm.testing.request import replay
from tstorm.text.ending_text import how

__tracebackhide__ = True  # pytest shows the test, not how this was found out
PASSED, FAILED, NOT_MEASURED = "passed", "failed", "not_measured"
MOST_LOG_BYTES = 256 << 20
SUFFIX = ".log"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One that belongs to an expectation."""

    instance: str
    at_ns: int | None
    line: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What became of an `expect` statement. `state` is passed, failed or not_measured; `message`
    says what was measured; figure and threshold are in `unit` (ns, bps, ppb)."""

    text: str
    line: int
    file: str
    kind: str
    state: str
    message: str
    figure: int | None
    threshold: int | None
    unit: str
    at_ns: int | None
    subject: str
    log: tuple[LogLine, ...]

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        said = f": {self.message}" if self.message else ""
        return f"{place}{self.text}: {self.state.replace('_', ' ')}{said}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to believe the run: valid, degraded, invalid or unknown, in words, and all that
    summary.json has of it."""

    state: str
    lines: tuple[str, ...]
    record: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def is_enough(self, required: str) -> bool:
        return self.state in REQUIRED[required]


class readable:  # noqa: N801 (called as a function is)
    """What cannot be read inside is an ExperimentError."""

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, (RunError, PlanError)):
            raise ExperimentError(str(error)) from None


class Run:
    """The run in `directory`. ExperimentError if it has not come to an end there."""

    def __init__(self, directory: str | Path) -> None:
        with readable():
            self._held = rundir.recorded(directory)
            self._manifest = self._held.manifest()
            self._summary = self._held.summary()
        if "outcome" not in self._manifest:
            raise ExperimentError(f"the run in {directory} has not ended")

    def __repr__(self) -> str:
        return f"<Run {self.directory} {self.outcome} {self.verdict.state}>"

    @property
    def directory(self) -> Path:
        return self._held.path

    @property
    def page(self) -> Path:
        """report.html, which a run that could not begin does not have, nor one on a full disk."""
        return self.directory / REPORT

    @property
    def page_line(self) -> str:
        """Where the page is, or why there is none, for messages."""
        address = self.page_address
        return f"page: {address}" if address else f"page: none: {self._manifest['no_page']}"

    @property
    def page_address(self) -> str:
        """For a browser; '' if there is no page."""
        return "" if self._manifest.get("no_page") else self.page.as_uri()

    @property
    def outcome(self) -> str:
        """completed, interrupted, failed, or killed: closed by something else."""
        return str(self._manifest["outcome"])

    @property
    def message(self) -> str:
        """Why it is not completed; '' if it is."""
        return str(self._manifest.get("message", ""))

    @property
    def seed(self) -> int:
        return int(self._manifest["seed"])

    @property
    def replay(self) -> str:
        """A command that repeats it."""
        return replay(self.directory)

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json (docs/run.md); {} if it was not written."""
        return self._summary

    @cached_property
    def verdict(self) -> Verdict:
        found = self._summary.get("verdict")
        record = found if isinstance(found, dict) else {}
        state = str(record.get("state", UNKNOWN))
        return Verdict(state, tuple(verdict_text.told(record)), record)

    @cached_property
    def expectations(self) -> list[Expectation]:
        """Of `expect` statements, in the order of the source; [] if there are none."""
        names = set(Expectation.__slots__) - {"log"}
        return [
            Expectation(
                **{name: one[name] for name in names},
                log=tuple(
                    LogLine(row["instance"], row["at_ns"], row["line"]) for row in one["log"]
                ),
            )
            for one in self._summary.get("expectations", [])
        ]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Programs that did not do what is right (docs/run.md, Programs that fail)."""
        return list(self._summary.get("failures", ()))

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Lines of events.jsonl, in the order in which they were done."""
        with readable():
            return list(read_events(self._held)) if self._held.has(EVENTS) else []

    def series(self, pair: tuple[str, str], what: str) -> pair_series.Series:
        """What the pair met over time: `rtt`, `delay`, `loss` or `throughput`."""
        with readable():
            pace = int(self._manifest["options"]["pace"])
            end_ns = self._end_ns() if what == "throughput" else None  # read for nothing else
            return pair_series.read(self._held, self._plan, (pair[0], pair[1]), what, pace, end_ns)

    def _end_ns(self) -> int | None:
        """When the experiment came to its end, plan time; None if to none."""
        ends = [one["planned_ns"] for one in self.events if one.get("kind") == "quit"]
        if ends or self.outcome != COMPLETED:
            return ends[0] if ends else None
        return self._plan.end_ns

    @cached_property
    def _plan(self) -> Plan:
        return read_plan(self.directory / PLAN, lazy=True)

    def log(self, instance: str) -> str:
        """What the programs of an instance wrote, without the run's own marks."""
        with readable():
            try:
                logs = self._held.enter(LOGS)
                names = [name for name in logs.names() if name.endswith(SUFFIX)]
            except OSError as error:
                raise ExperimentError(f"{self.directory / LOGS}: {error.strerror}") from error
            if f"{instance}{SUFFIX}" not in names:
                there = ", ".join(name.removesuffix(SUFFIX) for name in names[:20]) or "none"
                raise ExperimentError(f"there is no log of {instance!r}; there are {there}")
            text = logs.read(f"{instance}{SUFFIX}", MOST_LOG_BYTES).decode("utf-8", "replace")
        lines = text.splitlines(keepends=True)
        return "".join(line for line in lines if logmarks.parse(line.rstrip("\n")) is None)

    # -- assertions -------------------------------------------------------------------------------

    def assert_valid(self, required: str = "valid") -> None:
        """NotTrustedError unless the verdict is VALID; `degraded` takes DEGRADED as well."""
        if required not in REQUIRED:
            known = " or ".join(filter(None, REQUIRED))
            raise ValueError(f"no run can be required to be {required!r}: say {known}")
        if not self.verdict.is_enough(required):
            raise NotTrustedError(
                f"not to be trusted: {self.verdict}\nrequired: {required}\n{self.page_line}"
            )

    def assert_expectations(self, *, allow_unmeasured: bool = False) -> None:
        """ExpectationsError unless every `expect` statement has passed. What was not measured has
        not passed, unless that is allowed; neither has an experiment that expects nothing."""
        found = self.expectations
        if not found:
            raise ExpectationsError("the experiment has no `expect` statement that could pass")
        accepted = (PASSED, NOT_MEASURED) if allow_unmeasured else (PASSED,)
        wrong = [one for one in found if one.state not in accepted]
        if wrong:
            raise ExpectationsError(self._told(f"{len(wrong)} of {len(found)} expectations", wrong))

    def _told(self, what: str, wrong: Sequence[Expectation]) -> str:
        lines = [f"{what} did not pass; verdict: {next(iter(self.verdict.lines))}"]
        for one in wrong:
            lines.append(f"  {one}")
            lines += [f"    {row.instance}: {row.line}" for row in one.log]
        return "\n".join([*lines, self.page_line])

    def assert_programs(self) -> None:
        """ExpectationsError if programs failed: against `expect=` of their services, or by ending
        with another status than 0 where nothing is stated."""
        lines = [f"  {one['target']}: {how(one)}" for one in self.failures]
        if lines:
            raise ExpectationsError("\n".join(["programs failed:", *lines, self.page_line]))
