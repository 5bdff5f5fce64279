"""Who waits for the `when` of a run (tstorm/live/reactor.py), with the test as its driver."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from compiler.pipeline import compile_source, write
from compiler.plan.parts.action_texts import Firing, name_of
from compiler.plan.reader import Plan, decode
from runtime.options import RunOptions

S = 1_000_000_000
TEXT = """\
service db exec=x replicas=2
service c exec=y
bridge s1
link db--s1 latency=1ms
link c--s1 latency=1ms
when log db.* "leads" every at most 2 { it disconnect for 5s }
when exit c with 3 { db.0--s1 set loss=1% }
when ready c after 100ms { quit }
"""
FILES = TEXT.replace("when exit c with 3", 'when file db.0 "epoch" every at most 2')


@dataclass
class Played:
    """The driver's end."""

    folder: Path
    line: BinaryIO
    connection: socket.socket

    def hear(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.line.readline())
        return found

    def offered(self) -> tuple[dict[str, Any], Plan]:
        said = self.hear()
        files = {name: self.line.read(size) for name, size in said["sizes"].items()}
        return said["offer"], decode(files, lazy=False)

    def say(self, **record: object) -> None:
        self.connection.sendall(json.dumps(record).encode() + b"\n")

    def write(self, name: str, text: str) -> None:
        with (self.folder / f"logs/{name}.log").open("a", encoding="utf-8") as file:
            file.write(text)

    def saw(self, kind: str, target: str, status: int = -2) -> None:
        seen = {"target": target, "kind": kind, "text": "it", "seen_ns": S, "status": status}
        self.say(seen=seen)

    def totals(self) -> list[int]:
        self.say(end=True)
        return list(self.hear()["totals"])


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Played]:
    with played(tmp_path, TEXT) as found:
        yield found


@contextmanager
def played(tmp_path: Path, text: str, **options: Any) -> Iterator[Played]:
    write(compile_source(text), tmp_path / "plan")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/db.1.log").write_text("db.1 leads\n", encoding="utf-8")
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-m", "tstorm.live.reactor", str(theirs.fileno())]
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()]) as process, ours, theirs:
        theirs.close()
        ours.settimeout(60)
        found = Played(tmp_path, ours.makefile("rb"), ours)
        found.say(run=str(tmp_path), options=RunOptions(**options).to_record())
        assert found.hear() == {"ready": True}
        found.say(t0_ns=time.monotonic_ns())
        yield found
        found.line.close()
        ours.close()
        assert process.wait(60) == 0


def test_each_line_is_offered_once_and_at_most_so_often(driver: Played) -> None:
    first, plan = driver.offered()  # what was written before
    assert (first["target"], first["text"], first["line"]) == ("db.1", "db.1 leads", 6)
    assert (first["action"], first["firing"]) == (1, 1)
    assert name_of(1, Firing(1, 1)) in plan.attached.includes
    own = [(e.at_ns, e.kind, e.target) for e in plan.events if e.file == "do@1.1.1"]
    at_ns = first["at_ns"]
    assert own == [(at_ns, "disconnect", "db.1"), (at_ns + 5 * S, "reconnect", "db.1")]
    driver.say(taken=True, digest=plan.digest)

    driver.write("db.0", "[tstorm] 1.0 s: leads\nno\nit le")
    driver.write("db.0", "ads, in two parts\n")
    second, longer = driver.offered()
    assert (second["text"], second["action"], second["firing"]) == ("it leads, in two parts", 2, 2)
    assert second["base"] == plan.digest
    driver.say(taken=True, digest=longer.digest)

    driver.write("db.0", "leads\nleads\n")
    beyond = driver.hear()["beyond"]
    assert (beyond["reaction"], beyond["firing"]) == (1, 3)
    assert driver.totals() == [4, 0, 0]


def test_files_count_from_time_0_on(tmp_path: Path) -> None:
    (tmp_path / "instances/db.0").mkdir(parents=True)
    epoch = tmp_path / "instances/db.0/epoch"
    epoch.write_text("1\n", encoding="utf-8")
    with played(tmp_path, FILES) as driver:
        _, plan = driver.offered()  # the line that was there
        driver.say(taken=True, digest=plan.digest)
        epoch.write_text("2\n", encoding="utf-8")
        found, plan = driver.offered()
        assert (found["line"], found["target"], found["text"]) == (7, "db.0", "epoch: written")
        driver.say(taken=True, digest=plan.digest)
        assert driver.totals() == [1, 1, 0]


def test_in_a_cluster_files_are_seen_by_agents(tmp_path: Path) -> None:
    with played(tmp_path, FILES, backend="k8s") as driver:
        for path, text in (("other", "other: made"), ("epoch", "epoch: written")):
            seen = {"target": "db.0", "kind": "file", "path": path, "text": text}
            driver.say(seen={**seen, "seen_ns": S, "status": -1})
        found, plan = driver.offered()  # the line that was there
        driver.say(taken=True, digest=plan.digest)
        found, plan = driver.offered()
        assert (found["line"], found["text"]) == (7, "epoch: written")
        driver.say(taken=True, digest=plan.digest)
        assert driver.totals() == [1, 1, 0]


