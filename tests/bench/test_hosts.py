"""What bench.hosts makes of a run: rates from counters, reactions, growth of a soak."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.engine import stalls
from bench.errors import BenchError
from bench.hosts import congestion, reaction, small, soak, soak_judge
from bench.hosts.reaction import REACTION_SHARE, Arrivals
from bench.hosts.soak_scene import MINUTE_S, text
from bench.hosts.udp import INTERVAL_NS
from bench.tables import Record
from compiler.pipeline import compile_source, write
from tests.runs.delivered import Delivered
from tests.runs.runlog import IncompleteRunError
from tests.runs.scenes import two_destinations_text
from tests.runs.stages import two_destinations

MS = 1_000_000


def run_of(folder: Path, counts: list[int]) -> Path:
    """A run in which a.0 has delivered so many bytes to b.0 by each 100 ms."""
    source = "service a img=x\nservice b img=x\nlink a--b latency=1ms\nat 5s quit\n"
    write(compile_source(source, filename="x.tdl", seed=None), folder / "plan")
    columns = ["src", "dst", "offered_bytes", "delivered_bytes"]
    lines: list[Record] = [{"columns": {"pairs": columns}}]
    for number, count in enumerate(counts):
        lines.append({"elapsed_ns": number * 100 * MS, "pairs": [[0, 1, 2 * count, count]]})
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_rates_are_read_from_counters(tmp_path: Path) -> None:
    """1 MB/s, but for half a second in which nothing came."""
    counts = [n * 100_000 for n in range(20)] + [2_000_000] * 5
    counts += [2_000_000 + n * 100_000 for n in range(25)]
    run = run_of(tmp_path, counts)
    pair = ("a.0", "b.0")
    delivered = Delivered(run)
    assert delivered.pairs() == [pair]
    assert delivered.median_bps(pair, 0.0, 4.5) == pytest.approx(8e6)
    assert delivered.mean_bps(pair, 0.0, 1.95) == pytest.approx(8e6)
    assert delivered.mean_bps(pair, 0.0, 4.85) < 7.4e6
    assert Delivered(run, "offered_bytes").mean_bps(pair, 0.0, 1.95) == pytest.approx(16e6)
    with pytest.raises(IncompleteRunError, match="counted for"):
        delivered.mean_bps(pair, 2.0, 9.0)
    with pytest.raises(IncompleteRunError, match="too short"):
        delivered.median_bps(pair, 1.0, 1.4)


def arrivals(path: Path, rates: list[tuple[int, int, float]]) -> Arrivals:
    """Of (from ms, to ms, share of the wanted rate)."""
    whole = REACTION_SHARE / 8 * INTERVAL_NS / 1e9
    lines = [
        {"t_ns": 10**18 + at * MS, "bytes": round(part * whole)}
        for begin, end, part in rates
        for at in range(begin, end, 2)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Arrivals(path)


def test_a_round_is_settled_when_both_flows_have_their_share(tmp_path: Path) -> None:
    """The second begins at 1 s with too much, both are right after 40 ms."""
    first = arrivals(tmp_path / "1", [(0, 1040, 2.0), (1040, 1400, 1.0)])
    second = arrivals(tmp_path / "2", [(1000, 1040, 1.6), (1040, 1400, 1.0), (2000, 2300, 1.6)])
    starts = reaction._rounds(second)
    assert starts == [10**18 + 1000 * MS, 10**18 + 2000 * MS]
    took = reaction._settled(starts[0], first, second)
    assert took is not None
    assert 34 * MS <= took <= 40 * MS
    assert reaction._settled(starts[1], first, second) is None


def row(**changes: object) -> Record:
    part = {"rss_kib": [30_000, 30_100], "descriptors": [11, 11], "threads": [1, 1]}
    whole = {
        "parts": {"agent0": part},
        "counts": {"devices": [42, 42]},
        "late_ms_median": [0.01, 0.02],
        "share_errors": [0.01, 0.02],
    }
    return {**whole, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": {"devices": [42, 43]}}, "42 devices, then 43"),
        ({"late_ms_median": [0.1, 1.2]}, "0.1 ms late, then 1.2 ms"),
        ({"share_errors": [0.01, 0.06]}, "more than 5 % in minutes [1]"),
        (
            {"parts": {"a": {"rss_kib": [1, 2000], "descriptors": [1, 1], "threads": [1, 1]}}},
            "a has grown by 1999 KiB",
        ),
        (
            {"parts": {"a": {"rss_kib": [1, 1], "descriptors": [9, 10], "threads": [1, 1]}}},
            "a had 9 descriptors, then 10",
        ),
    ],
)
def test_growth_and_drift_are_told(changes: dict[str, object], words: str) -> None:
    assert soak_judge.missed([row()]) == []
    [told] = soak_judge.missed([row(**changes)])
    assert words in told


def test_quarters_are_whole_minutes_after_the_warm_up() -> None:
    assert soak.quarters(20) == (range(240, 540), range(900, 1200))
    first, last = soak.quarters(soak.LEAST_MINUTES)
    assert first.stop <= last.start
    with pytest.raises(BenchError, match="--minutes"):
        soak.measure(Path(), 2)


def test_the_scenes_compile() -> None:
    plan = compile_source(text(2)).plan
    assert plan.end_ns == 2 * MINUTE_S * 1_000_000_000
    assert compile_source(reaction.text("python3", 3)).plan.end_ns > 5_000_000_000
    assert compile_source(small.text(small.TARGET_PPS)).plan.end_ns == 7_000_000_000
    [stage] = two_destinations(compile_source(two_destinations_text()).plan)
    assert [round(share, 2) for share in stage.shares.values()] == [83.33, 16.67]


def small_run(folder: Path, received: int | None) -> Path:
    """A run whose sender sent 600,000 packets in four seconds."""
    (folder / "logs").mkdir(parents=True)
    lost = None if received is None else 600_000 - received
    said = {"summary": True, "sent": 600_000, "received": received, "lost": lost, "pps": 150_000.4}
    log = json.dumps(said, separators=(",", ":"))
    (folder / "logs/client.0.log").write_text(f"ready\n{log}\n")
    engine = {"drop_input": 3, "drop_write": 1, "longest_slice_ns": 9, "rx": 5}
    stacks = {"server.0": {"UdpRcvbufErrors": 2}, "client.0": {"UdpRcvbufErrors": 7}}
    (folder / "summary.json").write_text(json.dumps({"engine": engine, "stacks": stacks}))
    return folder


def test_who_lost_small_packets_is_told(tmp_path: Path) -> None:
    assert small.read(small_run(tmp_path / "some", 599_994)) == {
        "sent_kpps": 150.0,
        "kpps": 150.0,
        "lost_share": 0.00001,
        "engine": 4,
        "stack": 2,
    }
    with pytest.raises(BenchError, match="none: the receiver gave no answer"):
        small.read(small_run(tmp_path / "none", None))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"lost_share": 0.0001}, ["0.010 % lost"]),
        ({"sent_kpps": 80.0}, ["only 80.0 kpps could be sent"]),
        ({"hosts": 0, "lost_share": 0.5}, []),
        ({"offered_pps": 200_000, "lost_share": 0.5}, []),
    ],
)
def test_a_target_is_missed_by_loss_and_by_too_little(changes: Record, words: list[str]) -> None:
    row = {"hosts": 2, "offered_pps": 150_000, "sent_kpps": 150.0, "lost_share": 0.0, **changes}
    found = small.missed([row])
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_a_round_trip_beside_full_links_is_that_of_a_run_without_hosts() -> None:
    rows = [
        {"what": "1 × cubic", "hosts": hosts, "asked_ms": asked_ms}
        for hosts, asked_ms in ((0, 50.0), (2, 54.9), (3, 44.9))
    ]
    [missed] = congestion.missed(rows)
    assert missed == "1 × cubic over 3 hosts: 44.9 ms beside it, hop-exact 50.0 ms"


def test_how_long_programs_did_not_receive_is_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs/gets.0.log"
    log.write_text("".join(f"{number}000000\n" for number in range(200)))
    found = stalls.received(tmp_path)
    assert [found[name] for name in ("received", "received_ms", "received_max_ms")] == [
        200,
        100,
        199,
    ]
    assert found["received_p99_ms"] == 198
    log.write_text("1\n")
    with pytest.raises(BenchError, match="1 datagrams were received"):
        stalls.received(tmp_path)
