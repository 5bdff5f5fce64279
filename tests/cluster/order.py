"""What a test runs in an agent's pod to order instances about without a run, as the agent would.

    python3 -P -c TEXT join|leave|crash UID…
    python3 -P -c TEXT end UID…                 a crash of those behind a gate

It waits until a tstorm-hold of each pod takes orders, and prints when it gave the order, in ns of
the machine's clock.
"""

from __future__ import annotations

import asyncio
import sys
import time

from runtime.agent.pod import podend
from runtime.agent.pod.podprocesses import Census, NotFoundError, kept, members
from runtime.agent.process.held_program import Hold
from runtime.agent.process.orders import OrderError


def give(what: str, uid: str) -> bool:
    """Whether the order was given; not, where nothing takes orders yet."""
    try:
        hold = Hold(kept(members({uid})[uid]).hold, 0)
    except (NotFoundError, OrderError):
        return False
    print(time.time_ns())
    why = hold.order(what)
    assert not why, why
    return True


async def crash(uid: str) -> str:
    return await podend.crash(uid, Census(lambda: {uid}))


what, *uids = sys.argv[1:]
for uid in uids if what == "end" else ():
    print(time.time_ns())
    why = asyncio.run(crash(uid))
    assert not why, why
while what != "end" and uids:
    uids = [uid for uid in uids if not give(what, uid)]
    time.sleep(0.05)
