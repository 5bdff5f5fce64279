"""What a process has taken: bytes over its TCP connections, memory."""

from __future__ import annotations

import os
import re
import socket
import struct
from pathlib import Path

_ACKED_AT, _RECEIVED_AT = 120, 128  # of struct tcp_info, linux/tcp.h


def transferred() -> tuple[int, int]:
    """Bytes that peers have acknowledged, and bytes received, over the connections there are."""
    sent = received = 0
    for path in Path("/proc/self/fd").iterdir():
        try:
            if not path.is_socket():
                continue
            with socket.socket(fileno=os.dup(int(path.name))) as found:
                info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        except OSError:
            continue  # gone meanwhile, or no TCP
        sent += struct.unpack_from("Q", info, _ACKED_AT)[0]
        received += struct.unpack_from("Q", info, _RECEIVED_AT)[0]
    return sent, received


def peak_mib() -> float:
    """The most memory that this process has had resident (VmHWM of proc(5))."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return round(int(found.group(1)) / 1024, 1)
