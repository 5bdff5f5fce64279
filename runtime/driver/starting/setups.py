"""Runs `setup=` of a service in each of its instances, once before the first start of its program.

Output goes to the instance's log between two marks. A setup that does not end with 0 means that the
program could not start; the next join of the instance tries again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from runtime.backend.instance import Incarnation, Instance, ServiceCommands
from runtime.driver.eventbook import EventBook
from runtime.errors import RunError
from runtime.rundir import logmarks


class Setups:
    def __init__(self, instances: Mapping[str, Instance], book: EventBook) -> None:
        self._instances = instances
        self._book = book
        self._done: set[str] = set()

    def is_wanted(self, name: str) -> bool:
        commands = self._instances[name].commands
        return commands is not None and bool(commands.setup) and name not in self._done

    async def run(self, name: str, incarnation: Incarnation) -> str:
        """To its end, which is noted. Returns why the program cannot be started, '' if it can."""
        commands = self._instances[name].commands
        assert commands is not None
        began_ns = time.monotonic_ns()
        self._mark(commands, f"setup {commands.setup[0]}")
        try:
            status = (await commands.run(incarnation, commands.setup, logged=True)).status
        except RunError as error:
            self._note(name, began_ns, {"error": error.message})
            return f"setup could not run: {error.message}"
        self._mark(commands, f"setup ended with {status}")
        self._note(name, began_ns, {"status": status})
        if status:
            return f"setup ended with {status}"
        self._done.add(name)
        return ""

    def _note(self, name: str, began_ns: int, how: Mapping[str, object]) -> None:
        now_ns = time.monotonic_ns()
        record = {"kind": "setup", "target": name, "took_ns": now_ns - began_ns, **how}
        self._book.note(record, applied_ns=now_ns)

    def _mark(self, commands: ServiceCommands, what: str) -> None:
        commands.mark(logmarks.words(self._book.since_start(time.monotonic_ns()), what))
