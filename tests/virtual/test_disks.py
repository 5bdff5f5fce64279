"""Disks with faults: how long each call of a static program takes, which find no room, which fail;
and what a database says of it."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.virtual.guests import compiled

pytestmark = pytest.mark.virtual

BEGIN_NS = 10 * 10**9  # CLOCK_MONOTONIC at the experiment's start
DELAY_NS = 20_000_000
LOOK_NS = 256  # what a look at a clock takes
AT_ONCE_NS = 10_000  # less than that: looks of others
CALLS = 600  # of which a tenth fails
# Of the calls that `disk` makes, those that a slow disk carries out later.
ON_DISK = (
    *("write", "pwrite", "writev", "pwritev", "sendfile", "ftruncate", "truncate"),
    *("fsync", "fdatasync", "syncfs", "msync"),
)
ELSEWHERE = ("pread", "elsewhere", "socket")
MS = 10**6
# Apart from each other: who looks at the clock at one moment makes others late.
TEXT = f"""\
service slow exec="./disk {BEGIN_NS} times times times" files=disk
service full exec="./disk {BEGIN_NS + 300 * MS} room" files=disk
service bad exec="./disk {BEGIN_NS + 400 * MS} {CALLS}" files=disk
service both exec="./disk {BEGIN_NS + 500 * MS} times" files=disk
service wrong exec="./disk {BEGIN_NS + 600 * MS} wrong wrong wrong wrong" files=disk
service db exec="/usr/bin/python3 database.py" files=database.py
bridge s
link slow--s latency=1ms
link full--s latency=1ms
link bad--s latency=1ms
link both--s latency=1ms
link wrong--s latency=1ms
link db--s latency=1ms
from 2s to 4s slow set disk=slow:20ms
at 500ms full set disk=full
at 500ms bad set disk=error:10%
at 500ms both set disk=slow:20ms
at 5s both crash power
from 2s to 4s wrong set disk=slow:20ms
from 4s to 6s wrong set disk=full
at 6s wrong set disk=error:100%
from 2s to 3s db set disk=full
from 4s to 6s db set disk=error:5%
at 8s quit
"""
DATABASE = """\
import sqlite3, time

begin = time.monotonic()


def insert(at):
    time.sleep(max(begin + at - time.monotonic(), 0))
    try:
        database.execute("insert into rows values (zeroblob(9000))")
        print(at, "done", flush=True)
    except sqlite3.DatabaseError as error:
        print(at, error, flush=True)


database = sqlite3.connect("rows.db", isolation_level=None)
database.execute("create table rows (value)")
for at in (1, 2.5, 3.5, *(4.1 + one / 10 for one in range(15)), 6.5):
    insert(at)
