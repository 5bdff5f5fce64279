"""Whether images can be run here (`img=` without `exec=`): the tools, and the user ids.

Never "fail": runs of the machine's own programs need none of it.
"""

from __future__ import annotations

import shutil

from runtime.doctor.findings import OK, WARN, Check
from runtime.errors import RunError
from runtime.images import ids, image_tools

NAME = "images"
_NOT_NEEDED = "only needed for services with img= and no exec="
_MAPPERS = ("newuidmap", "newgidmap")


def check() -> Check:
    lacking = image_tools.lacking()
    if lacking:
        missing = image_tools.missing(lacking)
        return Check(NAME, WARN, missing.message, f"{missing.remedy} ({_NOT_NEEDED})")
    try:
        available = ids.available()
    except RunError as error:
        return Check(NAME, WARN, error.message, error.remedy or _NOT_NEEDED)
    if available == ids.ONE:
        mappers = [name for name in _MAPPERS if shutil.which(name) is None]
        why = f" ({' and '.join(mappers)} not installed)" if mappers else ""
        return Check(NAME, WARN, f"{ids.WARNING}{why}", ids.REMEDY)
    users = "all user ids" if available == ids.ALL else "the user ids of /etc/subuid"
    return Check(NAME, OK, f"skopeo fetches and umoci unpacks them, with {users}")
