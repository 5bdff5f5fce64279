"""A node that follows one master follows another one, too, if that one asks.

Re-creation of an error of Elasticsearch, github.com/elastic/elasticsearch/issues/2488:
two of three nodes are enough for a master, so that there should be one. Where node.0 and node.2 do
not reach each other and node.1 reaches both, node.1 counts for both.
"""

import time

from datagrams import ME, loop, send, state

NODES = ("node.0", "node.1", "node.2")
OTHERS = [name for name in NODES if name != ME]
QUORUM, LOST = 2, 0.5  # s without a word after which a node is lost
seen = dict.fromkeys(NODES, time.monotonic())
published: list[tuple[float, str]] = []  # when which master published, in the last half second
master = NODES[0]


def tick() -> None:
    global master
    now = time.monotonic()
    near = [name for name in OTHERS if now - seen[name] < LOST]
    if master == ME:
        master = ME if len(near) + 1 >= QUORUM else ""
    elif not master or now - seen[master] >= LOST:
        # Who is the last by name of those that it sees makes itself the master. That the others
        # may have one already is not asked.
        master = ME if len(near) + 1 >= QUORUM and max([*near, ME]) == ME else ""
    state("master" if master == ME else "follower" if master else "alone")
    for name in OTHERS:
        send(name, "publish" if master == ME else "ping")


def handle(sender: str, word: str) -> None:
    global master
    now = time.monotonic()
    seen[sender] = now
    if word != "publish":
        return
    if master == ME:
        master = max(sender, ME)  # of two masters that meet one yields
        return
    master = sender
    published[:] = [one for one in published if now - one[0] < LOST] + [(now, sender)]
    counts = [sum(one[1] == name for one in published) for name in OTHERS]
    if min(counts) >= 3:
        print("two masters, and both have this node", flush=True)


loop(handle, tick, 0.06)
