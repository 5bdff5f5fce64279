"""What ping and iperf3 print, as figures; which pairs are measured at once."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from tests.measuring.stand_ins import PING, report
from tstorm.measuring import iperf_flows, measure_pairs, measure_state
from tstorm.measuring.measure_state import RoundTrips

MS, MB = 1_000_000, 1_000_000
BUSYBOX = """\
64 bytes from 10.0.0.2: seq=0 ttl=64 time=0.052 ms
2 packets transmitted, 1 packets received, 50% packet loss
round-trip min/avg/max = 0.052/0.052/0.052 ms
"""


@given(st.integers(2, 40))
def test_rounds_have_every_pair_once_and_no_host_twice(count: int) -> None:
    rounds = list(measure_pairs.rounds(count))
    assert len(rounds) == count - 1 + count % 2
    for pairs in rounds:
        hosts = [host for pair in pairs for host in pair]
        assert len(hosts) == len(set(hosts))
    every = [pair for pairs in rounds for pair in pairs]
    assert sorted(every) == list(combinations(range(count), 2))


def test_the_least_round_trip_is_exact() -> None:
    """Single ones are rounded to milliseconds by ping."""
    assert measure_state.read(PING) == RoundTrips(210_123_000, 212 * MS, 230 * MS, 4, 3)
    assert measure_state.read(BUSYBOX) == RoundTrips(52_000, 52_000, 52_000, 2, 1)


def test_no_answer_is_no_round_trip() -> None:
    lost = "PING 10.0.0.2\n\n4 packets transmitted, 0 received, 100% packet loss, time 3ms\n"
    assert measure_state.read(lost) is None
    assert measure_state.read("") is None


def rate(rates: list[int], flows: int = 1, **more: object) -> iperf_flows.AvailableRate:
    data = json.dumps({**report(rates, flows), **more}).encode()
    return iperf_flows.available(iperf_flows.read(data, flows, time_stamps=True, who="a to b"))


def test_payload_becomes_ip_packets() -> None:
    assert rate([8 * MB] * 15).bps == pytest.approx(8 * MB, rel=1e-5)
    found = iperf_flows.read(
        json.dumps(report([8 * MB] * 12, remote="2001:db8::1")).encode(),
        1, time_stamps=False, who="",
    )  # fmt: skip
    assert found.overhead == (1448 + 60, 1448)


def test_slow_start_does_not_count() -> None:
    rising = [MB, 2 * MB, 3 * MB, 4 * MB, 5 * MB, 6 * MB]
    found = rate([*rising, *[8 * MB] * 14])
    assert found.steady
    assert found.bps == pytest.approx(8 * MB, rel=0.03)


def test_a_burst_at_the_begin_does_not_count() -> None:
    found = rate([90 * MB, *[8 * MB] * 11])
    assert found.steady
    assert found.bps == pytest.approx(8 * MB, rel=1e-5)


def test_what_never_gets_steady_says_so() -> None:
    found = rate([2**n * 1000 for n in range(15)])
    assert not found.steady


@given(st.lists(st.integers(1, 10**9), min_size=11, max_size=60))
def test_a_steady_rate_is_of_windows_that_agree(rates: list[int]) -> None:
    rows = [(1.0, count) for count in rates]
    first = iperf_flows.steady_from(rows)
    for begin in range(len(rates) - 9):
        before, after = sum(rates[begin : begin + 5]), sum(rates[begin + 5 : begin + 10])
        agree = abs(after - before) < 0.05 * before
        assert not (agree and (first is None or begin < first))
        assert agree or begin != first


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"error": "unable to connect to server: Connection refused"}, "must be open"),
        ({"error": "the server is busy running a test"}, "busy with another test"),
        ({"start": {}}, "is missing"),
        ({**report([MB] * 12, flows=2)}, "reports 2 flows where 3"),
        ([], "must be an object"),
    ],
)
def test_a_report_that_is_none(document: object, said: str) -> None:
    with pytest.raises(RunError, match=said) as error:
        iperf_flows.read(json.dumps(document).encode(), 3, time_stamps=True, who="a to b")
    assert error.value.message.startswith("a to b")


def test_a_flow_that_did_not_run() -> None:
    found = report([MB] * 12, flows=2)
    for interval in found["intervals"]:  # type: ignore[attr-defined]
        interval["streams"][1]["bytes"] = 0
    with pytest.raises(RunError, match="a to b: 1 of 2 flows carried nothing"):
        iperf_flows.read(json.dumps(found).encode(), 2, time_stamps=True, who="a to b")


def test_a_test_that_was_cut_off() -> None:
    with pytest.raises(RunError, match="too few"):
        rate([MB] * 8)
