"""`python -m runtime.virtual.inside CONFIGURATION`: the driver of a run in virtual time.

Started in the guest by its PID 1 (tstorm-ns guest), inside the run's namespaces. The configuration
is `{"driver": …, "local": …}` as runtime.driver gets it, as JSON. What the driver says goes over
the line (runtime.virtual.line); there is nothing else that leaves the guest but files.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from runtime.backend.local import cpu_accounting
from runtime.backend.local.local_backend import LocalBackend, LocalSettings
from runtime.driver import driver_messages
from runtime.driver.driver import carry_out
from runtime.driver.driver_messages import DriverConfig, Said, config_of
from runtime.driver.progress import Progress
from runtime.errors import RunError
from runtime.json_schema import decoded
from runtime.judge.run_end import RunEnd
from runtime.rpc.control import ask, refusal
from runtime.system.realtime import rt_throttle
from runtime.virtual.execution import ExecRequest, Execution
from runtime.virtual.line import (
    AHEAD_BYTES,
    DEVICE,
    READ_BYTES,
    CallMessage,
    Lines,
    Writer,
    call_message,
)

# Calls to a run in virtual time, on the guest's side. The first thing said in a call is the
# request: `exec` starts a command (runtime.virtual.execution), anything else is asked of the
# driver's own control socket.

CLOSE_SECONDS = 5.0


class Calls:
    """`keeper` is tstorm-ns, `send` puts a record on the line."""

    def __init__(
        self, control: Path, keeper: str, send: Callable[[Mapping[str, object]], None]
    ) -> None:
        self._control = control
        self._keeper = keeper
        self._send = send
        self._executions: dict[int, Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def hear(self, record: Mapping[str, Any]) -> None:
        message = call_message(record)
        execution = self._executions.get(message.call)
        if execution is not None:
            try:
                execution.hear(message)
            except (ValueError, TypeError):  # one that makes no sense is hung up on
                execution.kill()
        elif message.say is not None and "ask" in message.say:
            task = asyncio.get_running_loop().create_task(self._answer(message.call, message.say))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, request: Mapping[str, Any]) -> None:
        def tell(said: Mapping[str, object]) -> None:
            self._send(CallMessage(number, said).to_record())

        def confirm() -> None:
            self._send(CallMessage(number, took=True).to_record())

        try:
            if request["ask"] == "exec":
                execution = self._executions[number] = Execution(self._keeper, tell, confirm)
                wanted = decoded(ExecRequest, request, "the request")
                await execution.run(wanted, await self._enter(wanted.instance))
            else:
                answer, _ = await asyncio.to_thread(ask, self._control, request)
                tell(answer)
        except RunError as error:
            tell(refusal(error))
        except (KeyError, TypeError, ValueError) as error:
            tell(refusal(RunError(f"not a request: {error!r}")))
        finally:
            self._executions.pop(number, None)
            self._send(CallMessage(number, over=True).to_record())

    async def _enter(self, instance: str) -> tuple[Mapping[str, Any], int]:
        """How to enter the instance, and a pidfd of it."""
        question = {"ask": "enter", "instance": instance}
        place, descriptor = await asyncio.to_thread(ask, self._control, question)
        assert descriptor is not None
        return place, descriptor

    async def close(self) -> None:
        """The run ends, and every call with it: commands have died with their instances."""
        for execution in self._executions.values():
            execution.kill()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()


REPORTS = 100  # regular ones in a run: each takes real time and none passes
LEAST_REPORT_SECONDS = 0.5
CROWDED_BYTES = 1 << 16  # waiting to go out: who reads is slow, and news is dropped


class LineEnd:
    """The driver's channel. `stop` is set when the host asks for it."""

    def __init__(self, descriptor: int, control: Path, keeper: str) -> None:
        self._descriptor = descriptor
        self._lines = Lines()
        self._received = self._confirmed = 0  # bytes
        self._writer = Writer(descriptor)
        self._calls = Calls(control, keeper, self._writer.send)
        self.stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._receive)

    def _receive(self) -> None:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return
        self._received += len(data)
        if self._received - self._confirmed >= AHEAD_BYTES // 2:
            self._confirmed = self._received
            self._writer.send({"got": self._received})
        for record in self._lines.take(data):
            if "call" in record:
                self._calls.hear(record)
            elif record.get("stop"):
                self.stop.set()

    def report_seconds(self, planned_seconds: float) -> float:
        """So many records that they look like motion, however fast the run goes."""
        return max(LEAST_REPORT_SECONDS, planned_seconds / REPORTS)

    def send(self, said: Said) -> None:
        """Progress is dropped while what was said before has not gone out."""
        if not isinstance(said, Progress) or self._writer.waiting_bytes < CROWDED_BYTES:
            self._writer.send(driver_messages.write(said))

    async def finish(self, end: RunEnd) -> None:
        """Says the last thing and waits until all of it is out."""
        await self._calls.close()
        self._writer.send(driver_messages.write(end))
        while self._writer.waiting_bytes:
            await asyncio.sleep(0.01)


async def main_async(record: Mapping[str, Any]) -> int:
    config: DriverConfig = config_of(record["driver"])
    local = decoded(LocalSettings, record["local"], "local")
    descriptor = os.open(DEVICE, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    Path(DEVICE).unlink()  # what instances, which are root here, write there is nothing we say
    channel = LineEnd(descriptor, Path(config.socket), local.nursery)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, channel.stop.set)
    make = partial(LocalBackend, local)
    end = await carry_out(config, make, channel, sys.stderr.buffer)
    if config.options.cpu_ppb:
        end = end.with_facts(cpu=cpu_accounting.books())
    await channel.finish(end)
    return 0


def main() -> int:
    return rt_throttle.run(main_async(json.loads(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
