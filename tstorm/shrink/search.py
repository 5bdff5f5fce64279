"""Looks for the shortest text that still fails: fewer events first, then an earlier end.

Input: a script, trials, and when the failure was decided. Output: the shortest text that failed,
also where the attempts were not enough to be sure that there is no shorter one.
Algorithm: ddmin (ddmin.py) over the statements of the timeline; then the end of the experiment is
halved between what was too early and what was late enough, to within a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tstorm import units
from tstorm.shrink import ddmin
from tstorm.shrink.script import Script, Statement
from tstorm.shrink.trials import InterruptedTrialError, SpentError, Trials

STEP_NS = 100_000_000  # ends are whole tenths of a second
INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Shrunk:
    """`kept` events of the script, and its end. `confirmed`: the text failed here, too. `stopped`
    says why the search is not complete, '' if it is."""

    script: Script
    kept: tuple[Statement, ...]
    end_ns: int | None = None
    confirmed: bool = False
    stopped: str = ""

    @property
    def text(self) -> str:
        return self.script.keeping(self.kept, self.end_ns)


def search(script: Script, trials: Trials, decided_ns: int | None = None) -> Shrunk:
    found = Shrunk(script, script.events)
    try:
        found.confirmed = trials.fails(script.text, "everything")
        if found.confirmed:
            _fewer(found, trials)
            _shorter(found, trials, decided_ns)
    except SpentError as spent:
        found.stopped = str(spent)
    except (InterruptedTrialError, KeyboardInterrupt):
        found.stopped = INTERRUPTED
    return found


def _fewer(found: Shrunk, trials: Trials) -> None:
    count = len(found.script.events)

    def fails(kept: Sequence[Statement]) -> bool:
        failed = trials.fails(found.script.keeping(kept), f"{len(kept)} of {count} statements")
        if failed:
            found.kept = tuple(kept)
        return failed

    ddmin.minimise(found.script.events, fails)


def _shorter(found: Shrunk, trials: Trials, decided_ns: int | None) -> None:
    """The moment that decided is tried first: most failures need nothing that comes later."""
    if found.script.quit is None:
        return
    early_ns, late_ns = 0, found.script.end_ns
    tried_ns = _rounded(decided_ns or 0) + STEP_NS if decided_ns else 0
    while late_ns - early_ns > max(late_ns // 10, STEP_NS):
        if not early_ns < tried_ns < late_ns:
            tried_ns = max(_rounded((early_ns + late_ns) // 2), early_ns + STEP_NS)
        if tried_ns >= late_ns:
            return
        text = found.script.keeping(found.kept, tried_ns)
        if trials.fails(text, f"an end at {units.duration(tried_ns)}"):
            found.end_ns = late_ns = tried_ns
        else:
            early_ns = tried_ns
        tried_ns = 0


def _rounded(time_ns: int) -> int:
    """Up to a whole step."""
    return -(-time_ns // STEP_NS) * STEP_NS
