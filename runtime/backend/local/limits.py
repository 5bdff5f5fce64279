"""cpu= and mem= of instances, as control groups enforce them."""

from __future__ import annotations

from collections.abc import Callable

from compiler.plan.types import Service
from runtime.system import groups

_WORDS = {"cpu": "cpu=", "mem": "mem="}


class Limits:
    """Of one run. `warn` hears once of what this machine does not enforce.

    In virtual time no processor is limited, since computing takes no time or its own (--cpu), and
    the groups have one name in all runs, since programs can read it.
    """

    def __init__(self, run_id: str, warn: Callable[[str], None], *, virtual: bool = False) -> None:
        self._groups = groups.make("run" if virtual else run_id)
        self._warn = warn
        self._virtual = virtual
        self._said = False
        self._told: dict[str, int] = {}  # kills by the kernel that are no news of an instance

    def put(self, pid: int, name: str, service: Service) -> None:
        """A process, and all that it will start, gets no more than the service states."""
        cpu_millis = 0 if self._virtual else service.cpu_millis
        if not cpu_millis and not service.mem_bytes:
            return
        self._told[name] = self._groups.kills(name)  # of an earlier life
        lacking = self._groups.limit(name, pid, cpu_millis, service.mem_bytes)
        if lacking and not self._said:
            self._said = True
            missing = {*lacking, *self._groups.missing}
            words = " and ".join(word for what, word in _WORDS.items() if what in missing)
            self._warn(f"{words} cannot be enforced on this machine: {groups.REMEDY}")

    def explain(self, name: str) -> str:
        """To be said beside the end of its program."""
        told, self._told[name] = self._told.get(name, 0), self._groups.kills(name)
        return "; it wanted more memory than its mem=" if self._told[name] > told else ""

    def close(self) -> None:
        self._groups.remove()