print(*database.execute("select count(*) from rows").fetchone(), flush=True)
"""
WORDS = ("--time", "virtual", "--no-probes", "--quiet")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("disks")
    compiled("disk", place, "-static")
    (place / "e.tdl").write_text(TEXT)
    (place / "database.py").write_text(DATABASE)
    tstorm(place, "run", "e.tdl", *WORDS, "--seed", "1", "--out", "run")
    return place / "run"


def lines(run: Path, name: str) -> Sequence[str]:
    return (run / "logs" / f"{name}.log").read_text().splitlines()


def tried(run: Path, name: str) -> Mapping[int, Mapping[str, tuple[str, int]]]:
    """By moment in s: what each call said, and how long it took in ns."""
    found: dict[int, dict[str, tuple[str, int]]] = {}
    for line in lines(run, name):
        if line.startswith("at "):
            at = found.setdefault(int(line.split()[1]), {})
        elif line[-1:].isdigit() and not line[0].isdigit():
            call, said, length = line.rsplit(" ", 2)
            at[call] = said, int(length)
    return found


def test_a_slow_disk_takes_exactly_so_much_longer(run: Path) -> None:
    before, slow, after = (tried(run, "slow.0")[at] for at in (1, 3, 5))
    assert {*ON_DISK, *ELSEWHERE} < before.keys()
    for call in ON_DISK:
        assert slow[call] == ("ok", DELAY_NS + LOOK_NS), call
        assert before[call][1] < AT_ONCE_NS and after[call][1] < AT_ONCE_NS, call
    for call in ELSEWHERE:
        assert slow[call][1] < AT_ONCE_NS, call


def test_a_fault_is_in_force_at_its_moment(run: Path) -> None:
    events = (json.loads(line) for line in (run / "events.jsonl").read_text().splitlines())
    lags_ns = [one["lag_ns"] for one in events if one.get("seq") is not None]
    assert len(lags_ns) > 10 and 0 <= min(lags_ns) <= max(lags_ns) < AT_ONCE_NS


def test_a_full_disk_has_no_room_for_what_is_new(run: Path) -> None:
    said = {call: word for call, (word, _) in tried(run, "full.0")[1].items()}
    refused = {
        *("across", "behind", "appended", "parts across", "longer", "longer by name"),
        *("reserved", "again"),
    }
    assert {call for call, word in said.items() if word == "ENOSPC"} == refused
    assert {word for call, word in said.items() if call not in refused} == {"ok"}


def test_what_is_wrong_anyway_is_told_at_once(run: Path) -> None:
    right, *found = (tried(run, "wrong.0")[at] for at in (1, 3, 5, 7))
    said = {call: word for call, (word, _) in right.items()}
    assert len(said) == 16
    assert {"EBADF", "ok", str(errno.EFAULT), str(errno.EINVAL)} == {*said.values()}
    for fault in found:
        assert {call: word for call, (word, _) in fault.items()} == said
        assert max(length_ns for _, length_ns in fault.values()) < AT_ONCE_NS


def test_the_seed_says_which_calls_fail(run: Path) -> None:
    said = [line.split()[1] for line in lines(run, "bad.0") if line[0].isdigit()]
    assert len(said) == CALLS
    for kind in range(3):  # writes, syncs, reads
        assert 5 < said[kind::3].count("EIO") < 40
    assert {*said} == {"ok", "EIO"}


def test_a_slow_disk_may_lose_its_power(run: Path) -> None:
    both = tried(run, "both.0")[1]
    for call in ON_DISK:  # whoever notes what is synced looks at the clock
        said, length_ns = both[call]
        assert said == "ok" and DELAY_NS <= length_ns < DELAY_NS + AT_ONCE_NS, call


def test_sqlite_says_what_is_wrong_and_works_again(run: Path) -> None:
    *found, count = lines(run, "db.0")
    said = [line.split(" ", 1)[1] for line in found]
    assert said[:3] == ["done", "database or disk is full", "done"]
    assert {"done", "disk I/O error"} <= {*said[3:-1]}
    assert said[-1] == "done"
    assert int(count) == said.count("done")


def test_a_replay_is_the_same(run: Path) -> None:
    tstorm(run.parent, "replay", "run", "--check", "--quiet", "--out", "again")


OVER_HOSTS = """\
service a replicas=2 exec="/bin/sh program.sh" files=program.sh
bridge s
link a--s latency=1ms
at 0s a.0 set disk=full
from 2s to 4s a.1 set disk=slow:100ms
at 1s a.0 set disk=ok
at 1s a.1 set clock=+1h
at 6s a.1 crash power
at 7s a.1 join
at 9s quit
"""
PROGRAM = """\
if test -e kept; then ls; exit; fi
echo x >kept && sync kept . || echo full
sleep 3
echo x >kept
echo y >lost && echo room
date +%s
sleep 60
"""


def test_over_hosts_disks_and_clocks_are_each_instance_s_own(tmp_path: Path) -> None:
    (tmp_path / "e.tdl").write_text(OVER_HOSTS)
    (tmp_path / "program.sh").write_text(PROGRAM)
    tstorm(tmp_path, "run", "e.tdl", *WORDS, "--hosts", "2", "--out", "run")
    first, second = ((tmp_path / f"run/logs/a.{one}.log").read_text() for one in (0, 1))
    date = 946_684_800 + 3  # the run begins at the first second of 2000
    assert first.splitlines()[-3:] == ["full", "room", str(date)]
    lives = second.split("[tstorm] ")
    assert lives[0].splitlines() == ["room", str(date + 3600)]
    assert "kept" in lives[-1]
    again = tstorm(tmp_path, "replay", "run", "--check", "--quiet", "--out", "again")
    assert "everything is the same" in again.stderr
