"""The experiment of the soak: a minute that repeats, so that each can be held against another.

Two TCP flows stay and share a trunk of 10 Mb/s. In the first 30 s of every minute others come, go
and crash, links change their rate and latency, the trunk moves to a detour and back. In the rest
nothing happens: from 42 s to 58 s the two must have the model's shares, and the machine as many
processes, descriptors and devices as in the minute before. Low rates: it is about time, not load.
"""

from __future__ import annotations

MINUTE_S = 60
QUIET_S = (42, 58)  # of a minute: shares are measured
COUNTED_S = 50  # of a minute: devices, qdiscs and filters are counted
STAYING = (("c1", "s1"), ("c2", "s2"))
HOSTS = 4

_NETWORK = """seed 20
bridges b1 b2 b3
link b1--b2 latency=5ms up=10Mb symmetric
link b1--b3 latency=8ms up=8Mb symmetric
link b3--b2 latency=8ms up=8Mb symmetric
"""
_AT_S = (
    (2, "c3 join"),
    (4, "c4 join"),
    (6, "c1--b1 set latency=6ms"),
    (8, "c5 join"),
    (9, "set b1--b2 up=6Mb down=6Mb"),
    (11, "s3 crash"),
    (12, "s3 join"),
    (14, "c3 leave"),
    (15, "b1--b2 leave"),
    (18, "c2--b1 set latency=4ms"),
    (20, "b1--b2 join"),
    (21, "c4 crash"),
    (22, "s4 disconnect"),
    (24, "s4 reconnect"),
    (25, "set b1--b2 up=10Mb down=10Mb"),
    (27, "c1--b1 set latency=2ms"),
    (28, "c2--b1 set latency=2ms"),
    (29, "c5 leave"),
)


def text(minutes: int) -> str:
    """The experiment, `minutes` long."""
    length = minutes * MINUTE_S
    lines = [_NETWORK.rstrip()]
    programs = {
        "c1": f"tprobe stream s1.0 --cc cubic --seconds {length} --stall 10s",
        "c2": f"tprobe stream s2.0 --cc cubic --seconds {length} --stall 10s",
        "c3": "tprobe stream s1.0 --cc cubic --seconds 300",
        "c4": "tprobe stream s2.0 --udp 4Mb --seconds 300",
        "c5": "tprobe rtt s5.0 --mode udp --count 3000 --interval 50ms",
    }
    for client, program in programs.items():
        lines.append(f'service {client} img=x exec="{program}"')
        lines.append(f"link {client}--b1 latency=2ms up=20Mb symmetric")
    delays = {"s1": 3, "s2": 13, "s3": 1, "s4": 1, "s5": 1}
    for server, delay in delays.items():
        lines.append(f'service {server} img=x exec="tprobe serve"')
        lines.append(f"link {server}--b2 latency={delay}ms up=20Mb symmetric")
    lines += [f"at 0s {server} join" for server in delays]
    lines += ["at 1s c1 join", "at 1s c2 join"]
    for minute in range(minutes):
        lines += [f"at {minute * MINUTE_S + second}s {what}" for second, what in _AT_S]
    return "\n".join([*lines, f"at {length}s quit", ""])
