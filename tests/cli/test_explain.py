"""`tstorm explain`: what it says of paths and events, how it ends, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compiler import extension, firing
from compiler.pipeline import compile_source, write
from compiler.plan.parts.action_texts import Firing
from tests.cli.support import status, tstorm
from tstorm.exit_codes import FAILED, OK, CommandError

S = 1_000_000_000
TDL = """\
seed 3
service c img=x
service d img=x replicas=3
bridges s t
link c--s latency=1ms up=10Mb down=20Mb loss=1%
link s--t latency=10ms jitter=3ms up=1Gb symmetric
link d--t latency=4ms jitter=4ms
at 2s c join and d.2 leave      # two statements on a line
at 5s d crash 1
at 10s partition c;t
at 20s heal
at 30s quit
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tdl").write_text(TDL, encoding="utf-8")
    return tmp_path


def told(*arguments: str, source: str = "a.tdl") -> dict[str, Any]:
    result = tstorm("explain", source, *arguments, "--format", "json")
    assert status(result) == OK, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def path(*more: str, source: str = "a.tdl") -> dict[str, Any]:
    return told("--from", "c", "--to", "d.0", *more, source=source)


PARALLEL = """\
service a
service b
bridge s
link a--s name=fast latency=1ms
link a--s name=slow latency=9ms
link b--s
at 5s fast leave
at 9s quit
"""


def test_links_between_the_same_two_have_their_names(folder: Path) -> None:
    (folder / "p.tdl").write_text(PARALLEL, encoding="utf-8")
    ends = ("--from", "a", "--to", "b", "--at")
    for at, link in (("4s", "fast"), ("6s", "slow")):
        found = told(*ends, at, source="p.tdl")
        assert found["there"]["hops"][0]["link"] == f"{link}:a.0->s"
        assert found["back"]["hops"][1]["link"] == f"{link}:s->a.0"
        rows = json.loads(tstorm("paths", "p.tdl", "--at", at, "--format", "json").stdout)
        assert [row["links"] for row in rows] == [
            [f"{link}:a.0->s", "s->b.0"],
            ["b.0->s", f"{link}:s->a.0"],
        ]
    event = tstorm("explain", "p.tdl", "--event", "2")
    assert "fast:a.0->s state=up -> down" in event.stdout


# --- paths ---------------------------------------------------------------------------------------


def test_fields_of_a_path(folder: Path) -> None:
    found = path("--at", "3s")
    assert set(found) == {
        "at_ns", "rtt_ns", "there", "back", "measured", "last_change", "next_change", "changes"
    }  # fmt: skip
    direction = {
        "src", "dst", "reachable", "rate_bps", "delay_ns", "jitter_ns", "loss_ppb", "hops",
        "obstacles",
    }  # fmt: skip
    assert set(found["there"]) == set(found["back"]) == direction
    assert [hop["link"] for hop in found["there"]["hops"]] == ["c.0->s", "s->t", "t->d.0"]
    assert found["there"]["hops"][1] == {
        "link": "s->t",
        "rate_bps": 10**9,
        "delay_ns": 10_000_000,
        "jitter_ns": 3_000_000,
        "loss_ppb": 0,
        "queue_bytes": 6_250_000,
        "distribution": "normal",
        "bottleneck": False,
        "total": {
            "rate_bps": 10**7,
            "delay_ns": 11_000_000,
            "jitter_ns": 3_000_000,
            "loss_ppb": 10_000_000,
        },
    }
    assert (found["there"]["jitter_ns"], found["back"]["rate_bps"]) == (5_000_000, 20_000_000)
    assert found["rtt_ns"] == 30_000_000


def test_the_time_is_the_first_that_both_are_there(folder: Path) -> None:
    found = path()
    assert found["at_ns"] == 2 * 10**9
    assert found["last_change"]["at_ns"] == 2 * 10**9
    (event,) = found["last_change"]["events"]
    assert (event["kind"], event["target"], event["line"]) == ("join", "c.0", 8)
    assert event["statement"].startswith("at 2s c join and d.2 leave")
    assert found["changes"] == {"until_now": 1, "all": 3}


def test_who_was_never_there_says_so(folder: Path) -> None:
    result = tstorm("explain", "a.tdl", "--from", "c", "--to", "d.0", "--at", "1s")
    assert (
        "  instance c.0 has not joined yet\n    until 2s\n    event 3: join c.0\n" in result.stdout
    )


