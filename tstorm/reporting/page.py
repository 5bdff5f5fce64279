"""The page of a run, as report.html has it, of what is there now.

The page reads keys of the summary which no shape names, since runs of this release have them; in a
directory that was edited they may be missing or something else.
"""

from __future__ import annotations

from runtime.errors import RunError
from runtime.foreign import REMEDY
from runtime.results import report
from runtime.rundir.rundir import encode
from tstorm.reporting.facts import Facts


def render(facts: Facts) -> bytes:
    """RunError for what is damaged."""
    try:
        return encode(report.render(facts.directory, facts.manifest, facts.summary))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{facts.directory.path}: no page can be made of it: {error!r}", REMEDY
        ) from error
