"""Looks for the shortest text that still fails: fewer statements, an earlier end, less of each.

Input: a script, trials, what a text means, and when the failure was decided. Output: the shortest
text that failed, also where the attempts were not enough to be sure that there is no shorter one.
Algorithm: ddmin (ddmin.py) over the statements of the timeline; then the end of the experiment is
halved between what was too early and what was late enough, to within a tenth of the time, unless
only the end decides; then the statements that are left are shrunk themselves (finer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.errors import RunError
from tstorm import units
from tstorm.shrink import ddmin
from tstorm.shrink.finer import Finer
from tstorm.shrink.script import Script
from tstorm.shrink.text import Range
from tstorm.shrink.text_meaning import TextMeaning
from tstorm.shrink.trials import InterruptedTrialError, SpentError, Trials

STEP_NS = 100_000_000  # ends are whole tenths of a second
INTERRUPTED = "interrupted"


@dataclass(slots=True)
class Shrunk:
    """`text` is the shortest so far, and `end_ns` its end if that is another one. `confirmed`: it
    failed here, too. `stopped` says why the search is not complete, '' if it is; `error` is what
    this machine could not do then."""

    script: Script
    text: str
    end_ns: int | None = None
    confirmed: bool = False
    stopped: str = ""
    error: RunError | None = None


def search(
    script: Script, trials: Trials, reading: TextMeaning, decided_ns: int | None = None
) -> Shrunk:
    found = Shrunk(script, script.text)
    try:
        found.confirmed = trials.fails(script.text, "everything")
        if found.confirmed:
            kept = _fewer(found, trials, reading)
            _shorter(found, kept, trials, decided_ns)
            Finer(found, reading, trials).search()
    except SpentError as spent:
        found.stopped = str(spent)
    except (InterruptedTrialError, KeyboardInterrupt):
        found.stopped = INTERRUPTED
    except RunError as error:  # hours may have gone into what is there
        found.stopped, found.error = error.message, error
    return found


def _fewer(found: Shrunk, trials: Trials, reading: TextMeaning) -> Sequence[Range]:
    count, closed = len(found.script.events), reading.closed(found.script.text)

    def fails(kept: Sequence[Range]) -> bool:
        text = found.script.keeping(kept)
        if (reading.closed(text) or frozenset()) - (closed or frozenset()):
            return False  # without its `leave`, a `join` would be the cause
        failed = trials.fails(text, f"{len(kept)} of {count} statements")
        if failed:
            found.text = text
        return failed

    return ddmin.minimise(found.script.events, fails)


def _shorter(found: Shrunk, kept: Sequence[Range], trials: Trials, decided_ns: int | None) -> None:
    """The moment that decided is tried first: most failures need nothing that comes later."""
    if found.script.quit is None or not trials.may_end_earlier:
        return
    early_ns, late_ns = 0, found.script.end_ns
    tried_ns = _rounded(decided_ns or 0) + STEP_NS if decided_ns else 0
    while late_ns - early_ns > max(late_ns // 10, STEP_NS):
        if not early_ns < tried_ns < late_ns:
            tried_ns = max(_rounded((early_ns + late_ns) // 2), early_ns + STEP_NS)
        if tried_ns >= late_ns:
            return
        text = found.script.keeping(kept, tried_ns)
        if trials.fails(text, f"an end at {units.duration(tried_ns)}"):
            found.text = text
            found.end_ns = late_ns = tried_ns
        else:
            early_ns = tried_ns
        tried_ns = 0


def _rounded(time_ns: int) -> int:
    """Up to a whole step."""
    return -(-time_ns // STEP_NS) * STEP_NS
