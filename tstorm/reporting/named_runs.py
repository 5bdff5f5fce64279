"""The facts of a run that the user named: by its directory, or by its name while it goes on."""

from __future__ import annotations

from runtime.errors import RunError
from runtime.launch.run_status import directory_of, goes_on
from tstorm.campaign.recognise import is_campaign
from tstorm.reporting.run_facts import RunFacts, gather


def gathered(run: str) -> RunFacts:
    """RunError, PlanError."""
    if is_campaign(run):
        raise RunError(
            f"{run} is a campaign", "name one of its runs; tstorm inspect shows them all"
        )
    directory = directory_of(run)
    return gather(directory, live=goes_on(directory))
