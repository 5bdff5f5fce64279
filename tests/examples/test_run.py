"""Examples with real programs in real namespaces. Bounds are wide: they tell right from wrong."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise, takewhile

import pytest

from tests.intime import Attempt, exactly, in_time

from .conftest import Finished, Runner

pytestmark = pytest.mark.e2e
NS = 1_000_000_000
_STATES = "(VALID|DEGRADED|INVALID)"
_NO_ETCD = shutil.which("etcd") is None or shutil.which("etcdctl") is None
_NO_IPERF3 = shutil.which("iperf3") is None


def test_quickstart_measures_what_was_planned(run_example: Runner) -> None:
    def trial(attempt: Attempt) -> None:
        run = run_example("quickstart", "--until", "13s", out=attempt.name("run"), quiet=False)
        attempt.saw(run.directory)
        _check_the_quickstart(run)
        _check_the_verdict(run)

    in_time(trial)


def _check_the_quickstart(run: Finished) -> None:
    start = run.start_ns()
    probes = [
        ((record["t_ns"] - start) / NS, record)
        for record in run.records("client.0")
        if "seq" in record
    ]
    answered = [(at, record["rtt_us"] / 1000) for at, record in probes if "rtt_us" in record]
    near = [rtt for at, rtt in answered if 0.5 < at < 4.8]
    far = [rtt for at, rtt in answered if 5.2 < at < 9.5]
    assert near and 31 <= min(near) < 45  # 32 ms with jitter of 0.2 ms on the access link
    assert far and 91 <= min(far) < 105
    assert not [at for at, _ in answered if 10.1 < at < 10.9], "the access link is down"
    assert [at for at, _ in answered if 11.1 < at < 11.9], "the access link is up again"


def _check_the_verdict(run: Finished) -> None:
    """With its reasons it takes five lines at most, at the end of all."""
    lines = run.said.splitlines()
    [first] = [at for at, line in enumerate(lines) if re.match(rf"(warning: )?{_STATES}: ", line)]
    more = list(takewhile(lambda line: line.startswith("  "), lines[first + 1 :]))
    verdict = json.loads((run.directory / "certificate.json").read_text())["verdict"]
    assert verdict["state"] == lines[first].removeprefix("warning: ").partition(":")[0].lower()
    assert len(more) == min(len(verdict["reasons"]) or 2, 5) - 1
    reasons = [one["text"] for one in verdict["reasons"][:4]]
    assert all(text in "\n".join([lines[first], *more]) for text in reasons)


def test_the_same_seed_runs_the_same_events(run_example: Runner) -> None:
    first = run_example("churn", "--pace", "20", out="first")
    second = run_example("churn", "--pace", "20", out="second")
    other = run_example("churn", "--pace", "20", "--seed", "1", out="other")
    assert first.planned() == second.planned()
    assert first.planned() != other.planned()


def test_a_crashed_peer_is_silent_until_it_is_back(run_example: Runner) -> None:
    def trial(attempt: Attempt) -> None:
        run = run_example("churn", "--start-at", "51s", *attempt.flags, out=attempt.name("run"))
        attempt.saw(run.directory)
        _check_the_silence(run)

    exactly(trial)


def _check_the_silence(run: Finished) -> None:
    start = run.start_ns()
    times = {
        (event["kind"], event["planned_ns"]): event["applied_ns"] / NS
        for event in run.events()
        if event["target"] == "peer.1"
    }
    down, up = times["crash", 54 * NS], times["join", 56 * NS]
    answers = [
        (record["t_ns"] - start) / NS for record in run.records("watch1.0") if "rtt_us" in record
    ]
    assert not [at for at in answers if down + 0.1 < at < up - 0.1]
    assert [at for at in answers if at > up], "it answers again"
    assert [at for at in answers if at < down], "it answered before"


@pytest.mark.skipif(_NO_IPERF3, reason="iperf3 is not installed")
def test_dynamics_gives_iperf3_the_planned_rates(run_example: Runner) -> None:
    def trial(attempt: Attempt) -> None:
        run = run_example("dynamics", "--until", "25s", *attempt.flags, out=attempt.name("run"))
        attempt.saw(run.directory)
        _check_the_dynamics(run)

    exactly(trial)


def _check_the_dynamics(run: Finished) -> None:
    lines = re.findall(
        r"^\[ *\d+\] +([\d.]+)-([\d.]+) +sec +[\d.]+ \w+ +([\d.]+) (\w?)bits/sec",
        run.log("sv1.0"),
        re.MULTILINE,
    )
    unit = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3}
    # The client starts at 1 s; its program and its connection take some of the time after that.
    rates = [(float(a) + 1, float(b) + 1.3, float(n) * unit[u]) for a, b, n, u in lines]
    assert rates, run.log("sv1.0")[-2000:]
    # Plan times of the second half of each step, and the most it can carry in Mb/s.
    steps = ((2.5, 5, 100), (7, 10, 10), (12.5, 15, 1000), (22.5, 25, 100))
    for low, high, most in steps:
        found = [rate for a, b, rate in rates if a >= low and b <= high]
        mean = sum(found) / len(found)
        assert most * 0.4 < mean <= most * 1.1, f"{low}-{high} s: {mean:.1f} Mb/s"


def _goodput_mbps(run: Finished, client: str, low: float, high: float) -> float:
    """Mean over the lines of `tprobe stream` between two times of the run, in s."""
    start = run.start_ns()
    lines = [
        record
        for record in run.records(client)
        if "cwnd" in record
        and (record["t_ns"] - start) / NS <= high
        and (record["t_ns"] - start) / NS - record["seconds"] >= low
    ]
    seconds = sum(record["seconds"] for record in lines)
    assert seconds >= (high - low) / 3, f"{client} reported only {seconds} s"
    return float(sum(record["bytes"] for record in lines)) * 8 / seconds / 1e6


def test_six_clients_share_the_links(run_example: Runner) -> None:
    """Nobody gets more than there is, and nobody starves. How full the links are depends on the
    machine's load too and is measured by `python -m bench.hosts --only sharing`."""

    def trial(attempt: Attempt) -> None:
        run = run_example("sixclients", "--pace", "4", *attempt.flags, out=attempt.name("run"))
        attempt.saw(run.directory)
        _check_the_shares(run)

    exactly(trial)


