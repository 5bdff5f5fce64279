"""Multicast and broadcast on real packets in real time, and where they are not carried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import groups
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]


def test_those_that_have_joined_hear_it(user: User) -> None:
    """With both kinds of ports: an ordinary user has no TAP where /dev/net/tun is refused."""
    groups.lay_out(user.home)
    process = user.tstorm("run", "exp.tdl", "--no-probes", "--quiet", "--out", "run")
    said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    for name, found in groups.heard(user.home / "run").items():
        wanted = groups.HEARD[name]
        assert sorted(what for what, _ in found) == sorted([*wanted] * groups.TIMES), name
        assert all(after_ms >= wanted[what] for what, after_ms in found), name


def test_between_hosts_they_are_dropped_and_counted(tmp_path: Path) -> None:
    groups.lay_out(tmp_path)
    # There is no route to groups of IPv4: to send there fails, and to join.
    six = groups.SEND.replace('    send("', '    send6("').replace(
        "time.sleep(1)", "send6 = lambda name, *more: name[-1] == '6' and send(name, *more)"
    )
    (tmp_path / "send.py").write_text(six)
    (tmp_path / "listen.py").write_text("#!/bin/sh\nexec sleep 100\n")
    tstorm(tmp_path, "run", "exp.tdl", "--hosts", "2", "--no-probes", "--quiet", "--out", "run")
    refused = json.loads((tmp_path / "run/summary.json").read_text())["refused"]
    counted = {one["instance"]: one["group"] for one in refused}
    assert counted["tx.0"] >= 3 * groups.TIMES
