"""Whose numbers a run can have, and whose a name is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.backend.runwords import replaced
from runtime.errors import RunError
from runtime.rundir import etchosts
from runtime.system import machine_facts, userids
from runtime.system.userids import Identity, IdRange

PASSWD = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "postgres:x:105:107::/var/lib/postgresql:/bin/sh\nbad:x:y:z::/:/\n"
)
GROUP = "root:x:0:\npostgres:x:107:\nssl-cert:x:104:postgres,www\nwheel:x:10:root\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(PASSWD)
    (tmp_path / "etc/group").write_text(GROUP)
    return tmp_path


@pytest.mark.parametrize(
    ("user", "found"),
    [
        ("postgres", Identity("postgres", 105, 107, (104,))),
        ("105", Identity("postgres", 105, 107, (104,))),
        ("postgres:ssl-cert", Identity("postgres", 105, 104)),
        ("postgres:9", Identity("postgres", 105, 9)),
        ("1000", Identity("", 1000, 1000)),
        ("1000:1001", Identity("", 1000, 1001)),
        ("root", Identity("root", 0, 0, (10,))),
    ],
)
def test_users_are_those_of_the_root_directory(root: Path, user: str, found: Identity) -> None:
    assert userids.resolve(user, root) == found


def test_a_number_without_a_name_has_the_group_that_an_image_gives_it(root: Path) -> None:
    assert userids.resolve("1000", root, unknown_gid=0) == Identity("", 1000, 0)


@pytest.mark.parametrize("user", ["nobody", "postgres:nogroup", "4294967295", "bad", "9" * 5000])
def test_who_is_not_there_is_named(root: Path, user: str) -> None:
    with pytest.raises(RunError, match=user.rpartition(":")[2][:90]):
        userids.resolve(user, root)


def test_ranges_are_those_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("newuidmap", "newgidmap"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    monkeypatch.setattr(os, "getgid", lambda: 54322)
    assert "give this user no range" in userids.remedy(tmp_path)
    assert userids.sandbox_arguments(tmp_path) == ()
    text = "other:1:65536\n54321:100000:65536\nnonsense\n54321:300000:10\n"
    (tmp_path / "subuid").write_text(text)
    assert userids.sandbox_arguments(tmp_path) == ()  # both are needed
    (tmp_path / "subgid").write_text("54321:200000:65536\n")
    found = (IdRange(1, 100000, 65536), IdRange(65537, 300000, 10))
    assert userids.ranges("uid", tmp_path) == found
    assert userids.has(65546, found)
    assert not userids.has(65547, found)
    assert userids.sandbox_arguments(tmp_path) == (
        *("--uids", "0 54321 1 1 100000 65536 65537 300000 10"),
        *("--gids", "0 54322 1 1 200000 65536"),
    )
    (tmp_path / "newgidmap").unlink()
    assert userids.ranges("uid", tmp_path) == ()
    assert "install newgidmap" in userids.remedy(tmp_path)


def test_what_this_process_has_is_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "uid_map").write_text(
        "         0       1000          1\n    1     100000      65536\n"
    )
    assert userids.present("uid", tmp_path) == (IdRange(0, 1000, 1), IdRange(1, 100000, 65536))
    assert userids.has(os.getuid(), userids.present())


def test_only_the_runs_own_variables_are_put_into_words() -> None:
    env = {"TSTORM_IPV4": "10.77.0.1", "TSTORM_INDEX": "0", "HOME": "/x"}
    words = (
        "-h$TSTORM_IPV4",
        "${TSTORM_INDEX}x",
        "$HOME",
        "$TSTORM_NOTHING",
        "$$TSTORM_INDEX",
        "$1",
    )
    assert replaced(words, env) == (*("-h10.77.0.1", "0x", "$HOME", "$TSTORM_NOTHING", "$0", "$1"),)


def test_the_machines_settings_that_leak_in_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    found = machine_facts.network_settings(tmp_path)
    assert found == {"net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert "net.ipv4.tcp_congestion_control" in machine_facts.facts()["network"]  # type: ignore[operator]


def test_the_table_of_precedences_is_whole_and_has_ipv4_first() -> None:
    rows = [line.split() for line in etchosts.GAI.splitlines()]
    assert max(rows, key=lambda row: int(row[2]))[1] == "::ffff:0:0/96"
    assert {row[1] for row in rows} >= {"::/0", "::1/128"}
