"""What was done by hand as a text (tstorm/live/recording.py)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from compiler import extension
from compiler.extension import extend
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from compiler.sources import SourceFolder
from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.runfiles import EVENTS
from tdl.diagnostics import TdlError
from tstorm.live import recording

S, MS = 1_000_000_000, 1_000_000
TEXT = """\
param slow = 30ms
service server replicas=4
service client replicas=2
service db
bridges s1 s2
link server--s1 latency=1ms
link client--s2 latency=1ms
link db--s2 latency=1ms
link s1--s2 latency=10ms rate=10Mb
from 3s to 9s s1--s2 flap 700ms
at 12s client churn 10%
from 15s to 20s s1--s2 set latency=$slow
at 25s partition server;db
at 30s heal
at 60s quit
"""
PLANNED = TEXT.replace("at 12s client churn 10%\n", "")
MADE = (
    "server crash 1",
    "server crash 50%",
    "server join 1",
    "server restart 1",
    "client disconnect 1",
    "client reconnect 1",
    "at +700ms server leave 1",
    "from now to +3s server crash 2",
    "from now to +4s server.3--s1 leave",
    "from +100ms to +2s client;server churn 40%",
    "s1--s2 set latency=100ms loss=3% jitter=2ms",
    "s1->s2 set rate=5Mb queue=20",
    "from now to +5s db--s2 set latency=+=5ms",
    "s1--s2 background 2Mb",
    "partition server;client",
    "heal",
    "db pause for 500ms",
    "server.1 kill",
    "from now to +2s s1--s2 flap 300ms",
    "from now to +4s s1--s2 ramp latency=80ms every 500ms",
    "for i in 0..2 {\n  client crash 1\n}",
    "s1 leave\nat +1s s1 join",
    "for d in 10;20 {\n  at +${d}ms s1--s2 set latency=${d}ms\n}",
)


def apart(plan: Plan, now_ns: int) -> int:
    """A moment at which nothing else happens."""
    taken = {event.at_ns for event in plan.events}
    while now_ns in taken:
        now_ns += MS
    return now_ns


def moved(plan: Plan, number: int, now_ns: int, draw: random.Random) -> Plan:
    now_ns = apart(plan, now_ns)
    what = draw.choice(("hold", "go", "skip", "next"))
    if what == "hold":
        return extension.hold(plan, number, now_ns).plan
    if what == "go":
        return extension.go(plan, number, now_ns).plan
    to_ns = None if what == "next" else now_ns + draw.randrange(500, 8000) * MS
    return extension.skip(plan, number, to_ns, now_ns).plan


def steered(plan: Plan, seed: int, most: int = 12, *, moves: bool = False) -> tuple[Plan, int]:
    """With random actions at random moments, those that the state permits; and how many these
    were. `moves`: also with events that are held and skipped, which go on in the end."""
    draw = random.Random(seed)
    now_ns = number = 0
    for _ in range(3 * most):
        now_ns += draw.randrange(1, 4000) * MS
        if now_ns >= 55 * S or number == most:
            break
        text = "\n".join(draw.sample(MADE, draw.choice((1, 1, 2))))
        try:
            if moves and draw.random() < 0.5:
                plan = moved(plan, number + 1, now_ns, draw)
            else:
                plan = extend(plan, number + 1, text, now_ns).plan
        except (TdlError, extension.NotNowError):
            continue
        number += 1
    if extension.is_held(plan):
        plan, number = extension.go(plan, number + 1, now_ns + S).plan, number + 1
    return plan, number


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_random_actions_give_the_same_events_as_a_text(
    seed: int, tmp_path: Path, *, moves: bool
) -> None:
    plan, number = steered(compile_source(PLANNED, seed=seed).plan, seed, moves=moves)
    assert number >= 3
    text = recording.text_of(plan, tmp_path)
    made = compile_source(text, sources=SourceFolder(tmp_path)).plan
    assert "do@" not in text
    assert made.seed == seed
    assert [(e.at_ns, e.kind, e.target, e.args) for e in made.events] == [
        (e.at_ns, e.kind, e.target, e.args) for e in plan.events
    ]
    assert [(one.at_ns, one.nodes, one.links) for one in made.epochs] == [
        (one.at_ns, one.nodes, one.links) for one in plan.epochs
    ]
    assert made.end_ns == plan.end_ns


def test_what_was_planned_without_a_join_stays_there_at_first(tmp_path: Path) -> None:
    plan = compile_source(PLANNED).plan
    plan = extend(plan, 1, "crash 7", S).plan  # names nobody
    plan = extend(plan, 2, "server join 1", 2 * S).plan
    text = recording.text_of(plan, tmp_path)
    assert recording.difference(plan, text, tmp_path) == ""


def test_values_of_parameters_are_those_of_the_run(tmp_path: Path) -> None:
    plan = compile_source(PLANNED, params={"slow": "45ms"}).plan
    text = recording.text_of(extend(plan, 1, "server crash 1", S).plan, tmp_path)
    assert 'param slow = "45ms"' in text


def test_a_text_that_is_not_the_same_is_not_written(tmp_path: Path) -> None:
    source = PLANNED + 'include "more.tdl"\n'
    (tmp_path / "more.tdl").write_text("at 40s server.0 crash\n", encoding="utf-8")
    plan = compile_source(source, sources=SourceFolder(tmp_path)).plan
    longer = extend(plan, 1, "server.1 crash", S).plan
    assert recording.text_of(longer, tmp_path)
    (tmp_path / "more.tdl").write_text("at 41s server.0 crash\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"40s crash server\.0"):
        recording.text_of(longer, tmp_path)


def test_what_a_killed_run_did_and_its_plan_lacks_is_said(tmp_path: Path) -> None:
    plan = extend(compile_source(PLANNED).plan, 1, "server.0 crash", S).plan
    lines: list[dict[str, object]] = [
        {"kind": "do", "action": 1},
        {"kind": "when", "action": 2, "refused": "the run is ending"},
        {"kind": "crash", "action": 1},
    ]

    def check() -> None:
        text = "".join(f"{json.dumps(one)}\n" for one in lines)
        (tmp_path / EVENTS).write_text(text, encoding="utf-8")
        recording.check_all_there(HeldDirectory.hold(tmp_path.resolve()), plan)

    check()
    lines += [{"kind": "do", "action": 2}, {"kind": "when", "action": 3}]
    with pytest.raises(RunError, match="action 2 and 1 more"):
        check()


def test_what_is_skipped_together_with_the_end_is_there(tmp_path: Path) -> None:
    plan = extension.skip(compile_source(PLANNED).plan, 1, 100 * S, S).plan
    assert plan.end_ns == S
    assert recording.text_of(plan, tmp_path).endswith("at 1s quit\n")


PLACED = {
    "machines": "node sat {\n    service app\n}\nbridge s\nservice a\nlink sat.app--s\nlink a--s\n",
    "routers": "service r router\nservice a\nlink a--r address=10.0.0.1/24--10.0.0.2/24\n",
    "interfaces": "service a interfaces\nbridge s\nservice b\nlink a--s\nlink b--s\n",
    "hops": "hops answer\nservice a\nbridge s\nservice b\nlink a--s\nlink b--s\n",
}


@pytest.mark.parametrize("kind", PLACED)
def test_lines_in_front_make_no_other_network(kind: str, tmp_path: Path) -> None:
    """The seed, which the text does not say, comes before what has its line in the plan."""
    plan = compile_source(PLACED[kind] + "at 9s quit\n", seed=7).plan
    text = recording.text_of(extend(plan, 1, "a crash 1", S).plan, tmp_path)
    assert "seed 7\n" in text


DRIVEN = """\
service a img=x
bridge s
link a--s
at 2s a crash
at 20s quit
expect drivers a
"""


def test_where_checks_begin_is_not_moved_by_what_is_done(tmp_path: Path) -> None:
    plan = compile_source(DRIVEN).plan
    assert [one.to_ns for one in plan.expectations] == [11 * S]
    longer = extend(plan, 1, "a--s set latency=5ms", 9 * S).plan
    assert [one.to_ns for one in longer.expectations] == [11 * S]
    with pytest.raises(TdlError, match="checks begin at 11s, and faults would go on"):
        extend(longer, 2, "a--s set latency=9ms", 12 * S)
    with pytest.raises(
        RunError, match="checks of an `expect drivers` without `to` begin elsewhere"
    ):
        recording.text_of(longer, tmp_path)
    stated = compile_source(DRIVEN.replace("drivers a", "drivers a to 11s")).plan
    done = extend(stated, 1, "a--s set latency=5ms", 9 * S).plan
    assert "to 11s" in recording.text_of(done, tmp_path)
