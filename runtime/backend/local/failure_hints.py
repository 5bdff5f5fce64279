"""Why a program may have failed, as far as its surroundings are the reason."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory
from runtime.system import userids

_TAIL_BYTES = 4096
_OTHER_USER = re.compile(
    r"set(re|res|e)?[ug]id|setgroups|initgroups|chown|change.*owner|(switch|change|drop).*user",
    re.IGNORECASE,
)


def lack_of_numbers(log: Path) -> str:
    """To be said beside the end of a program that seems to have wanted another user; or ''."""
    if not userids.only_one():
        return ""
    said = ""
    with suppress(OSError, RunError):
        data = HeldDirectory.hold(log.parent).tail(log.name, _TAIL_BYTES)
        said = data.decode(errors="replace")
    if not _OTHER_USER.search(said):
        return ""
    return (
        "; this run has one user number only, so no program in it can become another user: "
        + userids.remedy()
    )
