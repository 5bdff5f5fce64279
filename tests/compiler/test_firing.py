"""What a `when` does once it has happened, as a longer plan (compiler/firing.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from compiler import extension, firing
from compiler.analysis.topology_diff import compare_topologies
from compiler.extension import extend
from compiler.origin import explain_event
from compiler.pipeline import compile_source
from compiler.plan.parts.action_texts import Firing, firing_of, have_fired, name_of, number_of
from compiler.plan.parts.planned_reactions import are_waited_for
from compiler.plan.reader import Plan, decode
from compiler.plan.rules import capabilities
from compiler.plan.rules.datapath_fit import misfit
from tdl.diagnostics import TdlError
from tstorm.live.answers import answered
from tstorm.live.steer import ActionError, Done

S = 1_000_000_000
TEXT = """\
seed 5
service db exec=x replicas=4
service c exec=y
bridges s1 s2
link db--s1 latency=1ms
link c--s2 latency=1ms
link s1--s2 latency=10ms
at 20s db.3 leave
when log db.* "became leader" every at most 3 {
    it disconnect for 5s
    at +2s it--s1 set latency=50ms
    partition it;c
}
when exit db with 3 {
    db crash 1
}
at 60s quit
"""


@cache
def planned() -> Plan:
    return compile_source(TEXT).plan


def fired(plan: Plan, reaction: int, instance: str, time: int, at_ns: int) -> Plan:
    when, number = firing.statements(plan)[reaction - 1], 1
    number += max(map(number_of, plan.attached.includes), default=0)
    found, _ = firing.fire(plan, when, instance, Firing(reaction, time), number, at_ns)
    return found.plan


def own(plan: Plan, name: str) -> list[tuple[int, str, str]]:
    return [(e.at_ns, e.kind, e.target) for e in plan.events if e.file == name]


def test_it_is_the_instance_and_times_count_from_the_firing() -> None:
    plan = fired(planned(), 1, "db.2", 1, 7 * S + 3)
    found = own(plan, "do@1.1.1")
    assert found[0] == (7 * S + 3, "disconnect", "db.2")
    assert (9 * S + 3, "set", "db.2->s1") in found
    assert (12 * S + 3, "reconnect", "db.2") in found
    before = [event for event in plan.events if event.at_ns < 7 * S]
    assert before == [event for event in planned().events if event.at_ns < 7 * S]
    assert plan.topology == planned().topology


def test_what_it_draws_depends_on_the_statement_and_how_often_it_has_happened() -> None:
    """And not on when that was, on other actions, or on other lines of the text."""

    def drawn(plan: Plan, time: int, at_ns: int) -> str:
        after = fired(plan, 2, "db.0", time, at_ns)
        (event,) = [e for e in after.events if firing_of(e.file) == (2, time)]
        return event.target

    text = TEXT.replace("at 20s db.3 leave\n", "")
    plan = compile_source(text).plan
    first = [drawn(plan, time, 5 * S) for time in range(1, 10)]
    assert len(set(first)) > 1
    assert first == [drawn(plan, time, 9 * S + 77) for time in range(1, 10)]
    other = fired(plan, 1, "db.0", 1, 2 * S)
    assert first == [drawn(other, time, 5 * S) for time in range(1, 10)]
    more = compile_source(text.replace("at 60s", "at 1s c--s2 set loss=1%\nat 60s")).plan
    assert first == [drawn(more, time, 5 * S) for time in range(1, 10)]
    seeded = compile_source(text.replace("seed 5", "seed 6")).plan
    assert first != [drawn(seeded, time, 5 * S) for time in range(1, 10)]


def test_what_is_not_possible_then_is_refused_whole() -> None:
    with pytest.raises(TdlError) as caught:
        fired(planned(), 1, "db.3", 1, 30 * S)  # it has left
    assert "db.3" in str(caught.value)
    with pytest.raises(TdlError):
        fired(planned(), 1, "db.0", 1, 58 * S)  # it would be back after the end


def test_a_plan_in_which_it_has_happened_waits_for_nothing_more() -> None:
    plan = fired(planned(), 1, "db.0", 1, 7 * S)
    assert (are_waited_for(planned()), are_waited_for(plan)) == (True, False)
    assert not are_waited_for(compile_source("bridge s1\n").plan)
    again = decode({name: plan.raw(name) for name in plan.names}, lazy=False)
    assert again.topology.reactions == planned().topology.reactions


def test_a_reaction_may_end_the_experiment() -> None:
    text = TEXT.replace("at 60s quit", "when ready c { at +1s quit }")
    plan = fired(compile_source(text).plan, 3, "c.0", 1, 25 * S)
    assert (plan.end_ns, plan.events[-1].kind) == (26 * S, "quit")


def test_names_of_actions() -> None:
    assert name_of(7, Firing(2, 3)) == "do@7.2.3"
    assert (number_of("do@7.2.3"), firing_of("do@7.2.3")) == (7, Firing(2, 3))
    assert (number_of("do@7"), firing_of("do@7")) == (7, None)
    assert have_fired(["do@1", "do@2.1.1"])
    assert not have_fired(["do@1", "x.tdl"])


def test_each_event_has_its_story() -> None:
    plan = fired(planned(), 2, "db.0", 4, 5 * S)
    (number,) = [e.seq for e in plan.events if e.file == "do@1.2.4"]
    story = explain_event(plan, number)
    assert story.origin.identity is not None
    assert story.origin.identity.text.startswith("firing 4 of when exit db with 3 {")


def test_two_plans_differ_in_their_reactions() -> None:
    other = compile_source(TEXT.replace("at most 3", "at most 4")).plan
    found = [one for one in compare_topologies(planned(), other) if one.kind == "when"]
    assert [(bool(one.a), bool(one.b)) for one in found] == [(True, False), (False, True)]


def test_who_cannot_react_says_so_with_the_line() -> None:
    assert misfit(planned(), "user") is None, "agents take what it does"
    found = capabilities.to_blame(planned(), capabilities.COMPOSE)
    assert found is not None
    assert (found.what, found.line) == ("when", 9)
    assert "when" in capabilities.refusal(planned(), capabilities.COMPOSE)
    for way in (capabilities.KUBERNETES, capabilities.LOCAL):
        assert capabilities.refusal(planned(), way) == ""
    of_files = compile_source(TEXT + 'when file db "data/epoch" { db.0 crash }\n').plan
    assert "when file (of service db, which has no e" in capabilities.refusal(of_files, "k8s")
    held = "img=i entrypoint=['/bin/db']"
    for more, said in (
        (held, "when file (of service db, which has no cwd=)"),
        (f"{held} cwd=/d", ""),
    ):
        service = TEXT.replace("service db exec=x", f"service db {more}", 1)
        plan = compile_source(service + 'when file db "data/epoch" { db.0 crash }\n').plan
        assert said in capabilities.refusal(plan, capabilities.KUBERNETES)
        assert bool(said) == bool(capabilities.refusal(plan, capabilities.KUBERNETES))
    assert capabilities.refusal(of_files, capabilities.LOCAL) == ""


def test_a_loop_makes_several_with_its_values_in_them() -> None:
    text = TEXT + "for i in 0..1 { when ready db.$i { db.$i--s1 set loss=$i% } }\n"
    plan = compile_source(text).plan
    texts = [one.text for one in plan.topology.reactions]
    assert texts[2:] == [
        "when ready db.0 {\n    db.0--s1 set loss=0%\n}",
        "when ready db.1 {\n    db.1--s1 set loss=1%\n}",
    ]


def test_what_an_action_was_warned_of_is_no_reason_against_a_later_one() -> None:
    text = TEXT.replace("it disconnect for 5s\n", "")
    plan = compile_source(text.replace("partition it;c", "c--s2 set latency=1ms")).plan
    for time in (1, 2, 3):  # of which the last changes nothing
        plan = fired(plan, 1, "db.2", time, 7 * S + time)
    with pytest.raises(TdlError) as error:
        fired(plan, 1, "db.9", 4, 21 * S)
    assert {one.span.file for one in error.value.diagnostics} == {"do@4.1.4"}
    with pytest.raises(TdlError) as error:
        extend(plan, 4, "c--s2 set latency=1ms\ndb.9 crash", 21 * S)
    refused = ActionError(error.value.diagnostics, plan, "do@4")
    answer = answered(_refusing(refused))
    assert answer.record["code"] == answer.record["diagnostics"][0]["code"] != "TS0911"
    assert {one.span.file for one in refused.diagnostics} == {"do@4"}
    assert "nothing changes" not in str(refused)


def _refusing(error: ActionError) -> Callable[[], Done]:
    def act() -> Done:
        raise error

    return act


def test_what_was_parsed_for_the_firing_before_makes_no_other_plan() -> None:
    """Also where something was done by hand between two of them."""
    text = "service db replicas=2 img=x\nbridge s1\nlink db--s1 latency=1ms\n"
    text += 'when log db "lead" every { it disconnect for 500ms }\nat 300s quit\n'
    plan = compile_source(text).plan
    when = firing.statements(plan)[0]
    for number in range(1, 6):
        at_ns = number * 1_000_000_000
        if number == 3:
            plan = extension.extend(plan, number, "db.1--s1 set loss=1%", at_ns).plan
            continue
        kept = firing.fire(plan, when, "db.0", Firing(1, number), number, at_ns)[0]
        extension._PARSED.clear()
        anew = firing.fire(plan, when, "db.0", Firing(1, number), number, at_ns)[0]
        assert kept.files == anew.files
        assert kept.diagnostics == anew.diagnostics
        plan = anew.plan
