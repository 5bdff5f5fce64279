"""Machines with parts, with real programs: what happens to one happens to all of its parts at the
same moment, and what cuts it off leaves its inner network alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import tstorm
from tests.runs.layout import executables

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

PARTS = 3
CLOCK_NS = 946_684_800 * 10**9  # what clocks say at the beginning of a run
TEXT = """\
node sat replicas=2 cpu=1 mem=64MiB {
    service gnab exec="./beat.py $TSTORM_MACHINE.iphy.1 host.0"
    service iphy exec="./beat.py" replicas=2
    bridge inner
    link gnab--inner latency=1ms
    link iphy--inner latency=1ms
}
service host exec="./beat.py"
bridge air
link sat.gnab--air latency=5ms
link host--air latency=5ms
at 1s sat.0 disconnect for 1s
at 3s sat.1 crash
at 4s sat.1 join
at 5s quit
"""
# Each 100 ms one packet to each of those that it is told of; logs who answers, and when.
BEAT = f"""\
#!/usr/bin/python3
import select, socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7000))
log = open("log", "a", buffering=1)
began = time.clock_gettime_ns(time.CLOCK_REALTIME) - {CLOCK_NS}
turn = began // 10**8
print("began", began, file=log)
while True:
    now = time.clock_gettime_ns(time.CLOCK_REALTIME) - {CLOCK_NS}
    if now >= turn * 10**8 + 5 * 10**7:
        for name in sys.argv[1:]:
            end.sendto(f"?{{turn}} {{name}}".encode(), (name, 7000))
        turn += 1
        continue
    if not select.select([end], [], [], (turn * 10**8 + 5 * 10**7 - now) / 1e9)[0]:
        continue
    data, there = end.recvfrom(100)
    if data[:1] == b"?":
        end.sendto(b"!" + data[1:], there)
    else:
        number, name = data[1:].decode().split()
        print(name, number, file=log)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("machines")
    (folder / "exp.tdl").write_text(TEXT)
    executables(folder, {"beat.py": BEAT})
    tstorm(folder, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "run")
    return folder / "run"


def heard(run: Path, instance: str, name: str) -> set[int]:
    """The tenths of a second at which it asked and was answered."""
    log = (run / "instances" / instance / "log").read_text().splitlines()
    return {int(line.split()[1]) for line in log if line.startswith(f"{name} ")}


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def test_what_is_cut_off_goes_on_inside(run: Path) -> None:
    assert heard(run, "sat.0.gnab.0", "sat.0.iphy.1") >= set(range(1, 49))
    answered = heard(run, "sat.0.gnab.0", "host.0")
    assert answered >= {*range(1, 9), *range(20, 49)}
    assert answered.isdisjoint(range(10, 20))


def test_a_crash_ends_all_parts_at_once(run: Path) -> None:
    done = [one for one in events(run) if one["kind"] == "crash"]
    assert [one["target"] for one in done] == ["sat.1.gnab.0", "sat.1.iphy.0", "sat.1.iphy.1"]
    assert {one["planned_ns"] for one in done} == {3 * 10**9}
    for part in ("gnab.0", "iphy.0", "iphy.1"):
        log = (run / "instances" / f"sat.1.{part}" / "log").read_text().splitlines()
        began = [int(line.split()[1]) for line in log if line.startswith("began")]
        assert [at // 10**9 for at in began] == [0, 4]
    answered = heard(run, "sat.1.gnab.0", "sat.1.iphy.1")
    assert answered >= {*range(1, 30), *range(41, 49)}
    assert answered.isdisjoint(range(30, 40))


def test_a_command_in_a_machine_sees_the_processes_of_all_parts(run: Path) -> None:
    argv = ["sat.1", "--", "sh", "-c", "echo $TSTORM_MACHINE; cat /proc/[0-9]*/comm"]
    name, *said = tstorm(run.parent, "at", "run", "4500ms", *argv).stdout.splitlines()
    assert name == "sat.1"
    assert said.count("beat.py") == PARTS
    assert said.count("tstorm-ns") == PARTS + 1


def test_the_network_was_as_planned(run: Path) -> None:
    assert json.loads((run / "summary.json").read_text())["verdict"]["state"] == "valid"
