"""Whether a directory is that of a campaign: what commands that look at runs ask first."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

FILE = "campaign.json"


def is_campaign(path: str | Path) -> bool:
    with suppress(OSError, ValueError):
        return stat.S_ISREG((Path(path) / FILE).lstat().st_mode)
    return False
