"""`python -m tstorm.live.reactor FD`: sees what the `when` of a run wait for, and makes of it what
the run is to do.

It is a process of its own beside the run's driver (runtime/driver/reactions.py), in virtual time
too: an expression that takes for ever and a plan that takes long to compile hold no event up. Each
message over the socket FD is a line of JSON.

from the driver  {"run": DIRECTORY, "options": …}, once; then {"t0_ns": …}, {"seen": …} for what
                 the driver knows (a program that has ended, or is ready; in a
                 cluster a file that has changed), {"ended": INSTANCE,
                 "at_ns": …, "forced": …} where a log may have a last line without an end (`forced`:
                 its program did not end by itself), {"taken": true, "digest": …}, {"again": WHY} or
                 {"refused": WHY} for what was offered, {"base": DIGEST} after an action of somebody
                 else's, and {"end": true}
to the driver    {"ready": true}; {"offer": …, "sizes": {FILE: BYTES}} and the bytes of the longer
                 plan; {"refused": …} for what cannot be done; {"beyond": …} once where `at most` is
                 reached; {"totals": […], "cut": […]} at the end

A line counts when it has its end, or its program has ended by itself; a file when it is closed, or
gets its name (runtime/system/inotify.py), from time 0 on. In virtual time it happens at the instant
of the line. In real time it happens as soon as it can be compiled, which is measured; where a
planned step has been given to the network already, it comes after that.
"""

from __future__ import annotations

import gc
import heapq
import json
import os
import re
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from compiler import firing
from compiler.declare.model import Model
from compiler.kept_firings import KeptFirings
from compiler.kept_walk import NotKeptError
from compiler.pipeline import compile_source
from compiler.plan.format import PlanError
from compiler.plan.parts import action_texts
from compiler.plan.parts.action_texts import Firing
from compiler.plan.reader import Plan, read_plan
from compiler.plan.types import PlannedReaction
from compiler.sources import RecordedFiles
from runtime.driver.timelinerunner import reacting_ahead_ns
from runtime.expectations.line_matching import is_plain
from runtime.options import K8S, REAL, has_agents
from runtime.options import decode as options_of
from runtime.results.loglines import LINE_BYTES
from runtime.rundir import logmarks
from runtime.rundir.runfiles import INSTANCES, LOGS, PLAN
from runtime.schedule import Schedule
from runtime.system.inotify import FileWatch, WriteWatch
from tdl import ast
from tdl.diagnostics import Severity, TdlError

SUFFIX = ".log"
READ_BYTES = 1 << 20
TEXT_CHARACTERS = 1000  # of a line, in records
MATCH_SECONDS = 10  # of the processor, for the lines of one read
TRIES = 8
FIRST_LEAD_NS = 8_000_000
AGENTS_LEAD_NS = 500_000_000  # where agents have to hear of it, read the plan and go over
LEAST_LEAD_NS = 2_000_000
MOST_LEAD_NS = 4_000_000_000
_PREFIX = logmarks.PREFIX.encode()


@dataclass(slots=True)
class _Waiting:
    """For one `when`. `number` from 1 on."""

    number: int
    planned: PlannedReaction
    names: frozenset[str]
    pattern: re.Pattern[str] | None
    seen: int = 0
    cut: int = 0  # lines that were not looked at to their end, and may have it

    def has(self, line: str, *, cut: bool, torn: bool) -> bool:
        """In a line that is cut an expression may mean what is not there (`$`), and so it may in
        one that its program has not ended (`torn`): no match there counts, as for expectations
        (runtime/expectations/line_matching.py)."""
        if self.pattern is None:
            found = self.planned.pattern in line
        else:
            found = not cut and not torn and self.pattern.search(line) is not None
        self.cut += cut and not found
        return found


@dataclass(order=True, slots=True)
class _Firing:
    """`at_ns`: when it is to be, since the start."""

    at_ns: int
    order: int
    reaction: _Waiting = field(compare=False)
    time: int = field(compare=False)
    instance: str = field(compare=False)
    text: str = field(compare=False)
    seen_ns: int = field(compare=False)
    after_ns: int = field(compare=False)

    def record(self) -> dict[str, object]:
        planned = self.reaction.planned
        place = {"file": planned.file} if planned.file else {}
        return {
            "target": self.instance,
            "reaction": self.reaction.number,
            "firing": self.time,
            "line": planned.line,
            "text": self.text[:TEXT_CHARACTERS],
            "seen_ns": self.seen_ns,
            "after_ns": self.after_ns,
            **place,
        }


