"""Requests to stop that reach this process: SIGINT (^C), SIGTERM, SIGHUP."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noted() -> Iterator[socket.socket]:
    """A socket with a byte for every SIGINT, SIGTERM or SIGHUP: its number. Silent outside the main
    thread."""
    readable, writable = socket.socketpair()
    writable.setblocking(False)
    caught = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        caught.append(signal.SIGHUP)
    old: dict[signal.Signals, Any] = {}

    def note(number: int, _frame: object) -> None:
        writable.send(bytes([number]))

    with readable, writable:
        try:
            if threading.current_thread() is threading.main_thread():
                old = {number: signal.signal(number, note) for number in caught}
            yield readable
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