def test_who_is_never_there_says_so(folder: Path) -> None:
    (folder / "n.tdl").write_text(
        "service a\nservice b\nlink a--b\nat 1s quit\nat 2s b join\n", encoding="utf-8"
    )
    result = tstorm("explain", "n.tdl", "--from", "a", "--to", "b")
    assert "a.0 -> b.0: unreachable\n  instance b.0 never joins\n\n" in result.stdout


def test_an_experiment_without_events_has_none_to_explain(folder: Path) -> None:
    (folder / "none.tdl").write_text("bridge s1\n", encoding="utf-8")
    result = tstorm("explain", "none.tdl", "--event", "0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the experiment has no events" in result.stderr


def test_changes_of_a_link_are_told_with_their_units(folder: Path) -> None:
    more = "at 25s s--t background 4Mb\nat 26s s--t set queue=64KiB\n"
    (folder / "b.tdl").write_text(TDL.replace("at 30s", more + "at 30s"), encoding="utf-8")
    events = {
        e["kind"]: e["seq"]
        for e in json.loads(tstorm("events", "b.tdl", "--format", "json").stdout)
    }
    load = tstorm("explain", "b.tdl", "--event", str(events["background"])).stdout
    assert "changed: t->s background=none -> 4Mb\n" in load
    queue = tstorm("explain", "b.tdl", "--event", str(events["set"])).stdout
    assert "set t->s queue=64KiB\n" in queue
    assert "changed: t->s queue=6250KB -> 64KiB\n" in queue


def test_a_partition_is_named_with_its_statement_and_its_end(folder: Path) -> None:
    found = path("--at", "12s")
    (obstacle,) = found["there"]["obstacles"]
    assert (obstacle["kind"], obstacle["state"]) == ("link", "down")
    assert obstacle["since"]["statement"] == "at 10s partition c;t"
    assert obstacle["until"]["statement"] == "at 20s heal"
    assert found["rtt_ns"] is None
    assert found["there"]["delay_ns"] is None


def test_text_of_a_path(folder: Path) -> None:
    result = tstorm("explain", "a.tdl", "--from", "d.0", "--to", "c.0", "--at", "11s")
    assert status(result) == OK
    assert (
        result.stdout
        == """\
d.0 to c.0 at 11s: round trip -

d.0 -> c.0: unreachable
  link t->s is down since 10s
    event 7: link_down t->s
      a.tdl:10: at 10s partition c;t
    until 20s
    event 9: link_up t->s
      a.tdl:11: at 20s heal

c.0 -> d.0: unreachable
  link s->t is down since 10s
    event 6: link_down s->t
      a.tdl:10: at 10s partition c;t
    until 20s
    event 8: link_up s->t
      a.tdl:11: at 20s heal

changed last at 10s, change 2 of 3
  event 6: link_down s->t
  event 7: link_down t->s
    a.tdl:10: at 10s partition c;t
changes next at 20s, change 3 of 3
  event 8: link_up s->t
  event 9: link_up t->s
    a.tdl:11: at 20s heal
"""
    )


def test_a_plan_and_a_run_give_the_same(folder: Path) -> None:
    (folder / "run").mkdir()
    assert tstorm("compile", "a.tdl", "-o", "run/plan").exit_code == 0
    (folder / "run" / "manifest.json").write_text("{}", encoding="utf-8")
    assert path(source="run/plan") == path(source="run") == path()
    text = tstorm("explain", "run", "--from", "c", "--to", "d.0").stdout
    assert "run/plan/source.tdl:8: at 2s c join and" in text
    assert told("--event", "5", source="run") == told("--event", "5")


# --- events --------------------------------------------------------------------------------------


def test_fields_of_an_event(folder: Path) -> None:
    found = told("--event", "5")
    assert found["event"]["kind"] == "crash"
    assert found["event"]["statement"] == "at 5s d crash 1"
    assert found["span"] == {"line": 9, "col": 1, "end_line": 9, "end_col": 16}
    assert found["identity"] == {"text": "at 5s d crash 1", "ordinal": 0}
    assert len(found["key"]) == 64
    assert found["moment"] is None
    (sample,) = found["samples"]
    assert (sample["candidates"], sample["legal"], sample["legal_are"]) == (3, 2, "joined")
    assert sample["picks"][-1]["candidate"] == found["event"]["target"]
    assert sample["picks"][-1]["outcome"] == "taken"
    assert found["target"] == {"before": {"state": "up"}, "after": {"state": "down"}}
    assert (found["events_at_this_instant"], found["pairs"]) == (1, 12)
    lost = found["paths"]["lost"]
    assert (lost["count"], len(lost["examples"])) == (4, 4)
    assert [found["paths"][kind]["count"] for kind in sorted(found["paths"])] == [0, 4, 0, 0]


def test_who_has_asked_for_an_event_of_a_run_that_was_changed(folder: Path) -> None:
    text = TDL + 'when log c "x" every { it disconnect for 500ms }\n'
    plan = extension.extend(compile_source(text).plan, 1, "s--t set latency=5ms", 3 * S).plan
    found, _ = firing.fire(plan, firing.statements(plan)[0], "c.0", Firing(1, 1), 2, 4 * S)
    write(found, folder / "run.plan")
    by = {event.file: event.seq for event in found.events}
    origins = [told("--event", str(seq), source="run.plan")["origin"] for seq in by.values()]
    assert dict(zip(by, origins, strict=True)) == {
        "": {"by": "plan"},
        "do@1": {"by": "manual", "action": 1},
        "do@2.1.1": {"by": "condition", "action": 2, "reaction": 1, "firing": 1},
    }
    said = [tstorm("explain", "run.plan", "--event", str(seq)).stdout for seq in by.values()]
    assert "while the run went on" not in said[0]
    assert "done while the run went on: action 1, by hand\n" in said[1]
    assert (
        "done while the run went on: action 2, by `when` 1 of the text, its firing 1\n" in said[2]
    )


def test_the_caret_is_under_the_statement(folder: Path) -> None:
    lines = tstorm("explain", "a.tdl", "--event", "4").stdout.splitlines()
    assert lines[:4] == [
        "event 4 at 2s: leave d.2",
        "a.tdl:8:18",
        " 8 | at 2s c join and d.2 leave      # two statements on a line",
        "   |                  ^^^^^^^^^",
    ]


def test_an_event_that_nobody_wrote(folder: Path) -> None:
    found = told("--event", "0")
    assert (found["span"], found["key"], found["samples"]) == (None, None, [])
    assert found["event"]["statement"] == ""
    assert "not written" in tstorm("explain", "a.tdl", "--event", "0").stdout


def test_numbers_of_one_are_told_as_one(folder: Path) -> None:
    churn = "from 3s to 4s c churn 1 replace 100%\nat 5s d crash 1\n"
    (folder / "b.tdl").write_text(TDL.replace("at 5s d crash 1\n", churn), encoding="utf-8")
    said = [tstorm("explain", "b.tdl", "--event", str(seq)).stdout for seq in (5, 6, 7)]
    assert "paths, with the other event of this instant: 0 of 12 pairs changed\n" in said[0]
    assert "among 1 candidate, c.0, of which 1 is joined\n" in said[1]
    assert "among 3 candidates, d.0 to d.2, of which 2 are joined\n" in said[2]


def test_what_is_hit_without_a_draw(folder: Path) -> None:
    said = {seq: tstorm("explain", "a.tdl", "--event", str(seq)).stdout for seq in range(3, 10)}
    assert "target: c.0, without a draw: all that the statement can apply to\n" in said[3]
    assert "target: s->t, without a draw: a link of the cut between the groups\n" in said[6]
    assert "target: s->t, without a draw: a link that a partition cut\n" in said[8]


def test_the_quit_has_no_target(folder: Path) -> None:
    found = told("--event", "10")
    assert found["target"] == {"before": {}, "after": {}}
    text = tstorm("explain", "a.tdl", "--event", "10").stdout
    assert "target:" not in text
    assert "the experiment ends at this instant" in text


def test_a_seed_draws_again(folder: Path) -> None:
    found = {told("--event", "5", "--seed", str(n))["event"]["target"] for n in range(12)}
    assert found == {"d.0", "d.1"}


# --- what is expected ----------------------------------------------------------------------------

EXPECTED = """\
expect rtt c d.0 < 20ms from 3s to 5s
expect rtt c d.0 < 40ms from 3s to 5s
expect rtt c d.* < 40ms from 3s to 20s
expect unreachable d.0 c from 10s to 20s
expect throughput d.0 c > 50% of plan at 3s within 1s
expect log c;d "up" within 3s
expect run "true" ok on c at 6s
expect exit c 0
expect valid
"""


def expected(folder: Path) -> Any:
    (folder / "e.tdl").write_text(TDL.replace("img=x", "exec=x") + EXPECTED, encoding="utf-8")
    return told("--expect", source="e.tdl")["expectations"]


def test_what_is_planned_for_expectations(folder: Path) -> None:
    found = expected(folder)
    assert [one["text"] for one in found] == EXPECTED.replace("d.*", "d").replace(
        "at 3s within 1s", "within 1s after 3s"
    ).splitlines()
    planned = found[0]["planned"]
    assert (planned["low"], planned["high"], planned["unit"]) == (30_000_000, 30_000_000, "ns")
    assert "30ms between 3s and 5s, and < 20ms is expected" in planned["cannot_hold"]
    assert found[1]["planned"]["cannot_hold"] == ""
    assert found[2]["pairs"]["count"] == 2, "d.2 has left"
    assert found[2]["planned"]["without_path"] is True
    assert (found[3]["planned"]["path"], found[3]["planned"]["without_path"]) == (False, True)
    assert found[4]["planned"]["figure"] == 20_000_000
    assert [one["planned"] for one in found[5:]] == [None] * 4
    assert found[5]["instances"] == ["c.0", "d.0", "d.1", "d.2"]


def test_expectations_as_text(folder: Path) -> None:
    expected(folder)
    said = tstorm("explain", "e.tdl", "--expect").stdout.split("\n\n")
    assert said[0] == "9 expectations"
    assert said[1].splitlines()[1:-1] == [
        "  e.tdl:13",
        "  of: c.0 -> d.0",
        "  when: all the time from 3s to 5s",
        "  planned: round trip 30ms",
    ]
    assert "\n  cannot hold: by the plan the round trip from c.0 to d.0 is 30ms" in said[1]
    assert "\n  planned: no path" in said[4]
    assert "\n  of: any of c.0, d.0, d.1 … and 1 more\n  when: once between 0s and 3s" in said[6]
    assert "\n  of: the command, run in c.0\n  when: at 6s" in said[7]
    assert "\n  of: the verdict of the run\n  when: the whole run" in said[9]
    assert tstorm("explain", "a.tdl", "--expect").stdout == "0 expectations\n"


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --from A and --to B, --event K or --expect"),
        (("--from", "c"), "give --from A and --to B, --event K or --expect"),
        (("--event", "1", "--at", "1s"), "--event goes without --from, --to, --at and --flow"),
        (("--from", "c", "--to", "d"), "service 'd' has 3 instances; name one of them, such as"),
        (("--from", "c", "--to", "d.7"), "no service or instance 'd.7'. Did you mean 'd.0'?"),
        (("--from", "c", "--to", "s"), "'s' is a bridge"),
        (("--from", "c", "--to", "c.0"), "'c.0' has no path to itself"),
        (("--from", "c", "--to", "d.0", "--at", "31s"), "the experiment ends at 30s"),
        (("--from", "c", "--to", "d.0", "--at", "31"), "has no unit"),
        (
            ("--expect", "--event", "1"),
            "--expect goes without --from, --to, --at, --flow and --event",
        ),
        (("--event", "11"), "the last event is 10"),
        (("--event", "-1"), "-1 is not in the range"),
    ],
)
def test_wrong_usage(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    result = tstorm("explain", "a.tdl", *arguments)
    assert (status(result), result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("name", ["routes.bin", "snapshots.jsonl", "timeline.jsonl", "source.tdl"])
def test_a_damaged_plan_is_refused(folder: Path, name: str) -> None:
    assert tstorm("compile", "a.tdl", "-o", "a.plan").exit_code == 0
    file = folder / "a.plan" / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    result = tstorm("explain", "a.plan", "--from", "c", "--to", "d.0")
    assert isinstance(result.exception, CommandError)
    assert (status(result), result.stdout) == (FAILED, "")
    assert name in result.exception.message


def test_a_plan_of_another_source_is_refused(folder: Path) -> None:
    """Consistent in itself, but its source gives other events: nothing is told about draws."""
    from compiler.pipeline import compile_source
    from compiler.plan.routes.routing import snapshots
    from compiler.plan.writer import PlanContents, encode, write_plan

    plan = compile_source(TDL).plan
    changes = snapshots(plan.topology, plan.events)
    source = TDL.replace("at 20s heal", "at 21s heal").encode()
    other = PlanContents(source, plan.seed, plan.topology, plan.events, plan.end_ns, changes)
    write_plan(folder / "odd.plan", encode(other))
    result = tstorm("explain", "odd.plan", "--event", "5")
    assert isinstance(result.exception, CommandError)
    assert "gives other events than the plan has, from event 8 on" in result.exception.message
    assert result.stdout == ""
    assert path(source="odd.plan")["rtt_ns"] == 30_000_000  # what the plan says is still told


def test_what_programs_of_routers_decide_is_not_said_to_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.tdl"
    path.write_text(
        "service a\nservice b\nservice r router\naddresses auto\nlink a--r\nlink b--r\n"
        "at 2s b--r leave\nat 3s quit\n"
    )
    said = tstorm("explain", str(path), "--from", "a", "--to", "b").stdout
    assert "never" not in said
    assert "changes: programs decide" in said
