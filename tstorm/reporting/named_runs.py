"""The facts of a run that the user named: by its directory, or by its name while it goes on."""

from __future__ import annotations

from runtime.errors import RunError
from runtime.launch import registry
from runtime.launch.run_status import directory_of
from runtime.rundir.rundir import RunDirectory
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


def goes_on(directory: RunDirectory) -> bool | None:
    """Whether its run is known to go on: here, or on another machine. None: it is another user's,
    and nobody here can see that."""
    path = str(directory.path)
    try:
        registry.find(path)
    except RunError:
        if registry.is_elsewhere(path):
            return True
        return None if registry.other_owner(path) else False
    return True
