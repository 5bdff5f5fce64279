"""Real-time clocks of single instances (`set clock= drift=`), in virtual time.

The guest's kernel (arch/um/tstorm/clocks.c) has a clock for each network namespace, so for each
life of an instance. It is told from which moment on a clock is how far off: exact, although
it is told a little later. The clock is the host's: a later life gets it before its program starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.rules.datapath_fit import Misfit
from compiler.plan.types import Event
from runtime.backend.instance import Incarnation, Instance
from runtime.backend.instance_settings import InstanceSettings
from runtime.errors import MachineError, UnfitError
from runtime.options import VIRTUAL, RunOptions
from runtime.schedule import Schedule, Step

LAST_DATE_NS = 7_258_118_400 * 10**9  # 2200
_GUEST = "/proc/tstorm_clock"


def check(plan: Plan, options: RunOptions) -> None:
    """Raises UnfitError where clocks of instances cannot be theirs, or have no date."""
    found = capabilities.own_clock(plan)
    if found is None:
        return
    if options.time != VIRTUAL:
        message = f"{found} in real time: the kernel has one clock for all programs"
        raise UnfitError(found, message, "add --time virtual")
    if options.pace != 1:
        message = f"{found} with --pace: what a clock gains takes the time that it takes"
        raise UnfitError(found, message, "leave --pace out")
    for event in plan.events:
        if event.kind == "clock":
            _check_date(event, options)


def _check_date(event: Event, options: RunOptions) -> None:
    now_ns = options.clock_start_ns + event.at_ns - options.start_at_ns
    says_ns = now_ns + int(event.args["offset_ns"])
    if 0 <= says_ns <= LAST_DATE_NS:
        return
    what = f"a clock of {event.target} {'before 1970' if says_ns < 0 else 'after 2200'}"
    found = Misfit(what, 1, 0, "", event.at_ns, "", event.line, event.file)
    start = datetime.fromtimestamp(options.clock_start_ns // 10**9, UTC)
    message = f"{found}: the experiment begins in {start:%Y} (--clock-start)"
    raise UnfitError(found, message, "lower the offset, or give --clock-start another date")


class InstanceClocks:
    """Those that are not the run's."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._settings = InstanceSettings("clock", schedule.clocks)

    def take_effect(
        self,
        step: Step,
        begun: Mapping[str, Incarnation],
        instances: Mapping[str, Instance],
        t0_ns: int,
    ) -> None:
        """What a step says of clocks, and the clocks of lives that begin with it. MachineError."""
        for _, incarnation, event in self._settings.of_step(step, begun, instances):
            if incarnation.pid:
                _tell(incarnation.pid, t0_ns + self._schedule.clock.due(event.at_ns), event)


def _tell(pid: int, since_ns: int, event: Event) -> None:
    text = f"{pid} {since_ns} {event.args['offset_ns']} {event.args['drift_ppb']}"
    try:
        # By system calls that do not fail: those would take time.
        file = os.open(_GUEST, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    except ProcessLookupError:
        return  # it was killed meanwhile; its next life gets the clock
    except OSError as error:
        what = f"the guest's kernel does not set the clock of {event.target}: {error.strerror}"
        raise MachineError(what, "`tstorm kernel build` makes a kernel that can") from error
