"""Test templates that a service has where those of the field are: what runs when is the seed's, and
so is the run; checks find the network whole."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from runtime.options import DEFAULTS
from tests.cli.process import tstorm

pytestmark = pytest.mark.virtual

WORDS = ("--time", "virtual", "--no-probes", "--quiet")
TEXT = """
service server exec="tprobe serve"
service client exec="sleep 1000" fs=private files=test:/opt/antithesis/test/v1
bridge s
link server--s latency=5ms
link client--s latency=5ms
at 2s partition client; server
at 4s heal
at 10s quit
expect drivers client
expect assertions client
"""
SCRIPTS = {
    "first_create": "echo created >made",
    "parallel_driver_ask": "cat made && echo >>asked; ping -c 1 -W 1 server; sleep 0.3",
    "serial_driver_alone": "! pgrep parallel_driver && sleep 0.2",
    "anytime_look": 'echo "{}" >"$ANTITHESIS_SDK_LOCAL_OUTPUT"; test -e made',
    "eventually_there": "ping -c 1 -W 1 server && ! pgrep parallel_driver",
    "finally_asked": "test $(wc -l <asked) -gt 0 && ! pgrep parallel_driver",
}
Record = dict[str, Any]


def _laid_out(place: Path, **scripts: str) -> None:
    for name, text in scripts.items():
        template = place / "test/main"
        template.mkdir(parents=True, exist_ok=True)
        (template / name).write_text(f"#!/bin/sh\n{text}\n")
        (template / name).chmod(0o644 if name.startswith("helper_") else 0o755)
    (place / "d.tdl").write_text(TEXT)


def _told(run: Path) -> tuple[Record, list[Record]]:
    lines = (run / "events.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    ends = [one for one in records if one["kind"] == "command_end"]
    return json.loads((run / "summary.json").read_text())["expectations"][0], ends


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drivers")
    _laid_out(place, **SCRIPTS, helper_x="not run")
    words = (*WORDS, "--reseed", "5s=7")
    for seed, out, more in ((1, "one", WORDS), (1, "two", WORDS), (1, "other", words)):
        tstorm(place, "run", "d.tdl", *more, "--seed", str(seed), "--out", out)
    tstorm(place, "run", "d.tdl", *WORDS, "--seeds", "2..4", "--out", "more")
    return place


def _begun(ends: list[Record]) -> list[tuple[int, str]]:
    return sorted((one["began_ns"], one["command"]) for one in ends)


def test_the_same_seed_is_the_same_to_the_last_byte(place: Path) -> None:
    one, two = ((place / out / "events.jsonl").read_bytes() for out in ("one", "two"))
    assert one == two
    found, ends = _told(place / "one")
    assert found["state"] == "passed", found
    assert {one["command"] for one in ends} >= {*list(SCRIPTS)[:4]}
    assert all(one["status"] == 0 for one in ends if "lost" not in one)


def test_other_seeds_run_other_commands_and_come_to_each_check(place: Path) -> None:
    told = [_told(place / f"more/seed-{seed}") for seed in range(2, 5)]
    assert [found["state"] for found, _ in told] == ["passed"] * 3
    assert len({tuple(_begun(ends)) for _, ends in told}) == 3
    assert {ends[-1]["command"] for _, ends in told} == {"eventually_there", "finally_asked"}


def test_a_branch_is_the_same_until_its_moment(place: Path) -> None:
    one, other = (_begun(_told(place / out)[1]) for out in ("one", "other"))
    before = [began for began in one if began[0] < 5 * 10**9]
    assert other[: len(before)] == before
    assert one != other


COMPOSE = """
services:
  server: {image: x, x-tstorm: {exec: tprobe serve}}
  workload:
    image: x
    volumes: ["./test:/opt/antithesis/test/v1:ro"]
    x-tstorm: {exec: sleep infinity, fs: private}
"""


def test_what_fails_in_a_harness_of_compose(tmp_path: Path) -> None:
    _laid_out(tmp_path, **{**SCRIPTS, "anytime_look": "echo no leader; exit 7"})
    (tmp_path / "docker-compose.yml").write_text(COMPOSE)
    text = 'include "docker-compose.yml"\nat 5s quit\nexpect drivers workload\n'
    (tmp_path / "d.tdl").write_text(text)
    said = tstorm(tmp_path, "run", "d.tdl", *WORDS, "--out", "a", code=5).stderr
    assert "anytime_look in workload.0 ended with status 7 at " in said
    assert ": no leader" in said
    (tmp_path / "d.tdl").write_text(f'{text.rstrip()} "/opt/elsewhere"\n')
    said = tstorm(tmp_path, "run", "d.tdl", *WORDS, "--out", "b", code=5).stderr
    assert "in workload.0 /opt/elsewhere cannot be read: No such file or directory" in said


# A driver writes each 100 ms; what is in force for its instance's program is for it as well.
MET = """
service paused exec="sleep 1000" files=test
service slow exec="sleep 1000" files=test
service lost exec="sleep 1000"
bridge s
link paused--s latency=5ms
link slow--s latency=5ms
link lost--s latency=5ms
from 2s to 4s paused pause
from 2s to 4s slow set disk=slow:1s
at 3s lost crash power
at 4s lost join
at 8s quit
expect drivers paused "test/main" to 7s
expect drivers slow "test/main" to 7s
expect run "sh -c 'for n in $(seq 30); do echo >f$n; echo >g$n; done; sync f* .'" ok on lost.0 at 2s
expect run "sh -c 'test $(cat f* | wc -l) = 30 && ! test $(cat g* | wc -l) = 30'" ok on lost.0 at 5s
"""
TICK = "for n in 1 2 3 4 5 6 7 8; do echo $(date +%s%N) >>ticks; sleep 0.1; done"


def _ticks(run: Path, instance: str) -> list[float]:
    """When they were, in s since the start."""
    words = (run / f"instances/{instance}/ticks").read_text().split()
    return sorted((int(one) - DEFAULTS.clock_start_ns) / 1e9 for one in words)


def test_a_command_meets_what_its_instance_does(tmp_path: Path) -> None:
    _laid_out(tmp_path, singleton_driver_tick=f"{TICK}; {TICK}; {TICK}; {TICK}; {TICK}")
    (tmp_path / "d.tdl").write_text(MET)
    tstorm(tmp_path, "run", "d.tdl", *WORDS, "--out", "a")
    paused, slow = (_ticks(tmp_path / "a", one) for one in ("paused.0", "slow.0"))
    gaps = [(one, other) for one, other in itertools.pairwise(paused) if other - one > 0.15]
    ((last, first),) = gaps
    assert 1.8 < last <= 2 and 4 <= first < 4.2
    assert 1 <= sum(2.05 < one < 4 for one in slow) <= 2, "each write takes a second longer"
