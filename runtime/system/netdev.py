"""What an instance's interface has counted: the text of /proc/PID/net/dev."""

from __future__ import annotations

import re
from typing import NamedTuple

from runtime.system.interface import INTERFACE

_ROW = re.compile(rb"^ *%b:(.*)$" % INTERFACE.encode(), re.MULTILINE)
_COLUMNS = (0, 1, 3, 8, 9, 11)  # eight of what came, then of what went


class DeviceCounts(NamedTuple):
    rx_bytes: int
    rx_packets: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_dropped: int


def counts(text: bytes) -> DeviceCounts | None:
    """None if it is not there. ValueError for what is no number."""
    row = _ROW.search(text)
    words = row[1].split() if row is not None else []
    if len(words) <= max(_COLUMNS):
        return None
    return DeviceCounts(*(int(words[at]) for at in _COLUMNS))
