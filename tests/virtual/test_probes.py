"""Probes in virtual time: planned delays, but for looks at the clock, and the same bytes again."""

import json
import re
import statistics
from pathlib import Path

import pytest

from runtime.probing.probe_record import read
from runtime.rundir.held_directory import HeldDirectory
from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """
service a img=x replicas=3 exec="sleep 100000"
service b img=x exec="sleep 100000"
bridge s1
link a--s1 latency=5ms up=10Mb symmetric
link b--s1 latency=15ms up=1Mb symmetric
at 0s a join
at 0s b join
at 20s b--s1 set latency=45ms
at 40s b disconnect
at 60s b reconnect
at 70s a.0 crash
at 75s a.0 join
at 80s a.1 pause for 10s
at 90s a.1 leave
at 95s a.1 join
from 100s to 160s a churn 20%
at 200s quit
"""
BITS = 8 * 28
RATES = {"a": 10_000_000, "b": 1_000_000}


@pytest.mark.parametrize("hosts", ["0", "2"])
def test_exactly_as_planned_and_the_same_again(tmp_path: Path, hosts: str) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    end = "200s" if hosts == "0" else "25s"  # agents take this machine's time
    options = ("--time", "virtual", "--hosts", hosts, "--until", end, "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "first")
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr
    runs = [(tmp_path / name / "probes.jsonl").read_bytes() for name in ("first", "second")]
    assert runs[0] == runs[1]
    found = read(HeldDirectory.hold(tmp_path / "first"))
    assert found is not None
    pairs, probes = found.header.pairs, list(found.probes)
    assert len(pairs) == 12
    extra = []
    for one in probes:
        ends = [name[0] for name in pairs[one.pair]]
        at_s = one.sent_at_ns / 1e9
        delays_ns = {"a": 5_000_000, "b": 45_000_000 if at_s > 20 else 15_000_000}
        if 40 < at_s < 60 and "b" in ends:
            assert one.delay_ns is None, one
            continue
        sent_ns = [BITS * 10**9 // RATES[end] for end in ends]
        # Over hosts a path has one queue, with the least of the rates.
        least_ns = sum(delays_ns[end] for end in ends)
        least_ns += sum(sent_ns) if hosts == "0" else max(sent_ns)
        assert one.delay_ns is not None, one
        extra.append(one.delay_ns - least_ns)
    # A look at the clock takes 256 ns, and what is sent is stamped within one. Probes of one round
    # may meet at a link.
    assert min(extra) > -256
    assert sorted(extra)[len(extra) * 3 // 4] < 2_000
    assert max(extra) < 1_000_000


def test_without_probes_nothing_moves(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    options = ("--time", "virtual", "--no-probes", "--until", "30s", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "first")
    tstorm(tmp_path, "replay", "first", "--quiet", "--out", "second")
    for name in ("first", "second"):
        assert not (tmp_path / name / "probes.jsonl").exists()
        assert json.loads((tmp_path / name / "summary.json").read_text())["pairs"] == []


def test_programs_get_the_losses_and_the_jitter_that_they_get_without(tmp_path: Path) -> None:
    """Packets are closer to each other than the jitter: had each its own draw and kept the order,
    round trips would take some 10 ms more."""
    text = """
    service tx img=x exec="ping -c 500 -i 0.002 rx.0"
    service rx img=x exec="sleep 100000"
    link tx--rx latency=50ms jitter=10ms loss=10%
    at 6s quit
    """
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    answers = []
    for probes in ("--probes", "--no-probes"):
        options = ("--time", "virtual", probes, "--quiet", "--out", probes[2:])
        tstorm(tmp_path, "run", "exp.tdl", *options)
        log = (tmp_path / probes[2:] / "logs" / "tx.0.log").read_text(encoding="utf-8")
        answers.append(re.findall(r"icmp_seq=(\d+) .* time=([0-9.]+) ms", log))
    assert [number for number, _ in answers[0]] == [number for number, _ in answers[1]]
    assert 370 < len(answers[0]) < 440
    numbers = [int(number) for number, _ in answers[0]]
    assert numbers == sorted(numbers)
    times = [float(took) for _, took in answers[0]]
    assert statistics.fmean(times) == pytest.approx(100, abs=4)
    assert statistics.stdev(times) == pytest.approx(10 * 2**0.5, rel=0.15)
