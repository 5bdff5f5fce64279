"""Links that lose in bursts, copy, damage and reorder, on real packets in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import impaired
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]


@pytest.mark.parametrize("kind", impaired.LINKS)
def test_programs_get_what_was_asked_for(user: User, kind: str) -> None:
    """With both kinds of ports: an ordinary user has no TAP where /dev/net/tun is refused."""
    impaired.lay_out(user.home, kind)
    process = user.tstorm("run", "exp.tdl", "--no-probes", "--quiet", "--out", "run")
    said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    impaired.check(user.home / "run", kind)


def test_between_hosts_they_are_refused_with_the_line(tmp_path: Path) -> None:
    impaired.lay_out(tmp_path, "others")
    done = tstorm(tmp_path, "run", "exp.tdl", "--hosts", "2", "--out", "run", code=1)
    assert (
        "exp.tdl:4: the duplicate of link sender.0->s is not possible with --hosts" in done.stderr
    )
    assert not (tmp_path / "run").exists()
