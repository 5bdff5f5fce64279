"""Experiments of any size, as TDL, and what their programs said: those of the paper on virtual time
(docs/fidelity.md), and one of ours with as many programs as one likes.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent / "programs"
GIGA = 1_000_000_000
RAMP_SECONDS = 0.2  # what TCP needs for its window on the chain, at most; not measured
# Payload of a packet of 1,500 bytes: rates are those of IP, and TCP's header has a time stamp.
PAYLOAD = 1448 / 1500
_IPERF_SERVER = "iperf3 -s -1 -4 -i 0.1 --json"


def chain(switches: int, rate_bps: int, seconds: float) -> str:
    """A TCP flow of as many bytes as `seconds` carry, over links of 10 µs and one rate."""
    size = int(rate_bps * seconds / 8)
    names = [f"s{number}" for number in range(1, switches + 1)]
    ends = ["client", *names, "server"]
    lines = [
        f'service server exec="{_IPERF_SERVER}"',
        f'service client exec="iperf3 -c server -4 -n {size} --json"',
        f"bridges {' '.join(names)}",
        *(
            f"link {one}--{next_one} latency=10us rate={rate_bps // 1_000_000}Mb"
            for one, next_one in itertools.pairwise(ends)
        ),
        "at 0s server join",
        "at 100ms client join",
        f"at {round(2000 * seconds) + 500}ms quit",  # time for a flow that is half as fast
    ]
    return "\n".join(lines) + "\n"


def goodput_bps(run: Path, server: str, ramp_seconds: float) -> float:
    """What iperf3's receiver counted each tenth of a second, but for the ramp and the last part."""
    said = (run / "logs" / f"{server}.log").read_text()
    intervals = [one["sum"] for one in json.loads(said[said.index("{") :])["intervals"]]
    counted = [one for one in intervals[:-1] if one["start"] >= ramp_seconds - 0.05]
    length = counted[-1]["end"] - counted[0]["start"]
    return float(8 * sum(one["bytes"] for one in counted) / length)


HOSTS = 100
PAIRS = ((1, 20), (21, 40), (41, 60), (61, 80), (81, 100))


def line_of_hosts(phase_seconds: int) -> str:
    """100 hosts at 99 switches in a line. The flow of the first pair lasts four phases, those of
    the others the second and the third of them."""
    lines = []
    for number, (client, server) in enumerate(PAIRS):
        length = phase_seconds * (2 if number else 4)
        lines.append(f'service h{server} exec="{_IPERF_SERVER}"')
        lines.append(f'service h{client} exec="iperf3 -c h{server} -4 -t {length} --json"')
    talking = {host for pair in PAIRS for host in pair}
    lines += [f"service h{host}" for host in range(1, HOSTS + 1) if host not in talking]
    lines.append(f"bridges {' '.join(f's{number}' for number in range(1, HOSTS))}")
    properties = "latency=1ms rate=100Mb"
    for host in range(1, HOSTS + 1):
        lines.append(f"link h{host}--s{min(host, HOSTS - 1)} {properties}")
    lines += [f"link s{one}--s{one + 1} {properties}" for one in range(1, HOSTS - 1)]
    lines += [f"at 0s h{server} join" for _, server in PAIRS]
    lines.append(f"at 100ms h{PAIRS[0][0]} join")
    lines += [f"at {phase_seconds}s h{client} join" for client, _ in PAIRS[1:]]
    lines.append(f"at {4 * phase_seconds + 1}s quit")
    return "\n".join(lines) + "\n"


ROUND_MS = 100
FANOUT = 2
BEGIN_MS = 500
END_MS = 3000
ACCESS_NS = 500_000
HOP_NS = 1_000_000


def gossip(members: int, side: int) -> str:
    """`members` programs ./rumour at the `side` times `side` bridges of a grid, in turn."""
    lines = [
        f'service member replicas={members} exec="./rumour {ROUND_MS} {FANOUT} {BEGIN_MS} {END_MS}"'
    ]
    places = [(row, column) for row in range(side) for column in range(side)]
    lines.append(f"bridges {' '.join(f's{row}-{column}' for row, column in places)}")
    for row, column in places:
        for other in ((row, column + 1), (row + 1, column)):
            if other in places:
                lines.append(f"link s{row}-{column}--s{other[0]}-{other[1]} latency={HOP_NS}ns")
    for member in range(members):
        row, column = divmod(member % side**2, side)
        lines.append(f"link member.{member}--s{row}-{column} latency={ACCESS_NS}ns")
    lines.append(f"at {END_MS + 200}ms quit")
    return "\n".join(lines) + "\n"


def gossip_delay_ns(one: int, other: int, side: int) -> int:
    """From one member to another: as many bridges as there are rows and columns between them."""
    (row, column), (to_row, to_column) = (divmod(m % side**2, side) for m in (one, other))
    return 2 * ACCESS_NS + HOP_NS * (abs(row - to_row) + abs(column - to_column))


def compile_rumour(folder: Path) -> None:
    """What the members run, beside their TDL file. Static: a thousand of them start."""
    source = PROGRAMS / "rumour.c"
    command = ["cc", "-O2", "-static", "-o", str(folder / "rumour"), str(source)]
    subprocess.run(command, check=True)


_QUANTILES = (("min", 0.0), ("p50", 0.5), ("p99", 0.99), ("max", 1.0))


def spread(run: Path, members: int, side: int) -> dict[str, Any]:
    """How the rumour spread: to how many members, in how many rounds; how late messages were."""
    late, knows = [], {}
    for member in range(members):
        log = (run / "logs" / f"member.{member}.log").read_text()
        for line in log.splitlines():
            match line.split():
                case ["heard", other, delay]:
                    late.append(int(delay) - gossip_delay_ns(member, int(other), side))
                case ["knows", at]:
                    knows[member] = int(at)
    late.sort()
    lasted_ns = max(knows.values()) - min(knows.values())
    return {
        "messages": len(late),
        "members": len(knows),
        "rounds": lasted_ns / 1e6 / ROUND_MS,
        **{f"late_{name}_ns": late[int(share * (len(late) - 1))] for name, share in _QUANTILES},
    }
