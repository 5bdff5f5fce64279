"""Changes links of a run many times: the walk through its plan is kept from one change to the next.

What a change makes is found out here (compiler/kept_walk.py) and left in the run directory, and the
run adds it to its plan (runtime/driver/steering.py). Whatever that does not do is left to a whole
compilation (tstorm/live/steer.py), which also says what is wrong.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from compiler.kept_walk import KeptWalk, NotKeptError
from compiler.link_changes import LinkChange
from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.reader import read_plan
from compiler.plan.storage import scratch
from compiler.plan.types import Event, Link
from compiler.sources import RecordedFiles
from runtime.driver.steering import EVENTS_OF_LINKS, GRID_NS, MOST_TEXT, TEXT_OF_LINKS
from runtime.errors import RunError
from runtime.launch.registry import RunRecord
from runtime.rpc.control import REQUEST_BYTES, ask
from runtime.rundir.runfiles import LONGER_PLAN, PLAN
from runtime.schedule import PlanClock

_TRIES = 8
_FIRST_LEAD_NS, _LEAST_LEAD_NS, _MOST_LEAD_NS = 20_000_000, 3_000_000, 2_000_000_000
_MOST_TOLD = 500  # events of one request
_MARGIN_NS = 2_000_000  # from when the run has it to its moment
_MOST_LEFT_OUT = 64

Done = tuple[Mapping[str, Any], list[tuple[Link, ...]]]  # what the run says, and what was changed


class QuickLinks:
    """Of one run, which goes on."""

    def __init__(self, record: RunRecord) -> None:
        self._directory, self._socket = Path(record.directory), Path(record.socket)
        self._kept: KeptWalk | None = None
        self._number = 0  # of the next action, as far as nobody else has made one
        self._t0_ns = 0  # by the clock that both have
        self._clock = PlanClock(0, 1)
        self._after_ns = 0  # before this something has been asked for already
        self._lead_ns = _FIRST_LEAD_NS
        self._leave_out = 0  # how many lines are not tried
        self._left_out = 1  # the last time

    def change(self, changes: Sequence[LinkChange], said: str) -> Done | None:
        """Returns when the run has taken them; None: nothing was done, and a whole compilation is
        to do it. ChangeError, RunError, PlanError."""
        if self._leave_out or any(one.at_ns is not None for one in changes):
            self._leave_out = max(self._leave_out - 1, 0)
            self._kept = None
            return None
        try:
            found = self._changed(changes, said[: MOST_TEXT // 2])
        except NotKeptError:
            self._kept = None
            self._leave_out = self._left_out = min(2 * self._left_out, _MOST_LEFT_OUT)
            return None
        self._left_out = 1
        return found

    def settle(self) -> None:
        """Returns when the plan in the run directory has all that was changed, or the run ends."""
        if self._after_ns:
            with suppress(RunError):
                ask(self._socket, {"ask": "moment", "lead_ns": 0})

    def _changed(self, changes: Sequence[LinkChange], said: str) -> Done:
        if self._kept is None:
            try:
                self._kept = self._renewed()
            except (
                PlanError,
                RunError,
            ) as error:  # which the whole compilation tries again, or says
                raise NotKeptError from error
        kept = self._kept
        links = kept.links(changes)
        self._kept = None  # until the run has what comes of them
        events = kept.events(changes, links, self._number)
        for _ in range(_TRIES):
            began_ns = time.monotonic_ns()
            at_ns = max(self._moment(), self._after_ns)
            request = {"number": self._number, "at_ns": at_ns, "said": said}
            answer = self._offered(events, kept.text(changes, links, at_ns), request)
            self._learn(time.monotonic_ns() - began_ns)
            if "ok" in answer:
                self._kept, self._number, self._after_ns = kept, self._number + 1, at_ns + GRID_NS
                return answer["ok"], links
            if "whole" in answer:
                raise NotKeptError
            self._lead_ns = min(2 * self._lead_ns, _MOST_LEAD_NS)
            self._after_ns = int(answer["free_ns"])
        raise RunError(f"the run has not taken it: {answer.get('again')}", "try again")

    def _moment(self) -> int:
        """The time of the plan at which it can be ready, or a little later."""
        found = self._clock.plan_time(time.monotonic_ns() - self._t0_ns + self._lead_ns)
        return -(-found // GRID_NS) * GRID_NS

    def _offered(
        self, events: Sequence[Event], text: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        rows = [[one.kind, one.target, dict(one.args), one.line] for one in events]
        whole = {"ask": "grow", **request, "events": rows, "action": text}
        if len(rows) <= _MOST_TOLD and len(json.dumps(whole)) < REQUEST_BYTES:
            return ask(self._socket, whole)[0]
        with scratch.directory(self._directory, LONGER_PLAN) as path:
            (path / EVENTS_OF_LINKS).write_text(json.dumps(rows), encoding="utf-8")
            (path / TEXT_OF_LINKS).write_text(text, encoding="utf-8")
            return ask(self._socket, {"ask": "grow", **request, "left": path.name})[0]

    def _learn(self, took_ns: int) -> None:
        """How long it takes: as the last time, and half of what that took longer than before."""
        wanted_ns = took_ns + _MARGIN_NS
        self._lead_ns = max(min(wanted_ns, (self._lead_ns + wanted_ns) // 2), _LEAST_LEAD_NS)

    def _renewed(self) -> KeptWalk:
        """Of the plan as it is now."""
        first = ask(self._socket, {"ask": "link moment"})[0]
        now = ask(self._socket, {"ask": "moment", "lead_ns": 0})[0]
        plan = read_plan(self._directory / PLAN, lazy=True)
        if plan.digest != now["base"]:
            raise NotKeptError
        sources = RecordedFiles(plan)
        found = compile_source(
            plan.source, seed=plan.seed, sources=sources, params=plan.params, doubts=False
        )
        self._number, self._after_ns = int(now["number"]), int(first["free_ns"])
        self._t0_ns = int(first["t0_ns"])
        self._clock = PlanClock(int(first["start_at_ns"]), int(first["pace"]))
        now_ns = self._clock.plan_time(time.monotonic_ns() - self._t0_ns)
        return KeptWalk(plan, found.model, now_ns)
