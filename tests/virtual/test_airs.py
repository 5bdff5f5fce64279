"""`air` in virtual time: what one station sends, and who hears it when."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

LOOKING_US, SENDING_US = 90, 10_000
# b hears both others; from 2 s on c is out of its reach. Light takes 0.5 ms from a to b, 0.6 from b
# to c.
PLACES = """\
time,node,x,y
0,a,0,0
0,b,149896.229,0
0,c,329771.7038,0
1,c,329771.7038,0
2,c,900000,0
"""
TEXT = """\
service car exec="./talk.py" files=talk.py expect=run
air wifi
link car--wifi rate=800kb queue=1MB address=10.0.0.1/24+
mobility places.csv nodes=car range=200km latency-step=1ns
at 3s quit
"""
# Each sends broadcasts of 1000 bytes of IP, two at once; all say what they hear and when.
TALK = """\
#!/usr/bin/env python3
import os, socket, time
me, begin = int(os.environ["TSTORM_INDEX"]), time.time_ns()
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
ear.bind(("", 7))
for at_ms, who, to in (
    (500, 0, "10.0.0.255"), (1000, 1, "10.0.0.255"), (1500, 1, "10.0.0.3"),
    (2500, 1, "10.0.0.255"), (2700, 1, "10.0.0.3"), (2900, 9, ""),
):
    # A timeout is as many whole ms, rounded up: the last of them is slept.
    while (left := begin + at_ms * 1_000_000 - time.time_ns()) > 2_000_000:
        ear.settimeout(left / 1e9 - 0.001)
        try:
            text = ear.recv(2000).strip(b".").decode()
        except TimeoutError:
            break
        if not text.startswith(f"{me}:"):
            print("heard", text, (time.time_ns() - begin) // 1000, flush=True)
    time.sleep(max(begin + at_ms * 1_000_000 - time.time_ns(), 0) / 1e9)
    if who == me:
        for number in (1, 2):
            ear.sendto(f"{me}:{at_ms}:{number}".encode().ljust(972, b"."), (to, 7))
time.sleep(60)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("air")
    (folder / "air.tdl").write_text(TEXT)
    (folder / "places.csv").write_text(PLACES)
    (folder / "talk.py").write_text(TALK)
    (folder / "talk.py").chmod(0o755)
    for name in ("run", "again"):
        tstorm(folder, "run", "air.tdl", "--time", "virtual", "--quiet", "--out", name)
    return folder / "run"


def _heard(run: Path, car: int) -> dict[str, int]:
    """What it heard, and when, in us after it began."""
    lines = (run / f"logs/car.{car}.log").read_text().splitlines()
    return {words[1]: int(words[2]) for line in lines if (words := line.split())[:1] == ["heard"]}


def test_a_broadcast_is_sent_once_and_arrives_after_each_distance(run: Path) -> None:
    near, far = _heard(run, 0), _heard(run, 2)
    for heard, light_us in ((near, 500), (far, 600)):
        # 10 us a byte: the first after 10 ms, the second behind it, for both who hear them.
        # Programs begin some microseconds apart, and look at clocks.
        assert 0 <= heard["1:1000:1"] - 1_010_000 - light_us < LOOKING_US
        assert heard["1:1000:2"] - heard["1:1000:1"] == SENDING_US
    assert abs(far["1:1000:1"] - near["1:1000:1"] - 100) < LOOKING_US / 2


def test_who_is_not_reached_hears_nothing_and_nobody_passes_it_on(run: Path) -> None:
    assert set(_heard(run, 1)) == {"0:500:1", "0:500:2"}
    assert not any(text.startswith("0:") for text in _heard(run, 2))
    assert set(_heard(run, 0)) == {f"1:{at}:{n}" for at in (1000, 2500) for n in (1, 2)}


def test_what_is_for_one_goes_to_it_alone_while_it_is_reached(run: Path) -> None:
    assert set(_heard(run, 2)) == {f"1:{at}:{n}" for at in (1000, 1500) for n in (1, 2)}


def test_pairs_are_judged_by_what_the_plan_has_of_them(run: Path) -> None:
    verdict = json.loads((run / "summary.json").read_text())["verdict"]
    assert verdict["state"] == "valid", verdict


def test_two_runs_are_the_same(run: Path) -> None:
    again = run.with_name("again")
    for name in ("samples.jsonl", "probes.jsonl", "events.jsonl", "logs/car.2.log"):
        assert (run / name).read_bytes() == (again / name).read_bytes(), name
