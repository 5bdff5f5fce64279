"""One question, one number: what flowed between a pair that is silent most of the time, of which
virtual time takes no samples, as expectations, pytest, certificate and tables tell it."""

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tstorm.testing import Run

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """
service server exec="tprobe serve"
service client exec="sh -c 'sleep 3; tprobe rtt server.0 --count 50 --interval 20ms --each'"
bridge s1
link server--s1 latency=2ms rate=10Mb
link client--s1 latency=3ms
at 20s quit
expect throughput client server < 1Gb
expect throughput client server < 1Gb from 2s to 7s
"""


def test_a_rate_is_the_same_wherever_it_is_told(tmp_path: Path, kernel: list[str]) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    run = Run(tmp_path / "run")
    expected = [one.figure for one in run.expectations]
    series = run.series(("client.0", "server.0"), "throughput")
    told = [series.mean(), series.between("2s", "7s").mean()]
    assert all(0 < one < 1_000_000 for one in told)
    assert told == pytest.approx(expected, abs=2)  # each value is rounded down
    certificate = json.loads((tmp_path / "run/certificate.json").read_bytes())
    (row,) = [one for one in certificate["pairs"] if one["from"] == "client.0"]
    assert row["epoch"]["to_ns"] == 20 * 10**9
    assert row["measured"]["rate_bps"] == pytest.approx(expected[0], abs=2)
