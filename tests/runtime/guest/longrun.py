"""A run in virtual time that goes on for long enough to be talked to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

# Time goes on only as fast as these get through their work.
BUSY = "sh -c 'while sleep 0.002; do :; done'"
LONG = (
    f'service server img=x replicas=2 exec="{BUSY}"\n'
    "bridges s1\nlink server--s1 latency=1ms up=100Mb symmetric\nat 36000s quit\n"
)
Begin = Callable[[], subprocess.Popen[str]]
