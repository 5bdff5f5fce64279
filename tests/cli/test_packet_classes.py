"""What `paths` and `explain` say of links that treat some packets differently."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import tstorm

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
