"""What `paths` and `explain` say of links that treat some packets differently."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import status, tstorm
from tstorm.exit_codes import OK

TDL = """\
service a img=x
service b img=x
link a--b latency=5ms
at 1s a--b set latency=50ms loss=10% only=udp;tcp:80
at 4s a--b set only=none
at 9s quit
"""
CLASS = "a.0->b.0 has another class of packets: only tcp:80;udp delay=50ms loss=10%"


def test_another_class_is_told_beside_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "a.tdl"
    file.write_text(TDL)
    for at, told in (("0s", False), ("1s", True), ("4s", False)):
        result = tstorm("paths", str(file), "--at", at)
        assert (f"note: {CLASS}" in result.stderr) == told, at
        assert "50ms" not in result.stdout
        explained = tstorm("explain", str(file), "--from", "a", "--to", "b", "--at", at)
        assert (f"  {CLASS}" in explained.stdout) == told, at


def test_what_an_event_makes_of_a_class_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.tdl"
    file.write_text(
        "service a img=x\nservice b img=x\nlink a--b latency=5ms\n"
        "at 2s a->b set loss=100% only=icmp\nat 3s a->b set loss=50% only=icmp\n"
        "at 4s a->b set only=none\nat 5s a->b set mtu=900\nat 9s quit\n"
    )
    told = {
        "2": "further class=icmp loss=100%",
        "3": "further class=icmp loss=100% -> icmp loss=50%",
        "4": "further class=icmp loss=50% -> none",
        "5": "mtu=0B -> 900B",
    }
    for event, words in told.items():
        result = tstorm("explain", str(file), "--event", event)
        assert status(result) == OK, result.stderr
        assert "changed: a.0->b.0 " in result.stdout
        assert words in result.stdout, result.stdout


def test_a_partition_of_some_packets_is_told_where_partitions_are(tmp_path: Path) -> None:
    file = tmp_path / "a.tdl"
    file.write_text(
        "service a img=x replicas=2\nservice b img=x\nbridge s\nlink a--s\nlink b--s\n"
        "at 1s partition a.0;a.1 only=tcp:80\nat 2s heal\nat 9s quit\n"
    )
    checked = tstorm("check", str(file))
    assert "6: the partition also cuts off b.0 from a.1, for only=tcp:80" in checked.stdout
    told = tstorm("events", str(file)).stdout
    assert "further class=tcp:80 loss=100%" in told
    explained = tstorm("explain", str(file), "--from", "a.0", "--to", "a.1", "--at", "1s").stdout
    assert "only tcp:80 loss=100%" in explained
    assert "at 1s partition a.0;a.1 only=tcp:80" in explained
