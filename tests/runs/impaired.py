"""Numbered datagrams over a link that loses in bursts, copies, damages and reorders: what a real
program gets of them, against the counters of the run and against what was asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.runs.layout import executables

SENT = 4000
DEVIATIONS = 5
LINKS = {
    "bursts": "loss=10% burst=5",
    "others": "duplicate=10% corrupt=10% reorder=10% by=30ms",
}
_EXPERIMENT = """\
service sender exec="./send.py"
service receiver exec="./receive.py"
bridge s
link sender--s latency=2ms {link}
link receiver--s latency=3ms
at 0s receiver join
at 1s sender join
at 8s quit
"""
_SEND = f"""\
#!/usr/bin/python3
import socket, time
to = (socket.gethostbyname("receiver.0"), 7000)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range({SENT}):
    end.sendto(b"%d " % number + b"x" * 100, to)
    time.sleep(0.001)
"""
_RECEIVE = """\
#!/usr/bin/python3
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
end.bind(("", 7000))
while True:
    print(end.recv(200).split()[0].decode(), flush=True)
"""


def lay_out(place: Path, kind: str) -> None:
    """The experiment, as exp.tdl, and its programs."""
    (place / "exp.tdl").write_text(_EXPERIMENT.format(link=LINKS[kind]))
    executables(place, {"send.py": _SEND, "receive.py": _RECEIVE})


def check(run: Path, kind: str) -> None:
    """Of a run without probes that lasted to its end."""
    arrived = [int(line) for line in (run / "logs/receiver.0.log").read_text().split()]
    summary = json.loads((run / "summary.json").read_text())
    pair, engine = _pair(summary), summary["engine"]
    assert pair["offered_pkts"] == SENT
    _account(arrived, pair, engine)
    if kind == "bursts":
        _bursts(arrived)
    else:
        _others(arrived, engine)


def _pair(summary: dict[str, Any]) -> dict[str, int]:
    (found,) = [pair for pair in summary["pairs"] if pair["src"] == "sender.0"]
    return found


def _account(arrived: Sequence[int], pair: dict[str, int], engine: dict[str, int]) -> None:
    """Each packet is somewhere, and once."""
    kept = SENT - pair["drop_loss"] + engine["duplicated"]
    assert pair["drop_queue"] == pair["drop_down"] == engine["drop_nobuf"] == 0
    assert pair["delivered_pkts"] == kept
    assert len(arrived) == kept - engine["corrupted"]


def _bursts(arrived: Sequence[int]) -> None:
    there = set(arrived)
    gone = [number not in there for number in range(SENT)]
    runs = [len(list(group)) for lost, group in groupby(gone) if lost]
    correlated = 9  # what bursts make of the variance of a mean: (2 - p - r) / (p + r), rounded up
    _near(sum(gone), 0.1 * SENT, math.sqrt(SENT * 0.1 * 0.9 * correlated))
    _near(sum(runs) / len(runs), 5, 5 * math.sqrt(0.8 / len(runs)))


def _others(arrived: Sequence[int], engine: dict[str, int]) -> None:
    for name in ("duplicated", "corrupted", "reordered"):
        _near(engine[name], 0.1 * SENT, math.sqrt(SENT * 0.1 * 0.9))
    highest, overtaken = -1, set()
    for number in arrived:
        overtaken |= {number} if number < highest else set()
        highest = max(highest, number)
    # Those that were not damaged, too: a tenth. A copy of one that left the order kept it.
    _near(len(overtaken), 0.09 * SENT, math.sqrt(SENT * 0.09 * 0.91))


def _near(figure: float, wanted: float, deviation: float) -> None:
    assert abs(figure - wanted) <= DEVIATIONS * deviation, (figure, wanted, deviation)
