"""`do` and `record` on a run that goes on: what packets saw, what it is judged by."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from compiler.plan.format import PlanError
from compiler.plan.reader import Plan, read_plan
from tests.cli.process import DEADLINE_SECONDS, begun, command, environment, tstorm
from tests.waiting import wait_until

TDL = """\
seed 4
service server replicas=2 exec="tprobe serve"
service client exec="tprobe rtt server.0 --count 2000 --each"
bridges s1 s2
link server--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
END
"""
MS = 1_000_000
EXACT_MS = 0.01  # how exact delays are in real time

pytestmark = pytest.mark.e2e


def growing(place: Path) -> Plan:
    """A run that is changed puts another one there: who reads it meanwhile is told to try again."""

    def whole() -> Plan | None:
        with suppress(PlanError):
            return read_plan(place)
        return None

    found = wait_until(whole, "a plan that is whole")
    assert found is not None
    return found


def state(place: Path) -> dict[str, Any]:
    done = tstorm(place, "inspect", "run", "--format", "json", code=None)
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def reached(place: Path, at_ns: int) -> bool:
    return bool(state(place).get("at_ns", -1) >= at_ns)


def events(place: Path, kind: str = "") -> list[dict[str, Any]]:
    lines = (place / "run/events.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [one for one in found if one.get("kind") == kind or not kind]


@pytest.fixture
def going_on(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A run in `tmp_path`/run, with what is planned as the parameter says."""
    (tmp_path / "exp.tdl").write_text(TDL.replace("END", request.param), encoding="utf-8")
    with going_on_with(tmp_path) as process:
        yield process


@contextmanager
def going_on_with(place: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    with begun(place, "run", "exp.tdl", "--out", "run", *options) as process:

        def up() -> bool:
            assert process.poll() is None, process.communicate()
            return reached(place, 500 * MS)

        wait_until(up, "the run goes on")
        yield process
    tstorm(place, "destroy", "--all")


def round_trips(place: Path) -> list[tuple[int, float]]:
    """When each began, in the run's time, and its ms."""
    start = json.loads((place / "run/manifest.json").read_text("utf-8"))["start_monotonic_ns"]
    log = (place / "run/logs/client.0.log").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in log if line.startswith("{")]
    heard = [one for one in found if one.get("rtt_us")]
    return [(one["t_ns"] - start, one["rtt_us"] / 1000) for one in heard]


def check_judged(verdict: dict[str, Any]) -> None:
    """The network was what it is said to have been. What a slow machine takes from a run may be
    told of it, too."""
    assert verdict["measured"]["probes"] > 100
    wrong = [one["text"] for one in verdict["reasons"] if one["state"] == "invalid"]
    assert wrong == []


@pytest.mark.parametrize("going_on", ["at 300s server.0--s1 set loss=1%"], indirect=True)
def test_what_is_done_by_hand_is_what_packets_see_and_what_is_judged(
    tmp_path: Path, going_on: subprocess.Popen[str]
) -> None:
    done = tstorm(tmp_path, "do", "run", "s1--s2 set latency=60ms", "--json")
    first = json.loads(done.stdout)["ok"]
    assert (first["action"], first["events"]) == (1, 2)
    wait_until(lambda: reached(tmp_path, first["planned_ns"] + 1500 * MS), "it is in force")
    (tmp_path / "more.tdl").write_text("server.1 crash\nserver.0--s1 set loss=5%\n")
    done = tstorm(tmp_path, "do", "run", "-f", "more.tdl")
    assert "on, 3 events" in done.stdout
    assert "crash server.1" in done.stdout
    refused = tstorm(tmp_path, "do", "run", "server crsh 1", code=1)
    assert "action:1:8: error TS0018" in refused.stderr
    assert "nothing was changed" in refused.stderr
    refused = tstorm(
        tmp_path, "do", "run", "s1--s2 set latency=70ms", "server.1 crash", "--json", code=1
    )
    answer = json.loads(refused.stdout)
    assert (answer["diagnostics"][0]["line"], answer["diagnostics"][0]["col"]) == (2, 1)
    tstorm(tmp_path, "do", "run", "quit")
    out, err = going_on.communicate(timeout=DEADLINE_SECONDS)
    assert going_on.returncode == 0, (out, err)

    summary = json.loads((tmp_path / "run/summary.json").read_text(encoding="utf-8"))
    check_judged(summary["verdict"])
    manual = [one for one in events(tmp_path) if one.get("origin") == "manual"]
    assert Counter((one["action"], one["kind"]) for one in manual) == {
        **dict.fromkeys([(1, "do"), (2, "do"), (2, "crash"), (3, "do"), (3, "quit")], 1),
        **dict.fromkeys([(1, "set"), (2, "set")], 2),
    }
    assert not [one for one in manual if one.get("args") == {"delay_ns": 70 * MS}]
    plan = read_plan(tmp_path / "run/plan")
    manifest = json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan_digest"] == plan.digest

    seen = round_trips(tmp_path)
    before = [ms for at_ns, ms in seen if at_ns < first["planned_ns"] - 200 * MS]
    after = [ms for at_ns, ms in seen if at_ns > first["planned_ns"]]
    assert before
    assert after
    assert 24 - EXACT_MS <= min(before) < 124 - EXACT_MS <= min(after)

    tstorm(tmp_path, "record", "run", "-o", "again.tdl")
    diff = tstorm(tmp_path, "diff", "run/plan", "again.tdl")
    assert "the same experiment" in diff.stderr + diff.stdout
    assert "server.1 crash" in (tmp_path / "again.tdl").read_text(encoding="utf-8")
    refused = tstorm(tmp_path, "record", "run", "-o", "again.tdl", code=1)
    assert "is there already" in refused.stderr
    refused = tstorm(tmp_path, "do", "run", "heal", code=1)
    assert "has ended (completed)" in refused.stderr


