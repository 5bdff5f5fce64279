"""A path over three bridges, and a program that traces it as traceroute(8) does: UDP to a port that
nobody has, with a TTL of 1, 2, …, and the errors that come back, by who sent them and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.runs.layout import executables

NETWORK = """\
service near exec="{program}"
service far exec="sleep 100"
bridges s1 s2 s3
link near--s1 latency=1ms
link s1--s2 latency=2ms
link s2--s3 latency=3ms
link far--s3 latency=4ms
at 8s quit
"""
TRACE = """\
#!/usr/bin/python3
import json, socket, struct, time
IP_TTL, IPV6_UNICAST_HOPS, IP_RECVERR, IPV6_RECVERR = 2, 16, 11, 25
def ask(family, ttl):
    v4 = family == socket.AF_INET
    level = socket.IPPROTO_IP if v4 else socket.IPPROTO_IPV6
    end = socket.socket(family, socket.SOCK_DGRAM)
    end.setsockopt(level, IP_RECVERR if v4 else IPV6_RECVERR, 1)
    end.setsockopt(level, IP_TTL if v4 else IPV6_UNICAST_HOPS, ttl)
    end.settimeout(0.5)
    target = socket.getaddrinfo("far.0", 33434, family, socket.SOCK_DGRAM)[0][4]
    sent = time.monotonic_ns()
    end.sendto(b"who is there", target)
    try:
        end.recv(1)
    except TimeoutError:
        return None
    except OSError:
        took = time.monotonic_ns() - sent
    _, [(_, _, said)], _, _ = end.recvmsg(100, 200, socket.MSG_ERRQUEUE)
    _, _, kind, code = struct.unpack("=IBBB", said[:7])  # sock_extended_err, then who sent it
    who = socket.inet_ntop(family, said[20:24] if v4 else said[24:40])
    return [socket.getnameinfo((who, 0), 0)[0], kind, code, took // 10**6]
for family in (socket.AF_INET, socket.AF_INET6):
    print(json.dumps([ask(family, ttl) for ttl in range(1, 5)]), flush=True)
time.sleep(100)
"""


def lay_out(folder: Path, text: str = NETWORK, program: str = TRACE) -> None:
    (folder / "exp.tdl").write_text(text.format(program="./program"))
    executables(folder, {"program": program})


def traced(run: Path) -> list[list[list[Any] | None]]:
    """Of IPv4 and of IPv6, for each TTL: who answered, the type and code, and ms; None: nobody."""
    lines = (run / "logs/near.0.log").read_text().splitlines()
    return [json.loads(line) for line in lines]
