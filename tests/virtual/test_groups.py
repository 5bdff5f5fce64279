"""Multicast and broadcast between programs: who hears what, when, and over which links."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import groups
from tests.tdl.test_docs import PAGE

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


def test_those_that_have_joined_hear_it_and_links_carry_it_once(tmp_path: Path) -> None:
    groups.lay_out(tmp_path)
    options = ("--time", "virtual", "--no-probes", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run")
    run = tmp_path / "run"
    for name, found in groups.heard(run).items():
        wanted = [one for one in groups.HEARD[name].items() for _ in range(groups.TIMES)]
        assert sorted(found) == sorted(wanted), name
    # far4, alone4 and far6 go to the other bridge, and once4, whose TTL ends there, does not.
    sent = {name: count * groups.TIMES for name, count in {"tx.0->s1": 9, "s1->s2": 3}.items()}
    near = len(groups.NEAR) * groups.TIMES
    assert groups.offered(run) == {
        **sent,
        "s1->rx.0": near,
        "s1->rx.1": near,
        "s2->rx.2": 2 * groups.TIMES,
        "s2->rx.3": 3 * groups.TIMES,
    }
    engine = json.loads((run / "summary.json").read_text())["engine"]
    assert engine["group_sent"] == 9 * groups.TIMES
    assert engine["group_delivered"] == (2 * len(groups.NEAR) + 5) * groups.TIMES
    assert engine["group_unwanted"] == 2 * groups.TIMES  # left4 and nobody4
    assert engine["expired"] == groups.TIMES
    [refused] = json.loads((run / "summary.json").read_text())["refused"]
    assert refused == {"instance": "tx.0", "group": 2 * groups.TIMES}
    tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")


def test_who_comes_back_has_joined_nothing_until_its_program_does(tmp_path: Path) -> None:
    groups.lay_out(tmp_path)
    (tmp_path / "exp.tdl").write_text(
        groups.NETWORK + "at 500ms rx.2 crash\nat 500ms rx.3 disconnect\nat 2s rx.2 join\n"
    )
    (tmp_path / "send.py").write_text(groups.SEND.replace("range(3)", "range(5)"))
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    found = groups.heard(tmp_path / "run")
    assert [what for what, _ in found["rx.2"]].count("far4") == 3  # of five, two were before 2 s
    assert found["rx.3"] == []


def test_who_has_joined_for_some_sources_gets_what_these_send(tmp_path: Path) -> None:
    groups.lay_out_sources(tmp_path)
    options = ("--time", "virtual", "--no-probes", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run")
    run = tmp_path / "run"
    for name, wanted in groups.HEARD_OF_SOURCES.items():
        assert sorted((run / f"logs/{name}.log").read_text().splitlines()) == wanted, name
    # No link carries what its receiver's kernel would leave out.
    heard = {name: len(wanted) for name, wanted in groups.HEARD_OF_SOURCES.items()}
    assert groups.offered(run) == {
        "tx.0->s": 3,
        "tx.1->s": 5,
        **{f"s->{name}": count for name, count in heard.items()},
    }
    engine = json.loads((run / "summary.json").read_text())["engine"]
    assert engine["group_delivered"] == sum(heard.values())
    # The first of tx.1 by IPv4, for which nobody is there yet, and all of tx.0 by IPv6.
    assert engine["group_unwanted"] == 1 + 3
    assert engine["group_filtered"] == 2 + 1 + 3  # and the last of tx.0 by IPv4, for rx.0


def test_real_daemons_find_out_by_multicast_that_they_want_one_name(tmp_path: Path) -> None:
    """The example of docs/tdl.md, word by word."""
    if shutil.which("avahi-daemon", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("avahi-daemon is not installed")
    after = PAGE.split("#### Multicast and broadcast\n", 1)[1]
    (tmp_path / "exp.tdl").write_text(after.split("```tdl\n", 1)[1].split("```", 1)[0])
    options = ("--time", "virtual", "--no-probes", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "run")
    logs = [path.read_text() for path in (tmp_path / "run/logs").iterdir()]
    names = [re.findall(r"Host name is (\S+)\.local", text)[-1] for text in logs]
    assert sorted(names) == ["store", "store-2", "store-3"]
