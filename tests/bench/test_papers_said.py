"""What programs say at their end, as numbers."""

from __future__ import annotations

import json

import pytest

from bench.errors import BenchError
from bench.papers import said

PGBENCH = """pgbench (15.8 (Debian 15.8-0+deb12u1))
transaction type: update.sql
number of clients: 4
number of threads: 1
number of failed transactions: 0 (0.000%)
latency average = 290.123 ms
initial connection time = 3.1 ms
tps = 13.787 (without initial connection time)
pgbench (15.8 (Debian 15.8-0+deb12u1))
number of clients: 8
number of failed transactions: 1 (0.1%)
latency average = 10.5 ms
tps = 760.2 (without initial connection time)
"""


def test_pgbench() -> None:
    first, second = said.pgbench(PGBENCH)
    assert first == {"clients": 4, "tps": 13.787, "latency_ms": 290.123, "failed": 0}
    assert second["failed"] == 1
    lines = "".join(f"progress: {n}.0 s, 9.0 tps, lat {ms} ms\n" for n, ms in ((1, 318), (2, 290)))
    [third] = said.pgbench(PGBENCH[: PGBENCH.rindex("pgbench (")] + lines)
    assert third["latency_ms"] == 304
    assert said.pgbench("pgbench (15.8)\nerror: no server\n") == []


def test_seconds_of_pgbench_without_an_answer_are_left_out() -> None:
    text = (
        "progress: 1700000001.5 s, 13.0 tps, lat 289.8 ms stddev 0.1, 0 failed\n"
        "progress: 1700000002.5 s, 0.0 tps, lat 0.0 ms stddev 0.0, 0 failed\n"
    )
    assert said.pgbench_progress(text) == [(1700000001.5, 289.8)]


def test_iperf3() -> None:
    end = {"sum_received": {"bits_per_second": 954e6}}
    intervals = [{"sum": {"start": 0, "end": 0.5, "bits_per_second": 9.0}}]
    text = "a warning\n" + json.dumps({"end": end, "intervals": intervals})
    assert said.iperf3_bps(text) == 954e6
    assert said.iperf3_intervals(text) == [(0, 0.5, 9.0)]
    with pytest.raises(BenchError, match="said no result: unable to connect"):
        said.iperf3_bps("unable to connect")
    with pytest.raises(BenchError, match="no intervals"):
        said.iperf3_intervals("{}")


def test_wrk_counts_in_powers_of_1024() -> None:
    assert said.wrk_bps("  1 requests\nTransfer/sec:    115.00MB\n") == 115 * (1 << 20) * 8
    with pytest.raises(BenchError, match="wrk said no rate"):
        said.wrk_bps("unable to connect")


def test_clients_of_curl_count_while_all_of_them_get_answers() -> None:
    texts = ["1.0 100\n2.0 100\n3.0 100\n", "1.5 100\n2.5 100\ncurl: (7)\n"]
    assert said.curl_span(texts) == (1.5, 2.5)
    # Within [1.5, 2.5): 2.0 of the first, 1.5 of the second.
    assert said.curl_bps(texts, 1.5, 2.5) == 1600
    with pytest.raises(BenchError, match="less than two"):
        said.curl_span(["1.0 100\n"])


def test_what_a_receivers_tcp_counted_is_a_rate_after_the_first_seconds() -> None:
    """1,000 B/s after 2 s of the flow, more before; the control connection does not count."""
    text = ""
    for tenth in range(100):
        got = 20_000 + 500 * tenth if tenth < 20 else 30_000 + 100 * (tenth - 20)
        text += f"{1_700_000_000 + tenth / 10:.9f}\n\t cubic bytes_received:{got}\n"
        text += "\t cubic bytes_received:188\n"
    text = "1699999999.900000000\n" + text
    assert said.received_bps(text, 2, 8) == pytest.approx(8000)
    with pytest.raises(BenchError, match="too short a time"):
        said.received_bps(text, 2, 30)
