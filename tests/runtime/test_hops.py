"""Bridges answer programs that trace paths, on real packets in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import hops
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = pytest.mark.e2e


def test_a_trace_shows_the_bridges(user: User) -> None:
    """With both kinds of ports: an ordinary user has no TAP where /dev/net/tun is refused."""
    hops.lay_out(user.home, hops.NETWORK.replace("at 8s", "at 2s"))
    process = user.tstorm("run", "exp.tdl", "--no-probes", "--quiet", "--out", "run")
    said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    found = hops.traced(user.home / "run")
    names = [[hop and hop[:3] for hop in family] for family in found]
    assert names == [
        [["s1", 11, 0], ["s2", 11, 0], ["s3", 11, 0], ["far.0", 3, 3]],
        [["s1", 3, 0], ["s2", 3, 0], ["s3", 3, 0], ["far.0", 1, 4]],
    ]
    for family in found:
        for hop, least_ms in zip(family, (2, 6, 12, 20), strict=True):
            assert hop is not None
            assert hop[3] >= least_ms


def test_between_hosts_nobody_sees_them(tmp_path: Path) -> None:
    hops.lay_out(tmp_path, hops.NETWORK.replace("at 8s", "at 2s"))
    tstorm(tmp_path, "run", "exp.tdl", "--hosts", "2", "--no-probes", "--quiet", "--out", "run")
    [four, _] = hops.traced(tmp_path / "run")
    assert [hop and hop[:3] for hop in four] == [["far.0", 3, 3]] * 4
    assert "s1" not in (tmp_path / "run/hosts").read_text()


def test_between_hosts_they_are_refused_with_the_line(tmp_path: Path) -> None:
    hops.lay_out(tmp_path, hops.NETWORK + "hops answer\n")
    done = tstorm(tmp_path, "run", "exp.tdl", "--hosts", "2", "--out", "run", code=1)
    assert "exp.tdl:9: hops answer is not possible with --hosts" in done.stderr
    assert not (tmp_path / "run").exists()
