"""Signals that reach an event loop in a process where alarms are frequent.

For each signal Python writes a byte into the loop's own socket. Where the loop does not look for
long (it removes a large tree, say) and alarms come all the while
(runtime.system.realtime.rt_throttle), that socket fills. Then a signal whose byte finds no room is
lost, and Python's warning of it takes a lock inside the handler, which never returns if the thread
it interrupts has that lock.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable


def on_signals(numbers: Iterable[int], action: Callable[[], object]) -> None:
    """The action runs in the running loop once for each of these signals, or more often. In the
    main thread, whose loop it is; they stay until the loop is closed."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, action)  # a byte of it wakes the loop, from any thread
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(action))
        signal.siginterrupt(number, False)
    signal.set_wakeup_fd(signal.set_wakeup_fd(-1), warn_on_full_buffer=False)
