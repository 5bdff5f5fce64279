"""Sources compared: a statement more adds exactly its own events, wherever it stands."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.analysis.plan_diff import compare_plans
from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from tdl.diagnostics import TdlError
from tests.compiler.files import files

NET = """\
service a replicas=5
service b replicas=3
bridges s1 s2
link a--s1 latency=1
link b--s2 latency=1
link s1--s2 latency=10
at 1s a crash 1
from 2s to 8s b churn 2 replace 50%
at 5s a disconnect 2
at 20s quit
"""


def compiled(text: str) -> Plan | None:
    try:
        return compile_source(text).plan
    except TdlError:
        return None


@given(text=files(), data=st.data())
@settings(deadline=None, max_examples=80)
def test_a_statement_more_adds_its_events(text: str, data: st.DataObject) -> None:
    """At one minute, after all others: nothing follows from it."""
    lines = text.splitlines()
    ends = re.findall(r"^link (\S+?)(?:--|->)(\S+) ", text, re.MULTILINE)
    first, second = data.draw(st.sampled_from(ends))
    place = data.draw(st.integers(0, len(lines)))
    more = [*lines[:place], f"at 1m {first}--{second} set queue=12345B", *lines[place:]]
    plan, other = compiled(text), compiled("\n".join(more) + "\n")
    if plan is None or other is None or "quit" in text:
        return
    diff = compare_plans(plan, other)
    assert {(one.field, one.b) for one in diff.topology} == {("end_ns", 70 * 10**9)}
    assert {entry.what for entry in diff.timeline} == {"added"}
    added = [entry.b for entry in diff.timeline if entry.b is not None]
    assert added == [event for event in other.events if event.line == place + 1]
    assert {event.args["queue_bytes"] for event in added} == {12345}
    assert diff.network is not None
    assert diff.network.groups == ()  # a queue is no property of a path


@given(text=files())
@settings(deadline=None, max_examples=25)
def test_a_source_does_not_differ_from_itself_with_other_spaces(text: str) -> None:
    plan = compiled(text)
    if plan is None:
        return
    spaced = "# a comment\n\n" + text.replace(" ", "  ")
    other = compiled(spaced)
    assert other is not None
    assert other.digest != plan.digest
    diff = compare_plans(plan, other)
    assert diff.equal
    assert (diff.topology, diff.timeline) == ((), ())


def test_a_line_more_leaves_the_draws_of_the_others_alone() -> None:
    plan = compiled(NET)
    other = compiled(NET.replace("at 1s", "at 0.5s b.2 disconnect\nat 1s"))
    assert plan is not None
    assert other is not None
    (entry,) = compare_plans(plan, other).timeline
    assert entry.b is not None
    assert (entry.what, entry.b.kind, entry.b.target) == ("added", "disconnect", "b.2")


def test_the_pairs_that_change_and_when() -> None:
    plan = compiled(NET)
    other = compiled(NET.replace("at 20s", "from 12s to 15s s1--s2 flap 1s\nat 20s"))
    assert plan is not None
    assert other is not None
    diff = compare_plans(plan, other)
    assert diff.network is not None
    spans = {(group.from_ns, group.to_ns) for group in diff.network.groups}
    second = 10**9
    assert spans == {(12 * second, 13 * second), (14 * second, 15 * second)}
    assert {group.mask for group in diff.network.groups} == {1}  # only the first has a path
