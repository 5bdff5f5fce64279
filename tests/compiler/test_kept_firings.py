"""What is kept from one firing to the next makes no other plan (compiler/kept_firings.py)."""

from __future__ import annotations

import random

import pytest

from compiler import firing
from compiler.extension import extend
from compiler.kept_firings import KeptFirings
from compiler.kept_walk import NotKeptError
from compiler.pipeline import Compilation, compile_source
from compiler.plan.parts.action_texts import Firing
from compiler.plan.reader import Plan, decode
from compiler.sources import RecordedFiles
from tdl.diagnostics import TdlError

MS, S = 1_000_000, 1_000_000_000
TEXT = """\
seed 5
service db exec=x replicas=4
service c exec=y replicas=2
bridges s1 s2 s3
link db--s1 latency=1ms up=1Gb symmetric
link c--s2 latency=1ms
link s1--s2 latency=10ms
link s1--s3 latency=1ms
link s3--s2 latency=2ms
at 1s db.3 leave
"""
WHENS = """\
when log db.* "a" every { it disconnect for 500ms }
when log db.* "b" every { it--s1 set latency=50ms; at +200ms it--s1 set latency=1ms loss=1% }
when log db.* "c" every { partition it;c; at +300ms heal }
when log db.* "d" every { db crash 1; at +100ms db join 1 }
when log c.* "e" every { s1--s2 flap 50ms for 200ms }
when log c.* "f" every { it crash; at +1s it join }
when log db.* "g" every { from +0s to +400ms it--s1 leave }
when log db.* "h" every { it pause for 200ms }
when log db.* "i" every { s1--s2 leave; at +300ms s1--s2 join }
when log db.* "j" every { db.3 crash }
when log db.* "k" every { from +0s to +600ms s1--s3 ramp latency=9ms every 100ms }
"""
ENDS = {
    "a quit": "at 900s quit\n",
    "no quit": "",
    "expectations": (
        "at 900s quit\nexpect rtt c.0 db.0 < 900ms from 880s to 890s\nexpect exit db 0\n"
    ),
    "other metric": "routing hops\nat 900s quit\n",
    "much to come": (
        "service g exec=z\nlink g--s3 latency=2ms up=9Mb symmetric\nservice p exec=z\n"
        "link p--s2\nservice m exec=z replicas=3\nlink m--s1\n"
        + "\n".join(
            f"at {at + 1}s s1--s2 set latency={at % 7 + 3}ms\n"
            f"from {at + 2}s to {at + 9}s s1--s3 set loss={at % 9 + 1}%\n"
            f"from {at + 3}s to {at + 6}s s3--s2 flap 700ms\n"
            f"from {at + 4}s to {at + 5}s g--s3 background 2Mb\n"
            f"from {at + 5}s to {at + 9}s m leave 1\nat {at + 10}s m join\n"
            f"from {at + 6}s to {at + 8}s db.2 disconnect\nat {at + 7}s p restart after 900ms\n"
            f"from {at + 11}s to {at + 12}s partition g;p\nat {at + 13}s c crash 1\n"
            f"from {at + 14}s to {at + 17}s s1--s2 set loss=3% for 1s..2s\n"
            f"at {at + 18}s c join 1\n"
            for at in range(2, 100, 20)
        )
        + "at 900s quit\n"
    ),
    "under way": (
        "from 4s to 9s s1--s3 ramp latency=9ms every 500ms\nfrom 12s to 22s db crash 1\n"
        "from 25s to 30s c.0 set drift=100ppm\nat 40s s1--s3 set latency=3ms\nat 900s quit\n"
    ),
}
LEAST = {"no quit": 0, "under way": 1}  # kinds of firings


def written(text: str) -> str:
    """`;` between statements of a body, one a line."""
    return text.replace("{ ", "{\n").replace("; at", "\nat").replace(" }", "\n}")


def of(plan: Plan) -> Compilation:
    sources = RecordedFiles(plan)
    return compile_source(
        plan.source, seed=plan.seed, sources=sources, params=plan.params, doubts=False
    )


def files_of(plan: Plan) -> dict[str, bytes]:
    return {name: plan.raw(name) for name in plan.names}


