"""`--reseed T=SEED`: the same run until T, and another one after it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from compiler.plan.reader import read_plan
from runtime.results.parting import part
from runtime.rundir import rundir
from tests.cli.process import tstorm

pytestmark = pytest.mark.virtual

# What is drawn: random bytes of a program, losses and jitter, orders (--scatter), who crashes when.
TEXT = """\
service server replicas=4 exec="tprobe serve"
service client exec="tprobe rtt server.0 --count 150 --interval 20ms --each"
service drawing exec="sh -c 'while :; do od -An -N8 -tx8 /dev/urandom; sleep 0.1; done'"
bridge s
link server--s latency=2ms jitter=200us loss=5%
link client--s latency=5ms
link drawing--s latency=1ms
from 200ms to 3500ms server churn 4 replace 50%
from 200ms to 3500ms server disconnect 1
at 4s quit
"""
SECOND = 10**9
WORDS = ("--time", "virtual", "--packets", "--no-probes", "--scatter", "50us", "--quiet")


def samples(run: Path, until_ns: int) -> list[str]:
    """Counters and digests of links until then, as they are recorded."""
    lines = (run / "samples.jsonl").read_text().splitlines()
    return [one for one in lines if json.loads(one).get("elapsed_ns", 0) < until_ns]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("reseed")
    (place / "e.tdl").write_text(TEXT)
    tstorm(place, "run", "e.tdl", *WORDS, "--out", "base")
    return place


def test_until_the_moment_everything_is_the_same_and_after_it_not(base: Path) -> None:
    drawn = random.Random(7)
    for number in range(3):
        at_ns = drawn.randrange(SECOND // 2, 3 * SECOND)
        said = f"{at_ns}ns={drawn.randrange(100)}"
        if number:
            tstorm(base, "replay", "base", "--reseed", said, "--quiet", "--out", f"b{number}")
        else:
            tstorm(base, "run", "e.tdl", *WORDS, "--reseed", said, "--out", "b0")
        runs = [base / "base", base / f"b{number}"]
        found = part(*map(rundir.recorded, runs)).earliest
        assert found is not None, "nothing is another after the moment"
        assert found.at_ns is not None
        assert at_ns <= found.at_ns < at_ns + SECOND, (said, found)
        mine, theirs = (samples(run, at_ns) for run in runs)
        assert mine == theirs
        assert len(mine) > 4
        logs = [(run / "logs" / "drawing.0.log").read_text() for run in runs]
        assert logs[0] != logs[1], "what programs draw is another"


def test_a_replay_does_it_again_and_the_manifest_says_so(base: Path) -> None:
    if not (base / "b0").exists():  # the test before ran elsewhere
        tstorm(base, "run", "e.tdl", *WORDS, "--reseed", "1s=5", "--out", "b0")
    manifest = json.loads((base / "b0" / "manifest.json").read_text())
    (moment,) = manifest["options"]["reseeds"]
    plan = read_plan(base / "b0" / "plan")
    assert f"#: reseed {moment} ".encode() in plan.source
    tstorm(base, "replay", "b0", "--check", "--quiet", "--out", "again")


def test_a_command_runs_at_the_moment_in_time_that_stands_still(base: Path) -> None:
    """The guest has started 10 s before time 0, and somebody does something every 20 ms."""
    up = ("--", "cat", "/proc/uptime")
    stood = tstorm(base, "at", "base", "1500ms", "client.0", *up).stdout
    assert 11.47 <= float(stood.split()[0]) <= 11.5
    script = "cat /proc/uptime; sleep 0.2; cat /proc/uptime; exit 7"
    went = tstorm(
        *(base, "at", "base", "2s", "drawing.0", "--go", "1s", "--", "sh", "-c", script), code=7
    )
    first, second = (float(line.split()[0]) for line in went.stdout.splitlines())
    assert 11.97 <= first <= 12.8  # a shell starts meanwhile, and time goes on
    assert 0.19 <= second - first <= 0.22
    ended = tstorm(base, "at", "base", "3s", "client.0", "--go", "9s", "--", "sleep", "5", code=143)
    assert "the run ends at 4s, after 1s of --go, and CMD with it" in ended.stderr
    gone = tstorm(base, "at", "base", "2s", "nobody.0", "--", "true", code=1).stderr
    assert "nobody.0" in gone


def test_packets_around_a_moment_are_printed(base: Path) -> None:
    said = tstorm(base, "at", "base", "1s", "--packets", "50ms").stdout.splitlines()
    assert any("client.0 -> server.0" in line for line in said)
    told = json.loads(
        tstorm(base, "at", "base", "1s", "--packets", "50ms", "--format", "json").stdout
    )
    assert len(told["packets"]) == len(said)
    assert all(one["end_ns"] >= 950_000_000 for one in told["packets"])
    assert all(one["sent_ns"] <= 1_050_000_000 for one in told["packets"])


def test_what_cannot_be_drawn_anew_is_refused(base: Path) -> None:
    for words, said in (
        (("--time", "virtual", "--reseed", "4s=1"), "the run ends at 4 s"),
        (("--time", "virtual", "--reseed", "0s=1"), "nothing before 0 s"),
        (("--time", "virtual", "--cpu", "model=1", "--reseed", "1s=1"), "leave --cpu"),
        (("--reseed", "1s=1"), "--reseed is for --time virtual"),
        (("--time", "virtual", "--reseed", "1s"), "is not T=SEED"),
    ):
        refused = tstorm(base, "run", "e.tdl", *words, "--out", "no", code=None)
        assert refused.returncode in (1, 2)
        assert said in refused.stderr
        assert not (base / "no").exists()