class _Line:
    """The connection to the driver."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self._rest = b""
        self._waiting: list[dict[str, Any]] = []

    def send(self, record: Mapping[str, object], data: bytes = b"") -> None:
        self.socket.sendall(json.dumps(record).encode() + b"\n" + data)

    def receive(self) -> dict[str, Any]:
        """The next message. EOFError when there are no more."""
        while not self._waiting:
            data = self.socket.recv(READ_BYTES)
            if not data:
                raise EOFError
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._waiting += map(json.loads, lines)
        return self._waiting.pop(0)

    def ready(self) -> bool:
        return bool(self._waiting) or bool(select.select([self.socket], [], [], 0)[0])


class _Read(NamedTuple):
    """`cut`: more of it was not read; `torn`: its program has not ended it, as far as is known."""

    text: str
    cut: bool
    torn: bool


class _Log:
    """Reads on in the log of an instance."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self._left = False  # the last one was taken without its end
        self._goes_on = False  # what follows goes on with a line in which a mark stands

    def lines(self, *, ended: bool = False, forced: bool = False) -> Iterator[_Read]:
        """Those that have come to their end since the last time, but for the run's own. `ended`: so
        has the last one, whatever it looks like; `forced`: but its program did not end by itself.
        """
        before: bytes | None = None  # what comes next says whether it is whole
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                while data := file.read(READ_BYTES):
                    self._at += len(data)
                    *whole, rest = (self._rest + data).split(b"\n")
                    self._rest = rest[: LINE_BYTES + 1]
                    if self._left and whole:
                        self._left = False
                        whole = whole if whole[0] else whole[1:]  # it was its end that came
                    for line in whole:
                        if before is not None:
                            yield from self._read(before, _mark(line))
                        before = line
        except FileNotFoundError:
            return
        if before is not None:
            yield from self._read(before, None)
        if ended and self._rest:
            last, self._rest, self._left = self._rest, b"", True
            yield from self._read(last, None, torn=forced)

    def _read(
        self, line: bytes, after: logmarks.Mark | None, *, torn: bool = False
    ) -> Iterator[_Read]:
        """`after`: the mark that follows it, if one does."""
        mark = _mark(line)
        if mark is not None:
            self._goes_on = mark.goes_on and (mark.cut or self._goes_on)
        if line.startswith(_PREFIX):
            return
        torn = torn or self._goes_on or (after is not None and after.tears)
        self._goes_on = False
        text = line[:LINE_BYTES].decode("utf-8", "replace")
        yield _Read(text, len(line) > LINE_BYTES, torn)


def _mark(line: bytes) -> logmarks.Mark | None:
    if not line.startswith(_PREFIX):
        return None
    return logmarks.parse(line[:LINE_BYTES].decode("utf-8", "replace"))