@pytest.mark.parametrize("going_on", ["at 12s quit"], indirect=True)
def test_a_client_that_dies_and_the_end_of_the_run_leave_no_half(
    tmp_path: Path, going_on: subprocess.Popen[str]
) -> None:
    asked = command("do", "run", "server.1 disconnect for 100ms")
    own = {"cwd": tmp_path, "env": environment(tmp_path)}
    for lives_seconds in (0.05, 0.4, 0.5, 0.6, 0.7):
        client = subprocess.Popen(asked, stdout=PIPE, stderr=PIPE, **own)  # type: ignore[call-overload]
        with suppress(subprocess.TimeoutExpired):
            client.wait(lives_seconds)
        client.kill()
        client.communicate()
    told: list[dict[str, Any]] = []
    while going_on.poll() is None:
        done = tstorm(
            tmp_path, "do", "run", "at +1ms s1--s2 set loss=1%", "s1--s2 set loss=2%", "--json",
            code=None,
        )  # fmt: skip
        told.append(json.loads(done.stdout) if done.stdout else {"error": done.stderr})
    out, err = going_on.communicate()
    assert going_on.returncode == 0, (out, err)
    manual = [one for one in events(tmp_path) if one.get("origin") == "manual"]
    taken = {one["action"]: one["events"] for one in manual if one["kind"] == "do"}
    carried_out = Counter(one["action"] for one in manual if one["kind"] != "do")
    assert carried_out == taken
    answered = [one["ok"]["action"] for one in told if "ok" in one]
    assert {*answered} <= taken.keys()
    assert len(told[-1].get("error", "")) > 0  # there was nothing left to be done to
    plan = read_plan(tmp_path / "run/plan")
    assert len(plan.events) == sum("seq" in one for one in events(tmp_path))
    assert not list((tmp_path / "run").glob(".do*"))


