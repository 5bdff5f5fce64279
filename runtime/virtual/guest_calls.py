"""Calls to a run in virtual time, on the guest's side. The first thing said in a call is the
request: `exec` starts a command (runtime.virtual.execution), anything else is asked of the driver's
own control socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runtime.driver.control import ask, refusal
from runtime.errors import RunError
from runtime.virtual.execution import Execution

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
        number = int(record["call"])
        execution = self._executions.get(number)
        if execution is not None:
            try:
                execution.hear(record)
            except (ValueError, TypeError):  # one that makes no sense is hung up on
                execution.kill()
        elif "say" in record and "ask" in record["say"]:
            task = asyncio.get_running_loop().create_task(self._answer(number, record["say"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int, request: Mapping[str, Any]) -> None:
        def tell(said: Mapping[str, object]) -> None:
            self._send({"call": number, "say": said})

        def confirm() -> None:
            self._send({"call": number, "took": True})

        try:
            if request["ask"] == "exec":
                execution = self._executions[number] = Execution(self._keeper, tell, confirm)
                await execution.run(request, await self._enter(request))
            else:
                answer, _ = await asyncio.to_thread(ask, self._control, request)
                tell(answer)
        except RunError as error:
            tell(refusal(error))
        except (KeyError, TypeError, ValueError) as error:
            tell(refusal(RunError(f"not a request: {error!r}")))
        finally:
            self._executions.pop(number, None)
            self._send({"call": number, "over": True})

    async def _enter(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
        """How to enter the instance, and a pidfd of it."""
        question = {"ask": "enter", "instance": str(request["instance"])}
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
