"""Links that follow traces carry the packets of real programs as a second model says, to the
microsecond, and the same in each run."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.pktd.mahimahi import MS, departures
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

CLOCK_NS = 946_684_800 * 10**9  # what clocks say at the beginning of a run
NEAR_NS = 10_000  # packets of one moment are written one after the other
QUEUE = 60_000
SEND = """\
#!/usr/bin/python3
import random, socket, struct, sys, time
to = (socket.gethostbyname("rx.0"), 7000)
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
draws, log = random.Random(5), open("sent", "w")
for number in range(3000):
    size = draws.choice([0, 100, 700, 1440, 1440])
    end.sendto(struct.pack("<Q", number) + bytes(size), to)
    print(time.clock_gettime_ns(time.CLOCK_REALTIME), size + 36, file=log)
    time.sleep(draws.expovariate(1000 / float(sys.argv[1])))
log.close()
time.sleep(100)
"""
RECEIVE = """\
#!/usr/bin/python3
import socket, struct
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
end.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
log = open("got", "w", buffering=1)
while True:
    data, said, _, _ = end.recvmsg(2000, 200)
    seconds, ns = struct.unpack("qq", said[0][2])
    print(struct.unpack_from("<Q", data)[0], seconds * 10**9 + ns, file=log)
"""
NETWORK = """\
service rx exec="./receive.py"
service tx exec="./send.py 1.8"
bridge s
link rx--s latency=2ms
"""


def run(folder: Path, text: str, name: str, *options: str, every: str = "1.8") -> Path:
    """`every`: ms between two packets, on average."""
    (folder / "exp.tdl").write_text(NETWORK.replace("1.8", every) + text)
    executables(folder, {"send.py": SEND, "receive.py": RECEIVE})
    words = ("--time", "virtual", "--quiet", "--out", name, *options)
    tstorm(folder, "run", "exp.tdl", *words)
    return folder / name


def sent(done: Path) -> list[tuple[int, int]]:
    """(when, bytes of IP), since the run's beginning."""
    lines = (done / "instances/tx.0/sent").read_text().splitlines()
    rows = [tuple(map(int, line.split())) for line in lines]
    return [(at_ns - CLOCK_NS, size) for at_ns, size in rows]


def received(done: Path) -> dict[int, int]:
    lines = (done / "instances/rx.0/got").read_text().splitlines()
    rows = [tuple(map(int, line.split())) for line in lines]
    return {number: at_ns - CLOCK_NS for number, at_ns in rows}


# --- deliveries ---------------------------------------------------------------------------------

DELIVERIES = """\
link tx--s latency=5ms trace-up=cell.trace down=unlimited queue=60KB
at 6s tx->s set trace=none rate=3Mb
at 8s quit
"""


