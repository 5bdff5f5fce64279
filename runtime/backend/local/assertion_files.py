"""Where the programs of an instance write what they assert of themselves (`expect assertions`): the
variable that the SDKs of the field look at.

Most SDKs empty the file that they are given when they begin. So each start of the instance's
program has a file of its own, and each command that runs beside it: what a life before a crash has
written stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from runtime.rundir.runfiles import ASSERTIONS

VARIABLE = "ANTITHESIS_SDK_LOCAL_OUTPUT"


class AssertionFiles:
    """Of one instance. `home`: its directory, as its programs see it; '' for an instance of which
    nobody expects assertions, which has no such variable."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._starts: Counter[str] = Counter()

    def of_program(self) -> Mapping[str, str]:
        """The variable for its next start."""
        return self._next("program")

    def of_command(self) -> Mapping[str, str]:
        """The variable for the next command."""
        return self._next("command")

    def _next(self, what: str) -> Mapping[str, str]:
        if not self._home:
            return {}
        self._starts[what] += 1
        return {VARIABLE: f"{self._home}/{ASSERTIONS}/{what}-{self._starts[what]:03}.jsonl"}