def _check_the_shares(run: Finished) -> None:
    payload = 1448 / 1500
    # From 20 s to 40 s of plan time: c1, c2, c3 share b1--b2 with its 50 Mb/s.
    three = [_goodput_mbps(run, f"c{n}.0", 6.5, 10.0) for n in (1, 2, 3)]
    assert 0.4 < sum(three) / (50 * payload) <= 1.05, three
    # From 60 s to 80 s: all six share b2--b3 with its 100 Mb/s.
    six = [_goodput_mbps(run, f"c{n}.0", 16.2, 20.0) for n in range(1, 7)]
    assert 0.4 < sum(six) / (100 * payload) <= 1.05, six
    for slow in (six[2], six[5]):
        assert 2 < slow <= 10.5, six


@dataclass(frozen=True)
class Write:
    """One write of a writer, with times in s since the start of the run."""

    began: float
    ended_by: float  # it ended before this; inf for the last one
    term: int  # the raft term of the answer, 0 for a failure
    revision: int  # of the store of the member that answered


def _leaders(run: Finished) -> dict[int, str]:
    """Which member became leader at which term, from etcd's own words."""
    return {
        int(term): member
        for member in ("etcd-a", "etcd-b", "etcd-c")
        for term in re.findall(r"became leader at term (\d+)", run.log(f"{member}.0"))
    }