@pytest.fixture(scope="module")
def lines() -> list[int]:
    """3 s of some 5 Mb/s, half a second of them nothing."""
    draws = random.Random(2)
    found = sorted(draws.randrange(1, 3000) for _ in range(1250))
    return [*(ms for ms in found if not 1000 <= ms < 1500), 3000]


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory: pytest.TempPathFactory, lines: list[int]) -> list[Path]:
    """Two runs of the same, without probes."""
    folder = tmp_path_factory.mktemp("deliveries")
    (folder / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    return [run(folder, DELIVERIES, name, "--no-probes") for name in ("one", "two")]


def test_each_packet_comes_when_the_model_says(deliveries: list[Path], lines: list[int]) -> None:
    packets, got = sent(deliveries[0]), received(deliveries[0])
    wanted = departures(lines, packets, QUEUE)
    judged = [n for n, (at_ns, _) in enumerate(packets) if at_ns < 5 * 10**9]
    assert len(judged) > 2000
    lost = {n for n in judged if wanted[n] is None}
    assert len(lost) > 20  # of the half second without a delivery
    assert lost == {n for n in judged if n not in got}
    late = [got[n] - at - 7 * MS for n in judged if (at := wanted[n]) is not None]
    assert -NEAR_NS < min(late) <= max(late) < NEAR_NS


def test_the_rate_is_what_was_recorded(tmp_path: Path, lines: list[int]) -> None:
    """Of a sender that always has something to send."""
    (tmp_path / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    done = run(tmp_path, DELIVERIES.replace("8s quit", "6s quit"), "run", every="0.6")
    packets, got = sent(done), received(done)
    begin, end = 100 * MS, 1_900 * MS
    busy = [n for n, at_ns in got.items() if begin < at_ns - 7 * MS <= end]
    cost = sum(packets[n][1] + 4 for n in busy)
    recorded = 1504 * sum(begin < ms * MS <= end for ms in lines)
    assert abs(cost - recorded) < recorded / 100


def test_a_run_repeats_to_the_last_byte(deliveries: list[Path]) -> None:
    one, two = deliveries
    for name in ("instances/rx.0/got", "instances/tx.0/sent"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert (one / "samples.jsonl").read_bytes() == (two / "samples.jsonl").read_bytes()


# --- rows ---------------------------------------------------------------------------------------

ROWS = """\
link tx--s trace-up=wifi.csv down=unlimited queue=1GiB
at 10s quit
"""
TABLE = ((0, 4, 10), (1000, 0, 10), (1400, 8, 30), (2000, 2, 5))  # ms, Mb/s, ms
PERIOD = 2600


def _row(at: Fraction) -> tuple[int, int, Fraction]:
    """Rate in bits a ns times 1,000, delay in ns, and the end of the row that holds at a time."""
    rounds, rest = divmod(at, PERIOD * MS)
    starts = [ms for ms, _, _ in TABLE]
    last = max(i for i, ms in enumerate(starts) if ms * MS <= rest)
    end = [*starts[1:], PERIOD][last]
    return TABLE[last][1], TABLE[last][2] * MS, Fraction(rounds * PERIOD * MS + end * MS)


def rows_model(packets: list[tuple[int, int]], start_ns: int) -> list[int]:
    """A fluid queue from row to row; when each is at the other end."""
    found: list[int] = []
    free = Fraction(0)
    for at_ns, size in packets:
        at = max(Fraction(at_ns + start_ns), free)
        left = Fraction(8 * size * 1000)
        while True:
            rate, _, end = _row(at)
            if left <= rate * (end - at):
                free = at + left / rate
                break
            left, at = left - rate * (end - at), end
        leaves = int(free) if free == int(free) else int(free) + 1
        due = leaves + _row(Fraction(leaves))[1]
        found.append(max(due, found[-1] if found else 0))
    return [at - start_ns for at in found]


def test_rows_hold_packets_and_change_delays(tmp_path: Path) -> None:
    """From the middle of the trace on, which the run begins in."""
    lines = "".join(f"{ms / 1000},{rate}Mb,{delay}\n" for ms, rate, delay in TABLE)
    (tmp_path / "wifi.csv").write_text("time,rate,delay\n" + lines)
    done = run(tmp_path, ROWS, "run", "--start-at", "1700ms", "--no-probes")
    packets, got = sent(done), received(done)
    wanted = rows_model(packets, 1_700 * MS)
    judged = [n for n in got if n < 2000]
    assert len(judged) == 2000
    late = [got[n] - wanted[n] - 2 * MS for n in judged]
    assert -NEAR_NS < min(late) <= max(late) < NEAR_NS
    held = max(after - before for before, after in pairwise(sorted(got[n] for n in judged)))
    assert 390 * MS < held < 430 * MS  # the row without a rate


# --- the verdict --------------------------------------------------------------------------------


def test_a_run_with_traffic_is_valid(tmp_path: Path, lines: list[int]) -> None:
    (tmp_path / "cell.trace").write_text("".join(f"{ms}\n" for ms in lines))
    done = run(tmp_path, DELIVERIES.replace("8s quit", "12s quit"), "run")
    summary = json.loads((done / "summary.json").read_text())
    assert summary["verdict"]["state"] == "valid", summary["verdict"]
