"""Real-time scheduling, where it is permitted, for whoever has to be on time."""

from __future__ import annotations

import os

REAL_TIME_PRIORITY = 1  # below pktd's data thread: whoever carries packets goes first


def prefer(*processes: int) -> str:
    """Real-time scheduling where permitted, for main threads only and not inherited by programs.

    0 is this process. Returns what is in force. pktd's main thread tells when a commit has taken
    effect; late news of it would delay every event. So do agents.
    """
    policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
    try:
        for process in processes:
            os.sched_setscheduler(process, policy, os.sched_param(REAL_TIME_PRIORITY))
    except OSError:
        return "other"
    return "rr"
