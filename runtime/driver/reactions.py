"""Reactions of a run (`when`): starts who waits for them, and takes what comes of them.

Who sees that something has happened, and compiles what is to be done, is a program of its own
(tstorm/live/reactor.py, which has the messages); it runs beside the driver, so that neither
expressions nor plans hold an event up. What it offers is a longer plan, which takes the place of
the present one whole or not at all, as that of `tstorm do` (runtime/driver/steering.py).
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from compiler.plan.parts.planned_reactions import are_waited_for
from compiler.plan.reader import Plan
from runtime.driver.driver_messages import DriverConfig
from runtime.driver.starts import check_of
from runtime.driver.steering import Steering
from runtime.driver.timelinerunner import CONDITION, TimelineRunner
from runtime.errors import RunError, fail
from runtime.rundir.eventlog import how_ended
from runtime.system import process_limits

_PROGRAM = ("-P", "-m", "tstorm.live.reactor")  # it knows the compiler, which nobody here does
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_LINE_BYTES = 1 << 24
Record = Mapping[str, Any]


class Reactions:
    """`begin` after `start`, at the latest at time 0; `end` before programs are ended."""

    def __init__(
        self,
        config: DriverConfig,
        plan: Plan,
        steering: Steering,
        runner: TimelineRunner,
        log: Callable[[Record], None],
        warn: Callable[[str], None],
    ) -> None:
        self._config = config
        self._steering = steering
        self._runner = runner
        self._log = log
        self._warn = warn
        self._planned = plan.topology.reactions if are_waited_for(plan) else ()
        names = [node.name for node in plan.topology.nodes]
        self._names = {
            kind: {names[node] for one in self._planned if one.kind == kind for node in one.nodes}
            for kind in ("log", "exit", "ready", "file")
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._following: asyncio.Task[None] | None = None
        self._totals: asyncio.Future[Mapping[str, list[int]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._refused = 0
        self._ending = False

    @property
    def pids(self) -> list[int]:
        return [] if self._process is None else [self._process.pid]

    async def start(self, log: IO[bytes]) -> None:
        """Until it is ready. RunError."""
        if not self._planned:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = process_limits.start(
                "the reactions' process",
                [sys.executable, *_PROGRAM, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        ours.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_LINE_BYTES)
        self._send({"run": self._config.directory, "options": self._config.options.to_record()})
        try:
            said = await asyncio.wait_for(self._reader.readline(), _START_SECONDS)
        except (ConnectionError, TimeoutError) as error:
            raise self._died() from error
        if not said:
            raise self._died()

    def begin(self, t0_ns: int) -> None:
        if self._writer is not None:
            self._send({"t0_ns": t0_ns})
            self._following = asyncio.get_running_loop().create_task(self._follow())
            self._following.add_done_callback(self._over)

    def see(self, record: Record) -> None:
        """What the driver has noted: it may be what is waited for."""
        kind, target = record.get("kind"), record.get("target")
        if self._writer is None or self._ending:
            return
        if kind == "exit" and target in self._names["log"]:
            forced = bool(record.get("asked") or record.get("signal"))
            at_ns = max(int(record["applied_ns"]), 0)
            self._send({"ended": target, "at_ns": at_ns, "forced": forced})
        if kind == "exit" and target in self._names["exit"] and not record.get("asked"):
            status = record.get("status")
            self._tell(record, "exit", how_ended(record), -2 if status is None else int(status))
        elif kind == "ready" and target in self._names["ready"]:
            self._tell(record, "ready", "ready")
        elif "started_ns" in record and target in self._names["ready"]:
            instance = self._runner.instances[str(target)]
            if not check_of(instance):
                self._tell(record, "ready", "started")

    def hear_of_file(self, target: str, path: str, how: str, elapsed_ns: int) -> None:
        """From whoever sees the files of an instance, where the reactions' process does not."""
        if self._writer is not None and not self._ending and target in self._names["file"]:
            seen_ns = min(max(elapsed_ns, 0), max(self._runner.elapsed(), 0))
            found = {"target": target, "kind": "file", "text": f"{path}: {how}", "path": path}
            self._send({"seen": {**found, "seen_ns": seen_ns, "status": -2}})

    def follow(self) -> None:
        """The plan has become another one, by somebody else; told when it can be read."""
        digest = self._runner.plan.digest
        if self._writer is not None and not self._ending and digest:
            self._send({"base": digest})

    def _tell(self, record: Record, kind: str, text: str, status: int = -2) -> None:
        seen_ns = max(int(record["applied_ns"]), 0)
        found = {"target": record["target"], "kind": kind, "text": text, "seen_ns": seen_ns}
        self._send({"seen": {**found, "status": status}})

    def _send(self, record: Record) -> None:
        if self._writer is not None:
            self._writer.write(json.dumps(record).encode() + b"\n")

    async def _follow(self) -> None:
        assert self._reader is not None
        while line := await self._reader.readline():
            said = json.loads(line)
            if "offer" in said:
                files = {
                    name: await self._reader.readexactly(size)
                    for name, size in said["sizes"].items()
                }
                await self._take(said["offer"], files)
            elif "refused" in said:
                self._refuse(said["refused"])
            elif "beyond" in said:
                self._bound(said["beyond"])
            elif "totals" in said:
                self._totals.set_result(said)
                return
        if not self._ending:
            raise self._died()

    async def _take(self, offer: dict[str, Any], files: Mapping[str, bytes]) -> None:
        found = await self._steering.fire(offer, files)
        if found.digest:
            self._send({"taken": True, "digest": found.digest})
            await self._steering.keep(files)
        else:
            self._send({"refused": found.refused} if found.refused else {"again": found.again})

    def _refuse(self, said: dict[str, Any]) -> None:
        self._refused += 1
        why = said.pop("why")
        said.pop("reaction")
        self._log(
            {
                "kind": "when",
                "origin": CONDITION,
                **said,
                "refused": why,
                "applied_ns": max(self._runner.elapsed(), 0),
            }
        )
        self._warn(f"line {said['line']}: what follows on {said['target']} is not done: {why}")

    def _bound(self, said: dict[str, Any]) -> None:
        planned = self._planned[said["reaction"] - 1]
        self._warn(
            f"line {planned.line}: this has happened {planned.most} times, which is the most: what"
            " comes after is not reacted to"
        )

    def _died(self) -> RunError:
        return RunError(
            "the process that waits for reactions (`when`) has ended",
            "its last words are in driver.log; a pattern that takes more than 10 s is one reason",
        )

    def _over(self, done: asyncio.Task[None]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None and not self._ending:
            fail(self._runner.broken, error)

    async def end(self) -> list[dict[str, int | str]]:
        """What became of each: nothing is done after this."""
        if self._process is None or self._writer is None:
            return []
        self._ending = True
        self._send({"end": True})
        none = [0] * len(self._planned)
        totals: Mapping[str, list[int]] = {"totals": none, "cut": none}
        if self._following is not None:
            with suppress(TimeoutError):
                totals = await asyncio.wait_for(self._totals, _END_SECONDS)
            self._following.cancel()
        self._process.kill()
        self._process.wait()
        self._writer.close()
        return [
            {
                "line": one.line,
                **({"file": one.file} if one.file else {}),
                "seen": count,
                "cut": cut,
                "most": one.most,
                "every": one.every,
            }
            for one, count, cut in zip(self._planned, totals["totals"], totals["cut"], strict=True)
        ]
