"""`compare --first` of runs in virtual time: the moment at which what was drawn is seen first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = pytest.mark.virtual

TEXT = """\
service server
service client replicas=2 exec="tprobe rtt server.0 --count 3 --each"
bridge s
link server--s latency=2ms
link client--s latency=5ms
at 1s client crash 1
at 2s quit
"""


def test_runs_of_two_seeds_part_where_their_draws_are_seen(tmp_path: Path) -> None:
    (tmp_path / "e.tdl").write_text(TEXT)
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        words = ("--time", "virtual", "--packets", "--quiet", "--seed", seed, "--out", name)
        tstorm(tmp_path, "run", "e.tdl", *words)
    same = tstorm(tmp_path, "compare", "a", "b", "--first", "--check").stdout
    assert same.startswith("What was compared is the same")
    parted = tstorm(tmp_path, "compare", "a", "c", "--first", "--check", code=1).stdout
    first, mine, theirs, *_ = parted.splitlines()
    assert first.startswith("first among what was compared: packet client.")
    assert float(first.split()[-2]) < 1, "identifiers of packets are drawn, too"
    assert mine.startswith("  a: 0.") and theirs.startswith("  c: 0.")