def test_what_comes_too_late_is_offered_again_for_a_later_moment(driver: Played) -> None:
    first, _ = driver.offered()
    driver.say(again="too late")
    second, _ = driver.offered()
    assert (second["action"], second["firing"]) == (1, 1)
    assert second["at_ns"] > first["at_ns"]
    driver.say(refused="the run is ending")
    refused = driver.hear()["refused"]
    assert (refused["target"], refused["why"]) == ("db.1", "the run is ending")
    assert driver.totals() == [1, 0, 0]


def test_ends_count_with_their_status_and_readiness_later(driver: Played) -> None:
    _, plan = driver.offered()
    driver.say(taken=True, digest=plan.digest)
    driver.saw("exit", "c.0", 4)
    driver.saw("exit", "db.0", 3)
    driver.saw("exit", "c.0", 3)
    ended, plan = driver.offered()
    assert (ended["line"], ended["target"]) == (7, "c.0")
    driver.say(taken=True, digest=plan.digest)
    driver.saw("ready", "c.0")
    driver.saw("ready", "c.0")  # once
    ready, plan = driver.offered()
    assert (ready["line"], ready["after_ns"]) == (8, S // 10)
    assert ready["at_ns"] >= S + S // 10
    driver.say(taken=True, digest=plan.digest)
    assert driver.totals() == [1, 1, 1]


PLAIN = """\
service db exec=x replicas=2
bridge s1
link db--s1 latency=1ms
"""
MS = 1_000_000


def test_a_reaction_comes_between_events_that_are_close_together(tmp_path: Path) -> None:
    text = PLAIN + 'when log db.1 "leads" { db.1 crash }\nfrom 1us to 600s db.0--s1 flap 45ms\n'
    with played(tmp_path, text) as driver:
        first, _ = driver.offered()
        assert first["at_ns"] - first["asked_ns"] < 100 * MS
        assert driver.totals() == [1]


def test_after_is_a_time_of_the_text_and_goes_with_the_pace(tmp_path: Path) -> None:
    text = PLAIN + "when exit db.1 with 3 after 4s { db.0 crash }\nat 4000s db.1 leave\n"
    with played(tmp_path, text, pace=10) as driver:
        driver.saw("exit", "db.1", 3)
        driver.saw("exit", "db.1", 3)
        first, _ = driver.offered()
        assert first["after_ns"] == 400 * MS
        assert 14 * S <= first["at_ns"] < 50 * S  # of the text: it was seen at 10 s of it
        driver.say(refused="no")
        assert driver.hear()["refused"]["after_ns"] == 400 * MS


def test_a_line_without_an_end_counts_when_its_program_has_ended(tmp_path: Path) -> None:
    text = PLAIN + 'when log db "last|^$" every { db.0--s1 set loss=1% }\nat 100s db leave\n'
    with played(tmp_path, text) as driver:
        driver.write("db.0", "the last one")
        driver.say(ended="db.0", at_ns=S, forced=False)
        first, plan = driver.offered()
        assert (first["target"], first["text"]) == ("db.0", "the last one")
        driver.say(taken=True, digest=plan.digest)
        driver.write("db.0", "\n[tstorm] 1.0 s: crash\n")  # no empty line
        driver.write("db.1", "the very last")
        driver.say(ended="db.1", at_ns=5, forced=False)
        second, _ = driver.offered()
        assert (second["target"], second["seen_ns"]) == ("db.1", 5)  # and not after its end
        driver.say(refused="no")
        driver.hear()
        assert driver.totals() == [2]


def test_a_line_that_was_cut_counts_for_a_plain_text_only(tmp_path: Path) -> None:
    said = (("lag 0$", "1%"), ("lag 0", "2%"), ("^12", "3%"))
    whens = (f'when log db "{what}" {{ db.0--s1 set loss={loss} }}\n' for what, loss in said)
    with played(tmp_path, PLAIN + "".join(whens) + "at 100s db leave\n") as driver:
        cut = "(the line before had no end)"
        driver.write("db.0", f"lag 0\n[tstorm] 1.000000000 s: pause {cut}\n12\n")
        first, plan = driver.offered()
        assert (first["target"], first["text"]) == ("db.0", "lag 0")
        driver.say(taken=True, digest=plan.digest)
        driver.write("db.1", "of lag 0")
        driver.say(ended="db.1", at_ns=5, forced=True)
        assert driver.totals() == [0, 1, 0]


def test_what_is_behind_the_64_kib_of_a_line_is_counted(tmp_path: Path) -> None:
    text = PLAIN + "".join(
        f'when log db.0 "{pattern}" every {{ db.0--s1 set loss=1% }}\n'
        for pattern in ("PANIC", "begins", "^begins", "no$")
    )
    with played(tmp_path, text + "at 100s db leave\n") as driver:
        driver.write("db.0", f"begins {'x' * (1 << 17)} PANIC")
        driver.write("db.0", "\nno\n")
        for line in (5, 7):
            assert driver.offered()[0]["line"] == line
            driver.say(refused="no")
            driver.hear()
        driver.say(end=True)
        assert driver.hear() == {"totals": [0, 1, 0, 1], "cut": [1, 0, 1, 1]}
