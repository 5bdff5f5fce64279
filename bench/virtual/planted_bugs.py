"""Errors of protocols, re-created in small programs, that a hunt is to find (bench.virtual.hunt).

- `split`: whoever hears of no leader for a while is one, without a vote. No public bug of its own.
- `lease`: who waits after it has got a lease works on without looking at the clock again (M.
  Kleppmann, "How to do distributed locking", 2016; HBASE-2312).
"""

from __future__ import annotations

from typing import NamedTuple


class PlantedBug(NamedTuple):
    """The text of an experiment, and of the program NAME.py that it runs."""

    experiment: str
    program: str


_SPLIT = PlantedBug(
    """\
service node exec="/usr/bin/python3 split.py" replicas=3 files=split.py
bridge s
link node--s latency=2ms
at 10s quit
expect no log node "two leaders"
hunt {
    partition any
    crash node
    pause node
    latency 0s..200ms
    at most 3
    quiet 1s at the end
}
""",
    '''\
"""Leader by time-out: whoever hears of no leader for a while is one, without a vote."""

import os
import socket
import time

me, nodes = int(os.environ["TSTORM_INDEX"]), 3
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.bind(("", 7000))
line.settimeout(0.2)
leads, heard = me == 0, time.monotonic()


def say(word):
    print(f"state={word}", flush=True)


say("leader" if leads else "follower")
while True:
    for other in range(nodes) if leads else ():
        if other != me:
            line.sendto(b"lead", (f"node.{other}", 7000))
    try:
        line.recv(100)
        heard = time.monotonic()
        if leads:
            print("two leaders", flush=True)
            leads = False
            say("follower")
    except OSError:
        pass
    if not leads and time.monotonic() - heard > 1 + me / 2:
        leads = True
        say("leader")
''',
)

_LEASE = PlantedBug(
    """\
service server exec="/usr/bin/python3 lease.py serve" files=lease.py
service worker exec="/usr/bin/python3 lease.py work" replicas=2 files=lease.py
bridge s
link server--s latency=2ms
link worker--s latency=2ms
at 10s quit
expect no log server "lease is over"
hunt {
    pause worker
    crash worker
    disconnect worker
    latency 0s..200ms
    at most 3
    lasting 100ms..3s
    quiet 1s at the end
}
""",
    '''\
"""Workers get a lease of 1 s, prepare, and write without looking at the clock again."""

import os
import socket
import sys
import time

LEASE = 1.0


def serve():
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(("", 7000))
    holder, until, newest = None, 0.0, 0
    while True:
        data, who = line.recvfrom(100)
        words = data.decode().split()
        if words[0] == "get" and (holder == words[1] or time.monotonic() > until):
            holder, until, newest = words[1], time.monotonic() + LEASE, newest + 1
            line.sendto(f"yours {newest}".encode(), who)
        elif words[0] == "write" and int(words[1]) < newest:
            print("written by one whose lease is over", flush=True)


def work():
    me = os.environ["TSTORM_INSTANCE"]
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.settimeout(0.3)
    while True:
        line.sendto(f"get {me}".encode(), ("server.0", 7000))
        try:
            number = line.recv(100).decode().split()[1]
        except OSError:
            continue
        print("state=holder", flush=True)
        time.sleep(0.2)  # it prepares what it writes
        line.sendto(f"write {number}".encode(), ("server.0", 7000))
        print("state=idle", flush=True)
        time.sleep(1.5)


serve() if sys.argv[1] == "serve" else work()
''',
)

BUGS = {"split": _SPLIT, "lease": _LEASE}
