"""Changes of links by lines of JSON, each one commit of the run, with an answer for each object.

An answer comes when the run's record has the change, which says when it came into force; what is
asked for a later moment is answered when the run has taken it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler import link_changes
from compiler.link_changes import ChangeError, LinkChange, LinkChanges
from compiler.plan.format import PlanError
from compiler.plan.reader import Plan
from compiler.plan.types import Link
from runtime.errors import RunError
from runtime.launch import registry
from runtime.options import VIRTUAL
from runtime.rundir.runfiles import EVENTS
from tstorm.live import steer
from tstorm.live.quick_links import Done, QuickLinks
from tstorm.live.steered_runs import is_in_cluster, options_of

if TYPE_CHECKING:
    from tstorm.options.cluster import Where

_GRACE_SECONDS = 10.0  # after the moment for which a change was taken
_PAUSE_SECONDS = 0.001
_NOT_DONE = "not done, since another change of its line cannot be"

Answer = dict[str, Any]


class LinkLines:
    """Of one run, which goes on; `where`: in which cluster. RunError if it does not."""

    def __init__(self, run: str, where: Where | None = None) -> None:
        self._run, self._where = run, where
        self._is_virtual = False
        self._quick: QuickLinks | None = None
        self._events: _Applied | None = None
        if is_in_cluster(run, where):
            if (Path(run) / EVENTS).exists():  # else nobody here hears when it came into force
                self._events = _Applied(Path(run) / EVENTS)
            return
        record = registry.find(run)
        directory = Path(record.directory)
        # In virtual time there is no hurry, and what a question costs the run is to be told; agents
        # of hosts take whole plans.
        options = options_of(directory)
        self._is_virtual = options.time == VIRTUAL
        self._quick = None if self._is_virtual or options.hosts else QuickLinks(record)
        self._events = _Applied(directory / EVENTS)

    def answers(self, line: str) -> list[Answer]:
        """Carries out a line, all of it or nothing; an answer for each of its objects."""
        names = link_changes.ids(line)
        try:
            return self._done(link_changes.read(line), line)
        except ChangeError as error:
            wrong = {"error": str(error), "code": error.code}
            number = error.number
        except (RunError, PlanError) as error:
            return [_named(one, {"error": str(error)}) for one in names]
        other = {"error": _NOT_DONE, "code": wrong["code"]}
        return [
            _named(name, wrong if number in (position, None) or len(names) == 1 else other)
            for position, name in enumerate(names)
        ]

    def settle(self) -> None:
        """Returns when the plan in the run directory has all that was done."""
        if self._quick is not None:
            self._quick.settle()

    def _done(self, changes: Sequence[LinkChange], line: str) -> list[Answer]:
        quick = None if self._quick is None else self._quick.change(changes, line.strip())
        told, links = quick or self._compiled(changes, line)
        later = self._is_virtual or any(one.at_ns is not None for one in changes)
        events = None if later or not told["events"] else self._events
        applied = {} if events is None else events.of(told, links)
        return [
            _named(one.id, {"ok": self._ok(one, own, told, applied)})
            for one, own in zip(changes, links, strict=True)
        ]

    def _compiled(self, changes: Sequence[LinkChange], line: str) -> Done:
        """The same as any other action."""
        links: list[tuple[Link, ...]] = []
        owners: list[int] = []  # of the lines of the action, by the numbers of their changes

        def make(plan: Plan, now_ns: int) -> str:
            meaning = LinkChanges(plan, now_ns)
            links[:] = meaning.links(changes)
            found = meaning.statements(changes, links)
            owners[:] = [number for number, _ in found]
            return "".join(f"{text}\n" for _, text in found)

        try:
            return steer.do_made(self._run, line.strip(), make, self._where).told, links
        except steer.ActionError as error:
            raise ChangeError(
                error.diagnostics[0].code, str(error), number=_guilty(error, owners)
            ) from error

    @staticmethod
    def _ok(
        change: LinkChange,
        own: Sequence[Link],
        told: Mapping[str, Any],
        applied: Mapping[str, Answer],
    ) -> Answer:
        found: Answer = {"action": told["action"], "link": own[0].name}
        if len(own) > 1:
            found["back"] = own[1].name
        record = next((applied[link.name] for link in own if link.name in applied), None)
        if record is None:  # it is as it was already, or it is still to come
            at_ns = told["planned_ns"] if change.at_ns is None else change.at_ns
            return {**found, "planned_ns": at_ns}
        return {**found, "seq": record["seq"], "applied_ns": record["applied_ns"]}


def _guilty(error: steer.ActionError, owners: Sequence[int]) -> int | None:
    """The number of the object whose statement is wrong; None if it is none of the action's."""
    span = error.diagnostics[0].span
    own = span.file == error.name and 0 < span.line <= len(owners)
    return owners[span.line - 1] if own else None


def _named(name: object, answer: Answer) -> Answer:
    return answer if name is None else {"id": name, **answer}


class _Applied:
    """The events of a run as they are recorded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0

    def of(self, told: Mapping[str, Any], links: Sequence[tuple[Link, ...]]) -> dict[str, Answer]:
        """The events of this action by their links, when all are there. RunError."""
        number, wanted = told["action"], told["events"]
        found: dict[str, Answer] = {}
        end = time.monotonic() + _GRACE_SECONDS
        seen = 0
        while seen < wanted:
            for record in self._new():
                if record.get("action") == number and "seq" in record:
                    seen += 1
                    found.setdefault(record["target"], record)
            if seen < wanted and time.monotonic() > end:
                what = f"{len(links)} changes were taken, and {seen} of {wanted} events are there"
                raise RunError(f"{what} {_GRACE_SECONDS:g} s later", "the run has ended, or stalls")
            time.sleep(_PAUSE_SECONDS)
        return found

    def _new(self) -> Iterator[Answer]:
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._at)
                whole, newline, _ = stream.read().rpartition(b"\n")
        except OSError as error:
            raise RunError(
                f"the change was taken, and the run's record cannot be read: {error.strerror}"
            ) from error
        self._at += len(whole) + len(newline)
        for line in whole.splitlines():
            yield json.loads(line)


def carry_out(
    run: str, lines: Iterator[str], say: Callable[[str], None], where: Where | None = None
) -> bool:
    """All lines, one after the other; whether each of them was done. RunError if there is no such
    run."""
    running, good = LinkLines(run, where), True
    try:
        for line in lines:
            if line.strip():
                for answer in running.answers(line):
                    good = good and "ok" in answer
                    say(json.dumps(answer))
    finally:
        running.settle()
    return good
