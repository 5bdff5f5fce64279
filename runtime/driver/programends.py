"""What is recorded and said when an instance's program ends, is killed, or cannot be started.

Everything is recorded. What nobody asked for is news: the first ones of many that fail in the same
way are warnings, the first ones that end as they should are notices.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from compiler.plan.types import Service
from runtime import say
from runtime.backend.instance import KILLED_UNHEARD, NOT_HEARD, Instance, ProgramEnd
from runtime.driver.timelinerunner import TimelineRunner
from runtime.errors import ProgramsError, fail
from runtime.judge import judge_programs
from runtime.options import RunOptions
from runtime.results.loglines import last_line
from runtime.rundir.eventlog import how_and_why, oom_killed
from runtime.rundir.held_directory import HeldDirectory
from runtime.system.memory import Watch

WARNED = 20  # programs that fail, of which each is a warning; the others are notices
NOTICED = 20  # programs that end as they should, and kills for mem=, of which each is a notice


class _Report(Protocol):
    def __call__(self, message: str, *, warning: bool = False) -> None: ...


class ProgramEnds:
    """`runner`: who carries the timeline out, once somebody does. `stopping` is set when the run
    itself ends its programs."""

    def __init__(
        self,
        services: Sequence[Service],
        options: RunOptions,
        directory: HeldDirectory,
        memory: Watch,
        report: _Report,
        runner: Callable[[], TimelineRunner],
    ) -> None:
        self.stopping = False
        self._services = services
        self._options = options
        self._directory = directory
        self._memory = memory
        self._report = report
        self._runner = runner
        self._warned = 0  # of programs that failed
        self._noticed = 0

    def ended(self, instance: Instance, ended: ProgramEnd, asked: bool, help_text: str) -> None:
        """Every end of a program is logged; only one that nobody asked for is news."""
        name = instance.node.name
        record: dict[str, object] = {
            "kind": "exit",
            "target": name,
            "status": ended.status,
            "signal": ended.signal,
            "asked": asked or self.stopping,
        }
        unasked = not asked and not self.stopping
        news = self._memory.news() if unasked and ended.signal == signal.SIGKILL else ""
        news = ended.reason or news
        if unasked and ended.signal == signal.SIGSYS and instance.heard != NOT_HEARD:
            news = KILLED_UNHEARD
        if news:
            record["reason"] = news
        self._runner().book.note(record)
        if unasked:
            text = f"{name}: its program ended by itself with {how_and_why(record)}{help_text}"
            self.failed(instance, record, text)
        if not self.stopping:  # the timeline may have killed it
            self._runner().look_for_the_end()

    def failed(self, instance: Instance, record: Mapping[str, Any], text: str) -> None:
        """A program could not be started or has ended by itself. What is right is no more than a
        notice, of the first ones; of many that fail in the same way the first ones are warned
        about."""
        service = self._services[instance.node.service]
        last = last_line(self._directory, f"{instance.node.name}.log")
        said = f"{text}; last log line: {last}" if last else text
        if not judge_programs.is_failure(service.expect, record):
            self._noticed += 1
            if self._noticed <= NOTICED:
                self._report(text)
            return
        self._warned += 1
        self._report(said, warning=self._warned <= WARNED)
        if self._options.fail_fast:
            error = ProgramsError(f"{text} (--fail-fast)", instance.node.name)
            fail(self._runner().broken, error)

    def overdue(self, instance: Instance, grace_ns: int) -> None:
        """It did not end when it was asked to, in the time that it had for that, and is killed."""
        name = instance.node.name
        self._runner().book.note({"kind": "overdue", "target": name, "grace_ns": grace_ns})
        self._warned += 1
        text = f"{name} is killed: it had not ended {say.seconds(grace_ns)} after it was asked to"
        self._report(f"{text} (grace=)", warning=self._warned <= WARNED)

    def oom_kill(self, name: str, processes: int) -> None:
        """The kernel has killed some of an instance for its `mem=`: its program or others."""
        record = {"kind": "oom_kill", "target": name, "processes": processes}
        self._runner().book.note(record)
        self._noticed += 1
        if self._noticed <= NOTICED:
            self._report(f"{name}: {oom_killed(record)}")

    def killed(self, instance: Instance, what: str) -> None:
        """All of it is dead: nobody in the run wanted that."""
        if self.stopping:
            return
        name = instance.node.name
        record = {"kind": "killed", "target": name}
        self._runner().book.note(record)
        self.failed(instance, record, f"{name} was killed from outside: {what}")
        self._runner().look_for_the_end()