def _writes(run: Finished, writer: str) -> list[Write]:
    start = run.start_ns() / NS + time.clock_gettime(time.CLOCK_REALTIME) - time.monotonic()
    parts = re.split(r"^(\d{9,}\.\d{9})$", run.log(writer), flags=re.MULTILINE)[1:]
    times = [*(float(at) - start for at in parts[::2]), math.inf]
    found: list[Write] = []
    for (began, ended_by), said in zip(pairwise(times), parts[1::2], strict=True):
        term = re.search(r'"raft_term":"?(\d+)', said)
        revision = re.search(r'"revision":"?(\d+)', said)
        numbers = (int(term[1]), int(revision[1])) if term and revision else (0, 0)
        found.append(Write(began, ended_by, *numbers))
    return found


def _applied(run: Finished, kind: str) -> float:
    """When the first event of this kind was done, in s since the start."""
    return min(event["applied_ns"] for event in run.events() if event["kind"] == kind) / NS


@pytest.mark.skipif(_NO_ETCD, reason="etcd-server and etcd-client are not installed")
def test_the_partition_moves_the_leader(run_example: Runner) -> None:
    def trial(attempt: Attempt) -> None:
        run = run_example("partition", out=attempt.name("a"))
        attempt.saw(run.directory)
        _check_the_partition(run)

    in_time(trial)


def _check_the_partition(run: Finished) -> None:
    """What raft promises, whatever the machine's load makes of a single write.

    A write that has begun before the cut may end in either term; one that fails proves nothing by
    itself. Times of two clocks are compared, hence the tenth of a second around the cut.
    """
    cut, heal = _applied(run, "link_down") + 0.1, _applied(run, "link_up")
    leaders = _leaders(run)
    inside, outside = _writes(run, "writer-a.0"), _writes(run, "writer-b.0")
    old = max(write.term for write in inside + outside if write.ended_by < cut - 0.2)
    assert leaders.get(old) == "etcd-a", f"the leader at the cut, term {old} of {leaders}"
    (new,) = [term for term in leaders if term > old]
    assert leaders[new] in ("etcd-b", "etcd-c")

    after = [write for write in outside if write.began > cut]
    assert {write.term for write in after if write.term} == {new}, "no majority behind the old one"
    elected = next(number for number, write in enumerate(after) if write.term)
    assert elected > 0, "no leader for a while: the first writes after the cut fail"
    assert after[elected].ended_by < heal, "they go on while the cut lasts"

    lonely = [write for write in inside if write.began > cut]
    assert not [write for write in lonely if write.term and write.ended_by < heal]
    healed = [write for write in lonely if write.term]
    assert {write.term for write in healed} == {new}, "the new leader's, once healed"
    missed = max(write.revision for write in outside if write.ended_by < heal)
    assert healed[0].revision > missed, "etcd-a has what was written without it"


def test_the_matrix_is_met_by_packets(run_example: Runner) -> None:
    """Directly, around while the cable is cut, directly again: the expectations of the example."""

    def trial(attempt: Attempt) -> None:
        run = run_example("matrix", out=attempt.name("run"))
        attempt.saw(run.directory)
        summary = json.loads((run.directory / "summary.json").read_text())
        assert [one["state"] for one in summary["expectations"]] == ["passed"] * 3

    in_time(trial)


@pytest.mark.virtual
def test_a_call_waits_for_an_upload_until_its_queue_is_managed(run_example: Runner) -> None:
    """As the comment says; in milliseconds."""
    run = run_example("queues/bufferbloat", "--time", "virtual")
    trips = [record for record in run.records("call.0") if "rtt_us" in record and "seq" in record]
    begin_ns = trips[0]["t_ns"]

    def within(begin_s: float, end_s: float) -> list[float]:
        span = range(int(begin_ns + begin_s * NS), int(begin_ns + end_s * NS))
        return sorted(one["rtt_us"] / 1000 for one in trips if one["t_ns"] in span)

    assert within(8, 9.5)[0] > 400
    assert 20 <= within(11, 20)[0] <= within(11, 20)[-1] < 23
    assert 25 < statistics.median(within(23, 28)) < 45