class Reactor:
    def __init__(self, line: _Line) -> None:
        self._line = line
        said = line.receive()
        self._directory = Path(said["run"])
        self._options = options_of(said["options"], "options")
        self._real = self._options.time == REAL
        self._plan = read_plan(self._directory / PLAN, lazy=True)
        self._base = self._plan.digest
        self._whens = firing.statements(self._plan)
        self._model: Model | None = None  # of the plan, where it was compiled as a whole
        self._kept: KeptFirings | None = None  # of this plan, what further firings cost less with
        self._offered: KeptFirings | None = None  # the same of the one that is offered
        self._schedule = Schedule(self._plan, self._options)
        nodes = self._plan.topology.nodes
        self._reactions = [
            _Waiting(number, one, frozenset(nodes[node].name for node in one.nodes), _compiled(one))
            for number, one in enumerate(self._plan.topology.reactions, 1)
        ]
        self._logs: dict[str, _Log] = {}
        self._ended: list[tuple[str, int, bool]] = []  # before logs were read for the first time
        self._due: list[_Firing] = []
        self._order = 0
        self._t0_ns = 0
        self._least_lead_ns = AGENTS_LEAD_NS if has_agents(self._options) else LEAST_LEAD_NS
        self._lead_ns = max(FIRST_LEAD_NS, self._least_lead_ns) if self._real else 0
        if not self._real and has_agents(self._options):
            self._lead_ns = FIRST_LEAD_NS  # compiling takes no time, and agents' messages do
        self._watch: WriteWatch | None = None
        self._files: FileWatch | None = None

    # -- what is seen -----------------------------------------------------------------------------

    def watch_logs(self) -> None:
        waited_for = [one for one in self._reactions if one.planned.kind == "log"]
        if waited_for:
            logs = self._directory / LOGS
            descriptor = os.open(logs, os.O_RDONLY | os.O_DIRECTORY)
            self._watch = WriteWatch(descriptor)
            os.close(descriptor)
            names = {name for one in waited_for for name in one.names}
            self._logs = {name: _Log(logs / f"{name}{SUFFIX}") for name in sorted(names)}

    def watch_files(self) -> None:
        """Before time 0: what is there by then does not count. In a cluster the agents do it."""
        if self._options.backend == K8S:
            return
        paths: dict[str, list[str]] = {}
        for one in self._reactions:
            for name in one.names if one.planned.kind == "file" else ():
                paths.setdefault(name, []).append(one.planned.pattern)
        if paths:
            roots = {name: str(self._directory / INSTANCES / name) for name in paths}
            self._files = FileWatch(roots, {name: sorted(set(paths[name])) for name in paths})

    def look(self) -> None:
        """At what programs have written."""
        self._look_at_files()
        if self._watch is not None:
            self._look_at_logs()

    def _look_at_files(self) -> None:
        for name, path, how in () if self._files is None else self._files.changes():
            seen_ns = max(self._elapsed(), 0)
            for one in self._waiting("file", name):
                if one.planned.pattern == path:
                    self._count(one, name, f"{path}: {how}", seen_ns)

    def _look_at_logs(self) -> None:
        assert self._watch is not None
        grown = self._watch.names()
        names = None if grown is None else {one.removesuffix(SUFFIX) for one in grown}
        self._read([one for one in self._logs if names is None or one in names])

    def _read(
        self, names: Iterable[str], ended_ns: int | None = None, *, forced: bool = False
    ) -> None:
        """`ended_ns`: when their programs have ended, so that nothing was written later; `forced`:
        not by themselves."""
        if self._real:
            signal.alarm(MATCH_SECONDS)  # it ends this process, which ends the run
        for name in names:
            for line in self._logs[name].lines(ended=ended_ns is not None, forced=forced):
                seen_ns = self._elapsed()
                seen_ns = seen_ns if ended_ns is None else min(seen_ns, ended_ns)
                self._take_line(name, line, seen_ns)
        if self._real:
            signal.alarm(0)

    def _take_line(self, name: str, line: _Read, seen_ns: int) -> None:
        for one in self._waiting("log", name):
            if one.has(line.text, cut=line.cut, torn=line.torn):
                self._count(one, name, line.text, seen_ns)

    def _take(self, name: str, seen: Mapping[str, Any]) -> None:
        for one in self._waiting(seen["kind"], name):
            planned = one.planned
            same = planned.pattern == seen["path"] if "path" in seen else True
            if same and planned.status in (-1, seen["status"]):
                self._count(one, name, seen["text"], seen["seen_ns"])

    def _waiting(self, kind: str, name: str) -> Iterator[_Waiting]:
        for one in self._reactions:
            planned = one.planned
            is_over = one.seen >= planned.most and not planned.every
            if planned.kind == kind and name in one.names and not is_over:
                yield one

    def _count(self, one: _Waiting, name: str, text: str, seen_ns: int) -> None:
        one.seen += 1
        after_ns = one.planned.after_ns // self._schedule.clock.pace
        at_ns = max(seen_ns, 0) + after_ns
        self._order += 1
        found = _Firing(at_ns, self._order, one, one.seen, name, text, seen_ns, after_ns)
        if one.seen <= one.planned.most:
            heapq.heappush(self._due, found)
        elif one.seen == one.planned.most + 1 and one.planned.every:
            self._line.send({"beyond": found.record()})

    def _elapsed(self) -> int:
        return time.monotonic_ns() - self._t0_ns

    # -- what is done -----------------------------------------------------------------------------

    def run(self) -> None:
        """Until the driver says that it is the end. EOFError if it is gone."""
        self._warm_up()
        self._line.send({"ready": True})
        while not self._t0_ns:
            if not self._hear(self._line.receive()):
                return
        self._sleep_until(0)
        self.watch_logs()
        self._read(self._logs)  # what was written before
        for ended in self._ended:
            self._hear_of_end(*ended)
        while True:
            self._fire_what_is_due()
            own = [one for one in (self._watch, self._files) if one is not None]
            watched: list[Any] = [self._line.socket, *own]
            if not self._due:
                self._keep()  # nobody waits for it
            left_s = None if not self._due else max(self._left_ns(), 0) / 1e9
            found = [] if self._line.ready() else select.select(watched, [], [], left_s)[0]
            if any(one in found for one in own):
                self.look()
            while self._line.ready():
                if not self._hear(self._line.receive()):
                    return

    def _left_ns(self) -> int:
        """Until the first has to be compiled."""
        return self._due[0].at_ns - self._lead_ns - self._elapsed()

    def _sleep_until(self, elapsed_ns: int) -> None:
        while (left := elapsed_ns - self._elapsed()) > 0:
            time.sleep(left / 1e9)

    def _hear(self, said: Mapping[str, Any]) -> bool:
        """False at the end."""
        if "t0_ns" in said:
            self._t0_ns = int(said["t0_ns"])
            self.watch_files()
        elif "seen" in said:
            self._take(said["seen"]["target"], said["seen"])
        elif "ended" in said:
            self._hear_of_end(said["ended"], said["at_ns"], said["forced"])
        elif "base" in said:
            self._base = str(said["base"])
        elif "end" in said:
            seen, cut = (
                [getattr(one, what) for one in self._reactions] for what in ("seen", "cut")
            )
            self._line.send({"totals": seen, "cut": cut})
            return False
        return True

    def _hear_of_end(self, name: str, ended_ns: int, forced: bool) -> None:
        if name in self._logs:
            self._read([name], ended_ns, forced=forced)
        elif not self._logs:
            self._ended.append((name, ended_ns, forced))

    def _fire_what_is_due(self) -> None:
        while self._due and self._left_ns() <= 0:
            self._fire(heapq.heappop(self._due))
            if self._real:
                self.look()  # what came meanwhile has its own time

    def _fire(self, one: _Firing) -> None:
        """Offers it to the driver until that takes it, or refuses it."""
        why = ""
        for _ in range(TRIES):
            began_ns = time.monotonic_ns()
            try:
                longer, header, plan = self._longer(one)
            except TdlError as error:
                errors = (one for one in error.diagnostics if one.severity is Severity.ERROR)
                why = "; ".join(dict.fromkeys(each.message for each in errors))
                break
            except _NotNowError as error:
                why = str(error)
                break
            self._line.send({"offer": header, "sizes": _sizes(longer)}, b"".join(longer.values()))
            answer = self._answer()
            if self._real:
                self._learn(time.monotonic_ns() - began_ns)
            if "taken" in answer:
                self._follow(plan)
                return
            why = str(answer.get("refused") or answer.get("again"))
            if "refused" in answer:
                break
            self._lead_ns = min(2 * self._lead_ns, MOST_LEAD_NS)
        self._line.send({"refused": {**one.record(), "why": why}})

    def _answer(self) -> Mapping[str, Any]:
        while True:
            said = self._line.receive()
            if said.keys() & {"taken", "again", "refused"}:
                return said
            if not self._hear(said):
                raise EOFError

    def _learn(self, took_ns: int) -> None:
        """How long it takes, on average of late: what takes a little longer is a little late."""
        self._lead_ns = max((self._lead_ns + took_ns) // 2, self._least_lead_ns)

    def _follow(self, plan: Plan) -> None:
        self._plan, self._base = plan, plan.digest
        self._schedule = Schedule(plan, self._options)
        self._kept, self._offered = self._offered, None
        gc.collect()

    def _keep(self) -> None:
        """Where the plan was compiled as a whole: so that the next firing need not be."""
        model, self._model = self._model, None
        if model is not None and self._kept is None:
            now_ns = self._schedule.clock.plan_time(max(self._elapsed(), 0))
            with suppress(NotKeptError):
                self._kept = KeptFirings(self._plan, model, now_ns)

    def _read_again(self) -> None:
        """Somebody else has done something."""
        self._model = self._kept = self._offered = None
        for _ in range(100):
            plan = read_plan(self._directory / PLAN, lazy=True)
            if plan.digest == self._base:
                self._follow(plan)
                return
            time.sleep(0.02)
        raise _NotNowError("the plan in force cannot be read")

    def _longer(self, one: _Firing) -> tuple[Mapping[str, bytes], dict[str, object], Plan]:
        """The files of the plan with this firing in it, what the driver is told, and the plan."""
        if self._base != self._plan.digest:
            self._read_again()
        asked_ns = self._elapsed()
        at_ns = self._moment(
            max(one.at_ns, asked_ns + self._lead_ns) if self._lead_ns else one.at_ns
        )
        number = 1 + max(map(action_texts.number_of, self._plan.attached.includes), default=0)
        when = self._whens[one.reaction.number - 1]
        which = Firing(one.reaction.number, one.time)
        files, plan, text = self._fired(when, one.instance, which, number, at_ns)
        header = {
            **one.record(),
            "action": number,
            "base": self._plan.digest,
            "at_ns": at_ns,
            "asked_ns": asked_ns,
            "does": text,
        }
        return files, header, plan

    def _fired(
        self, when: ast.When, instance: str, which: Firing, number: int, at_ns: int
    ) -> tuple[Mapping[str, bytes], Plan, str]:
        """Files and plan with it, and its text; by what is kept of the firings before, where it can
        be. TdlError."""
        kept, self._kept = self._kept, None  # until the run has taken it
        if kept is not None and kept.takes(at_ns):
            try:
                files, plan, text = kept.fire(when, instance, which, number, at_ns)
            except NotKeptError:
                """It takes the whole compiler, which also says what is wrong."""
            else:
                self._model, self._offered = None, kept
                return files, plan, text
        found, text = firing.fire(self._plan, when, instance, which, number, at_ns)
        self._model, self._offered = found.model, None
        return found.files, found.plan, text

    def _moment(self, at_ns: int) -> int:
        """The time of the plan at which it can be, this long after the start or later: not before
        what the network has been asked for by then."""
        clock, at_ns = self._schedule.clock, max(at_ns, 1)  # after the start
        for number, step in enumerate(self._schedule.steps[1:], 1):
            if at_ns <= step.due_ns <= at_ns + reacting_ahead_ns(self._schedule, number):
                at_ns = step.due_ns + 1
        found = clock.plan_time(at_ns)
        if found >= self._schedule.end_ns:
            raise _NotNowError("the run is ending")
        return found

    def _warm_up(self) -> None:
        """The first compilation takes ten times as long as the others."""
        for number, one in enumerate(self._reactions[:4]):
            try:
                when, name = self._whens[number], min(one.names)
                for _ in range(2):
                    firing.fire(
                        self._plan, when, name, Firing(number + 1, 1), 1, self._plan.end_ns // 2
                    )
            except TdlError:
                continue  # it is not possible then
        self._model = self._whole()
        self._warm_up_kept()
        gc.collect()
        gc.freeze()
        gc.disable()

    def _whole(self) -> Model:
        """Of the plan. TdlError, PlanError."""
        plan = self._plan
        sources = RecordedFiles(plan)
        return compile_source(
            plan.source, seed=plan.seed, sources=sources, params=plan.params, doubts=False
        ).model

    def _warm_up_kept(self) -> None:
        """The same of what is kept."""
        assert self._model is not None
        for number, one in enumerate(self._reactions[:4]):
            with suppress(NotKeptError):
                kept = KeptFirings(self._plan, self._model, 1)
                which, at_ns = Firing(number + 1, 1), self._plan.end_ns // 2
                kept.fire(self._whens[number], min(one.names), which, 1, at_ns)


class _NotNowError(Exception):
    pass


def _compiled(one: PlannedReaction) -> re.Pattern[str] | None:
    if one.kind != "log" or is_plain(one.pattern):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what will mean something else in another Python
        return re.compile(one.pattern)


def _sizes(files: Mapping[str, bytes]) -> dict[str, int]:
    return {name: len(data) for name, data in files.items()}


def main() -> int:
    try:
        Reactor(_Line(int(sys.argv[1]))).run()
    except (EOFError, ConnectionError):
        return 0
    except (PlanError, OSError, OverflowError) as error:
        sys.stderr.write(f"reactions: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