@pytest.mark.parametrize("end", sorted(ENDS))
def test_it_is_to_the_byte_what_compiling_all_of_it_gives(end: str) -> None:
    """Of any actions at any moments, where the one before is over and where it is not."""
    text = TEXT + written(WHENS) + ENDS[end]
    plan = compile_source(text).plan
    whens, draws = firing.statements(plan), random.Random(end)
    kept, now_ns, fired, by_what_is_kept = None, 2 * S, [0] * len(whens), set[int]()
    for number in range(1, 26):
        now_ns += draws.choice((100 * MS, 1100 * MS, 2 * S + draws.randrange(S)))
        reaction = draws.randrange(len(whens))
        instance = draws.choice(("c.0", "c.1") if reaction in (4, 5) else ("db.0", "db.1", "db.2"))
        asked = (whens[reaction], instance, Firing(reaction + 1, fired[reaction] + 1))
        try:
            whole, said = firing.fire(plan, *asked, number, now_ns)
        except TdlError:  # it is not possible then
            if kept is not None:
                with pytest.raises(NotKeptError):
                    kept.fire(*asked, number, now_ns)
                kept = None
            continue
        found = None
        if kept is not None:
            try:
                found = kept.fire(*asked, number, now_ns)
            except NotKeptError:
                kept = None
        if found is not None:
            files, longer, text_ = found
            assert dict(files) == dict(whole.files), (end, number, text_)
            assert (longer.digest, text_) == (whole.plan.digest, said)
            assert (longer.events, longer.epochs) == (whole.plan.events, whole.plan.epochs)
            by_what_is_kept.add(reaction)
            plan = longer if draws.random() < 0.7 else whole.plan
        else:
            plan = whole.plan
            kept = KeptFirings(plan, whole.model, now_ns)
        fired[reaction] += 1
    assert len(by_what_is_kept) > LEAST.get(end, 2)
    decode(files_of(whole.plan), lazy=False)


def test_what_is_over_and_what_is_under_way_is_left_to_the_compiler() -> None:
    ramp = "from 30s to 40s s1--s2 ramp latency=20ms every 1s\n"
    plan = compile_source(TEXT + written(WHENS) + ramp + "at 900s quit\n").plan
    model = of(plan).model
    when = firing.statements(plan)[0]
    kept = KeptFirings(plan, model, 10 * S)
    assert not kept.takes(9 * S), "the walk is past it"
    assert not kept.takes(900 * S), "that is the end"
    kept.fire(when, "db.0", Firing(1, 1), 1, 29 * S)  # the ramp is still to come
    assert not kept.takes(28 * S)
    with pytest.raises(NotKeptError):
        kept.fire(when, "db.1", Firing(1, 2), 2, 31 * S)
    kept = KeptFirings(plan, model, 40 * S)
    assert kept.fire(when, "db.1", Firing(1, 1), 1, 41 * S)


def test_firings_that_make_a_planned_join_need_others_are_left_to_the_compiler() -> None:
    """Without replicas= a join raises the number of instances, by how many are there then."""
    text = TEXT.replace("replicas=4", "").replace("db.3 leave", "c.1 leave")
    text += "at 1s db join 2\nat 50s db join 3\nat 900s quit\n"
    text += written('when log c.* "x" { db crash 1 }\n')
    plan = compile_source(text).plan
    asked = (firing.statements(plan)[0], "c.0", Firing(1, 1), 1, 9 * S)
    with pytest.raises(TdlError, match=r"does not have|would have been"):
        firing.fire(plan, *asked)
    with pytest.raises(NotKeptError):
        KeptFirings(plan, of(plan).model, 5 * S).fire(*asked)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("seed 5", "seed 5\nrouting ecmp"),
        "node m {\n    service x img=a\n}\nbridge s\nlink m.x--s\n",
    ],
)
def test_what_it_does_not_know_is_left_to_the_compiler(text: str) -> None:
    found = compile_source(text + "at 900s quit\n")
    with pytest.raises(NotKeptError):
        KeptFirings(found.plan, found.model, 1)


def test_after_an_action_by_hand_it_goes_on_where_nothing_waits() -> None:
    plan = compile_source(TEXT + written(WHENS) + "at 900s quit\n").plan
    by_hand = extend(plan, 1, "c--s2 set latency=7ms", 5 * S)
    when = firing.statements(plan)[0]
    asked = (when, "db.0", Firing(1, 1), 2, 9 * S)
    files, _, _ = KeptFirings(by_hand.plan, by_hand.model, 5 * S).fire(*asked)
    assert dict(files) == dict(firing.fire(by_hand.plan, *asked)[0].files)
    held = compile_source(by_hand.plan.source, sources=RecordedFiles(by_hand.plan))
    assert held.plan.digest == by_hand.plan.digest


def test_who_has_no_place_in_the_run_is_drawn_by_no_firing() -> None:
    text = TEXT + "service w exec=z replicas=5\nlink w--s3\nat 0s w join 2\nat 900s quit\n"
    text += written('when log c.* "x" every { w.1 leave; at +100ms w join 1 }\n')
    plan = compile_source(text).plan
    when, kept = firing.statements(plan)[0], KeptFirings(plan, of(plan).model, 5 * S)
    for number in (1, 2):
        asked = (when, "c.0", Firing(1, number), number, 9 * number * S)
        files, longer, _ = kept.fire(*asked)
        assert dict(files) == dict(firing.fire(plan, *asked)[0].files)
        plan = longer
    drawn = [one.target for one in plan.events if one.kind == "join" and one.file]
    assert drawn == ["w.1", "w.1"]
