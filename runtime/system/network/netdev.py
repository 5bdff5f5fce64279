"""What an instance's interfaces have counted: the text of /proc/PID/net/dev."""

from __future__ import annotations

import re
from typing import NamedTuple

from runtime.system.network.interface import INTERFACE

_ROW = re.compile(rb"^ *%b:(.*)$" % INTERFACE.encode(), re.MULTILINE)
_ROWS = re.compile(rb"^ *eth[0-9]+:(.*)$", re.MULTILINE)
_COLUMNS = (0, 1, 3, 8, 9, 11)  # eight of what came, then of what went


class DeviceCounts(NamedTuple):
    rx_bytes: int
    rx_packets: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_dropped: int


def counts(text: bytes) -> DeviceCounts | None:
    """Of eth0. None if it is not there. ValueError for what is no number."""
    row = _ROW.search(text)
    return None if row is None else _counts(row[1])


def of_all(text: bytes) -> DeviceCounts | None:
    """The sums of all its interfaces, as above."""
    found = [one for row in _ROWS.findall(text) if (one := _counts(row)) is not None]
    return DeviceCounts(*map(sum, zip(*found, strict=True))) if found else None


def _counts(row: bytes) -> DeviceCounts | None:
    words = row.split()
    if len(words) <= max(_COLUMNS):
        return None
    return DeviceCounts(*(int(words[at]) for at in _COLUMNS))