@pytest.mark.parametrize("going_on", ["at 300s quit"], indirect=True)
def test_a_replay_does_it_again(tmp_path: Path, going_on: subprocess.Popen[str]) -> None:
    tstorm(tmp_path, "do", "run", "server crash 1", "at +500ms quit", code=1)  # there is a quit
    tstorm(tmp_path, "do", "run", "server crash 1")
    wait_until(lambda: events(tmp_path, "crash"), "it is done")
    going_on.send_signal(signal.SIGINT)
    going_on.communicate(timeout=DEADLINE_SECONDS)
    (crash,) = events(tmp_path, "crash")
    until = f"{crash['planned_ns'] / 1e9 + 0.5:.3f}s"
    tstorm(tmp_path, "replay", "run", "--out", "again", "--until", until)
    lines = (tmp_path / "again/events.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    (again,) = [one for one in found if one.get("kind") == "crash"]
    same = ("target", "planned_ns", "origin", "action", "file", "line", "seq")
    assert [again[name] for name in same] == [crash[name] for name in same]


HELD = "at 15s s1--s2 set latency=60ms\nat 60s server.1 crash\nat 65s quit"


def test_what_is_held_waits_and_packets_do_not(tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(TDL.replace("END", HELD), encoding="utf-8")
    with begun(tmp_path, "run", "exp.tdl", "--out", "run") as process:
        wait_until(lambda: reached(tmp_path, 1), "the run goes on")
        assert json.loads(tstorm(tmp_path, "hold", "run", "--json").stdout)["ok"]["action"] == 1
        assert "held already" in tstorm(tmp_path, "hold", "run", code=1).stderr
        wait_until(lambda: reached(tmp_path, 15_500 * MS), "the planned moment has passed")
        assert not events(tmp_path, "set")
        told = tstorm(tmp_path, "inspect", "run").stdout
        assert re.search(r"^held: what is planned waits at [\d.]+m?s of the text", told, re.M)
        tstorm(tmp_path, "skip", "run", "--to", "next")
        wait_until(lambda: events(tmp_path, "set"), "the next event")
        assert not events(tmp_path, "crash")
        wait_until(
            lambda: reached(tmp_path, events(tmp_path, "set")[0]["planned_ns"] + 1500 * MS), ""
        )
        tstorm(tmp_path, "go", "run")
        tstorm(tmp_path, "skip", "run", "--to", "100s")
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, (out, err)
    summary = json.loads((tmp_path / "run/summary.json").read_text(encoding="utf-8"))
    check_judged(summary["verdict"])
    changed_ns = events(tmp_path, "set")[0]["planned_ns"]
    assert changed_ns > 15_500 * MS
    seen = round_trips(tmp_path)
    before = [ms for at_ns, ms in seen if at_ns < changed_ns - 200 * MS]
    after = [ms for at_ns, ms in seen if at_ns > changed_ns]
    assert len(before) > 30  # programs and packets went on
    assert 24 - EXACT_MS <= min(before) < 124 - EXACT_MS <= min(after)
    (end,) = [one for one in events(tmp_path, "quit") if "seq" in one]
    assert events(tmp_path, "crash")[0]["planned_ns"] == end["planned_ns"]  # skipped together
    assert [one["text"] for one in events(tmp_path, "do")] == [
        "hold", "skip to next", "go", "skip to 1m40s",
    ]  # fmt: skip
    tstorm(tmp_path, "record", "run", "-o", "again.tdl")
    found = tstorm(tmp_path, "events", "again.tdl", "--format", "json").stdout
    known = tstorm(tmp_path, "events", "run", "--format", "json").stdout
    same = ("at_ns", "kind", "target", "args")
    assert [[one[name] for name in same] for one in json.loads(found)] == [
        [one[name] for name in same] for one in json.loads(known)
    ]


LINKS = {
    "Linksimulation": {
        "Routerpairs": [
            {"Routerid": 1, "Clientcount": 1, "Client_IP1": "10.1.1.123", "Server_IP": "11.3.2.111"}
        ],
        "Linkproperties": [
            {"Routerid": 1, "properties": [{"delay_1_forward": "1ms", "delay_1_backward": "1ms"}]}
        ],
    }
}
SIMULATED = """\
include "links.json"
service client_1 replicas=1
at 300s client_1->server set loss=1%
"""


def test_links_are_changed_by_address_and_by_their_file(tmp_path: Path) -> None:
    links = tmp_path / "links.json"
    links.write_text(json.dumps(LINKS), encoding="utf-8")
    (tmp_path / "exp.tdl").write_text(SIMULATED, encoding="utf-8")
    plan = tmp_path / "run/plan"
    with begun(tmp_path, "run", "exp.tdl", "--out", "run") as process:
        wait_until(lambda: reached(tmp_path, 200 * MS), "the run goes on")
        lines = [
            {"src": "10.77.0.1", "dst": "10.77.0.2", "delay_ns": 7 * MS, "both": 1, "id": "x"},
            [
                {"src": "client_1.0", "dst": "server.0", "delay_ns": 9 * MS, "id": 1},
                {"src": "client_1.0", "dst": "server.1", "delay_ns": 9 * MS, "id": 2},
            ],
            {"src": "client_1.0", "dst": "server.0", "rate_bps": 0},
            {"src": "client_1.0", "dst": "server.0", "reset": 1},
        ]
        (tmp_path / "lines.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        done = tstorm(tmp_path, "do", "run", "--json", "lines.json", code=1)
        x, one, two, none, reset = map(json.loads, done.stdout.splitlines())
        assert (x["id"], x["ok"]["link"], x["ok"]["back"]) == (
            ("x", "client_1.0->server.0", "server.0->client_1.0")
        )
        assert (one["id"], one["code"], two["id"], two["code"]) == (1, "TS0323", 2, "TS0323")
        assert "'server.1'" in two["error"]
        assert "carries nothing" in none["error"]
        assert reset["ok"]["action"] == x["ok"]["action"] + 1  # what was refused was none
        applied = {e["seq"]: e for e in events(tmp_path, "set")}
        for answer in (x, reset):
            assert applied[answer["ok"]["seq"]]["applied_ns"] == answer["ok"]["applied_ns"]

        with begun(tmp_path, "do", "run", "--watch", "links.json", "--json") as watching:
            before = growing(plan).digest
            wait_until(lambda: growing(plan).digest != before, "what the file says is in force")
            links.write_text('{"Linksimulation": 7}', encoding="utf-8")
            text = json.dumps(LINKS).replace(
                '"delay_1_backward": "1ms"', '"delay_1_backward": "5ms"'
            )
            links.with_suffix(".new").write_text(text, encoding="utf-8")
            links.with_suffix(".new").rename(links)
            wait_until(lambda: {"delay_ns": 5 * MS} in [e.args for e in growing(plan).events], "it")
            tstorm(tmp_path, "do", "run", "quit")
            out, _ = process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 0, out
            told, err = watching.communicate(timeout=DEADLINE_SECONDS)
            assert watching.returncode == 0, err
    first, second = (json.loads(line)["ok"]["first"] for line in told.splitlines())
    assert [one["target"] for one in first] == ["server.0->client_1.0"]  # it had 7 ms
    assert [one["target"] for one in second] == ["server.0->client_1.0"]


def test_all_hosts_do_what_is_done_by_hand_or_none(tmp_path: Path) -> None:
    text = TDL.replace("END", "at 300s server.0--s1 set loss=1%")
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    with going_on_with(tmp_path, "--hosts", "2") as process:
        refused = tstorm(tmp_path, "do", "run", "s1--s2 set duplicate=5%", code=None)
        assert refused.returncode != 0
        assert "is not possible" in refused.stderr
        tstorm(tmp_path, "do", "run", "s1--s2 set latency=60ms", "server.1 crash")
        tstorm(tmp_path, "do", "run", "server.0--s1 set latency=3ms")
        tstorm(tmp_path, "do", "run", "at +1500ms quit")
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, (out, err)

    manual = [one for one in events(tmp_path) if one.get("origin") == "manual" and "seq" in one]
    assert Counter((one["action"], one["kind"]) for one in manual) == {
        (1, "set"): 2,
        (1, "crash"): 1,
        (2, "set"): 2,
        (3, "quit"): 1,
    }
    changed = max(one["applied_ns"] for one in manual if one["action"] == 2)
    after = [ms for at_ns, ms in round_trips(tmp_path) if at_ns > changed + 200 * MS]
    assert after
    assert min(after) >= 2 * (1 + 60 + 3) - EXACT_MS
    tstorm(tmp_path, "record", "run", "-o", "again.tdl")
    diff = tstorm(tmp_path, "diff", "run/plan", "again.tdl")
    assert "the same experiment" in diff.stderr + diff.stdout
    plan = read_plan(tmp_path / "run/plan")
    manifest = json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8"))
    assert manifest["plan_digest"] == plan.digest

    done = tstorm(tmp_path, "replay", "run", "--check", "--out", "again")
    assert "the same events, on the same targets, in the same order" in done.stdout + done.stderr
    lines = (tmp_path / "again/events.jsonl").read_text(encoding="utf-8").splitlines()
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    again = [one for one in found if one.get("origin") == "manual" and "seq" in one]
    same = ("kind", "target", "planned_ns", "action", "file", "line", "seq")
    assert [[one[name] for name in same] for one in again] == [
        [one[name] for name in same] for one in manual
    ]
    options = json.loads((tmp_path / "again/manifest.json").read_text(encoding="utf-8"))["options"]
    assert options["hosts"] == 2
