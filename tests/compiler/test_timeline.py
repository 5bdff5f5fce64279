"""What statements become, one by one; random files are compared in test_oracle.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from compiler.expand.timeline import expand
from compiler.pipeline import Compilation, compile_source
from compiler.plan.types import Event
from tdl.diagnostics import TdlError

LISTING = Path(__file__).parents[2] / "examples" / "listing1.tdl"
SECOND = 10**9
HOUR = 3600 * SECOND

NET = """\
service a replicas=4 tags=x
service b replicas=2 tags=x
bridges s1 s2 tags=y
link a--s1 latency=5 up=10Mb down=20Mb tags=y
link b--s2 latency=5
link s1--s2 latency=10 jitter=2 up=100Mb symmetric
"""


def compiled(text: str, seed: int | None = None) -> Compilation:
    return compile_source(text, filename="test.tdl", seed=seed)


def events(text: str, *, line: int | None = None) -> list[Event]:
    """The events of one line of the file (default: the last)."""
    found = compiled(text).events
    wanted = len(text.splitlines()) if line is None else line
    return [event for event in found if event.line == wanted]


def shown(found: list[Event]) -> list[tuple[float, str, str]]:
    return [(event.at_ns / SECOND, event.kind, event.target) for event in found]


# --- listing 1 ---------------------------------------------------------------------------------


def test_listing_1() -> None:
    compilation = compiled(LISTING.read_text())
    assert [(d.code, d.hint) for d in compilation.diagnostics] == [
        ("TS0901", "did you mean 'backend'?")
    ]
    found = compilation.events
    joins = Counter(e.target.split(".")[0] for e in found if e.kind == "join" and e.at_ns == 0)
    assert joins == {"api": 3, "db": 3, "server": 5}
    crashes = [e for e in found if e.kind == "crash"]
    assert len(crashes) == 2  # 40 % of five
    assert all(HOUR / 2 <= e.at_ns < 3.5 * HOUR for e in crashes)
    assert [s.replicas for s in compilation.topology.services] == [5, 3, 1, 3]
    assert compilation.timeline.end_ns == found[-1].at_ns + 10 * SECOND
    assert found[-1].kind == "set"
    assert found[-1].args == {"delay_ns": 10_200_000, "jitter_ns": 1_200_000}


def test_listing_1_flap_ends_up() -> None:
    found = [e for e in compiled(LISTING.read_text()).events if e.line == 23]
    last = {e.target: e for e in found}
    assert len(last) == 6  # three instances of api, both directions
    assert {e.kind for e in last.values()} == {"link_up"}
    assert max(e.at_ns for e in found) <= 10 * HOUR + 6 * 60 * SECOND


def test_listing_1_disconnects_and_reconnects_the_same() -> None:
    found = [e for e in compiled(LISTING.read_text()).events if e.line == 25]
    assert [(e.at_ns // SECOND, e.kind) for e in found] == [
        (15 * 3600, "disconnect"),
        (15 * 3600 + 20, "reconnect"),
    ]
    assert found[0].target == found[1].target


# --- joins -------------------------------------------------------------------------------------


def test_without_joins_everything_joins_at_zero() -> None:
    found = compiled(NET).events
    assert [e.target for e in found] == ["a.0", "a.1", "a.2", "a.3", "b.0", "b.1"]
    assert {(e.at_ns, e.kind, e.line) for e in found} == {(0, "join", 0)}


def test_a_join_raises_replicas_that_are_not_given() -> None:
    text = NET.replace("b replicas=2", "b") + "at 1s b join\nat 2s b join 3\n"
    compilation = compiled(text)
    assert compilation.topology.services[1].replicas == 4
    assert [e.target for e in compilation.events if e.target[0] == "b"] == [
        "b.0", "b.1", "b.2", "b.3",
    ]  # fmt: skip


def test_never_joined_come_before_those_that_left() -> None:
    text = NET + "at 0s a join 2\nat 1s a.0 leave\nat 2s a join 3\n"
    assert [e.target for e in events(text)] == ["a.0", "a.2", "a.3"]
    assert [e.target for e in events(text.replace("join 3", "join 2"))] == ["a.2", "a.3"]


def test_those_that_left_are_enough_where_replicas_are_not_given() -> None:
    text = NET.replace("b replicas=2", "b") + "at 0s b join 2\nat 1s b leave 1\nat 2s b join 1\n"
    compilation = compiled(text)
    assert compilation.topology.services[1].replicas == 2


def test_growth_after_a_random_loss_is_exact() -> None:
    """How many joins need new instances depends on who is replaced: the walk finds out."""
    lines = ["at 0s b join 3"]
    for i in range(1, 40):
        lines.append(f"from {10 * i}s to {10 * i + 5}s b churn 2 replace 50%")
        lines.append(f"at {10 * i + 6}s b join 3")
    compilation = compiled(NET.replace("b replicas=2", "b") + "\n".join(lines) + "\n")
    joined, most = set(), 0
    for event in compilation.events:
        if event.target.startswith("b."):
            (joined.add if event.kind == "join" else joined.discard)(event.target)
            most = max(most, len(joined))
    assert compilation.topology.services[1].replicas == most > 40


def test_one_instance_can_be_late() -> None:
    text = NET + "at 9s a.2 join\n"
    found = compiled(text).events
    assert "a.2" not in [e.target for e in found if e.at_ns == 0]
    assert shown(events(text)) == [(9.0, "join", "a.2")]


def test_one_instance_can_leave_and_come_back() -> None:
    found = compiled(NET + "at 5s a.2 leave\nat 9s a.2 join\n").events
    assert [(e.at_ns // SECOND, e.kind) for e in found if e.target == "a.2"] == [
        (0, "join"), (5, "leave"), (9, "join"),
    ]  # fmt: skip


def test_a_bridge_that_joins_first_is_absent_until_then() -> None:
    found = [e for e in compiled(NET + "at 9s s1 join\n").events if e.target == "s1"]
    assert shown(found) == [(0.0, "bridge_down", "s1"), (9.0, "bridge_up", "s1")]
    assert [e.line for e in found] == [0, 7]


def test_a_link_that_leaves_first_is_there_from_the_start() -> None:
    found = compiled(NET + "at 8s s1--s2 leave\nat 9s s1--s2 join\n").events
    assert [(e.at_ns // SECOND, e.kind) for e in found if e.target == "s1->s2"] == [
        (8, "link_down"), (9, "link_up"),
    ]  # fmt: skip


def test_joins_in_an_interval_happen_one_by_one() -> None:
    found = events(NET + "from 10s to 20s a join 4\n")
    assert [e.target for e in found] == ["a.0", "a.1", "a.2", "a.3"]
    assert len({e.at_ns for e in found}) == 4
    assert all(10 * SECOND <= e.at_ns < 20 * SECOND for e in found)


# --- leave, crash, churn -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "expected"),
    [("50%", 2), ("37.5%", 2), ("37.4%", 1), ("12.5%", 1), ("100%", 4), ("3", 3), ("", 4)],
)
def test_percentages_round_half_up(count: str, expected: int) -> None:
    assert len(events(NET + f"at 5s a leave {count}\n")) == expected


def test_percentages_are_of_those_joined_then() -> None:
    text = NET + "at 5s a leave 2\nat 6s a crash 50%\n"
    found = events(text)
    assert len(found) == 1
    assert found[0].target not in [e.target for e in events(text, line=7)]


def test_a_tag_covers_services_bridges_and_links() -> None:
    kinds = Counter(e.kind for e in events(NET + "at 5s tags=x;y leave\n"))
    assert kinds == {"leave": 6, "bridge_down": 2, "link_down": 8}


def test_a_count_over_a_tag_counts_elements() -> None:
    """Four instances, two of b, two bridges, four links: half of them are six elements."""
    found = events(NET + "at 5s tags=x;y leave 50%\n")
    links = {frozenset(e.target.split("->")) for e in found if e.kind == "link_down"}
    assert len([e for e in found if e.kind != "link_down"]) + len(links) == 6


def test_churn_replaces_at_once_under_the_same_name() -> None:
    found = events(NET + "from 10s to 20s a churn 8 replace 100%\n")
    assert len(found) == 16
    for crash, join in zip(found[::2], found[1::2], strict=True):
        assert (crash.kind, join.kind) == ("crash", "join")
        assert (crash.at_ns, crash.target) == (join.at_ns, join.target)


def test_churn_without_replacement_takes_each_once() -> None:
    found = events(NET + "from 10s to 20s a churn 100%\n")
    assert sorted(e.target for e in found) == ["a.0", "a.1", "a.2", "a.3"]
    assert {e.kind for e in found} == {"crash"}


def test_open_churn_goes_on_until_quit() -> None:
    found = compiled(NET + "from 10s a churn 40 replace 100%\nat 100s quit\n").events
    crashes = [e.at_ns / SECOND for e in found if e.kind == "crash"]
    assert len(crashes) == 40
    assert 10 <= min(crashes) < 40
    assert 70 < max(crashes) < 100


# --- flap, set, background ---------------------------------------------------------------------


def times(text: str, target: str) -> list[tuple[float, str]]:
    return [(e.at_ns / SECOND, e.kind[5:]) for e in events(text) if e.target == target]


def test_flap_ends_up_after_an_odd_number_of_toggles() -> None:
    expected = [(1.0, "down"), (2.0, "up"), (3.0, "down"), (3.5, "up")]
    assert times(NET + "from 1s to 3.5s s1--s2 flap 1s\n", "s1->s2") == expected


def test_flap_ends_up_after_an_even_number_of_toggles() -> None:
    expected = [(1.0, "down"), (2.0, "up"), (3.0, "down"), (4.0, "up")]
    assert times(NET + "from 1s to 5s s1--s2 flap 1s\n", "s2->s1") == expected


def test_flap_of_one_direction() -> None:
    found = events(NET + "from 1s to 3s s2->s1 flap 1s\n")
    assert {e.target for e in found} == {"s2->s1"}


def test_a_link_that_leaves_while_it_flaps_stays_down() -> None:
    text = NET + "at 2.5s s1--s2 leave\nfrom 1s to 5s s1--s2 flap 1s\n"
    assert times(text, "s1->s2") == [(1.0, "down"), (2.0, "up")]
    back = text.replace("from", "at 9s s1--s2 join\nfrom")
    assert times(back, "s1->s2") == [(1.0, "down"), (2.0, "up")]
    assert shown(events(back, line=8)) == [(9.0, "link_up", "s1->s2"), (9.0, "link_up", "s2->s1")]


def test_overlapping_flaps_are_up_when_both_are() -> None:
    text = NET + "from 1s to 3s s1->s2 flap 5s\nfrom 2s to 4s s1->s2 flap 5s\n"
    found = [e for e in compiled(text).events if e.target == "s1->s2"]
    assert shown(found) == [(1.0, "link_down", "s1->s2"), (4.0, "link_up", "s1->s2")]


def changes(text: str) -> dict[str, dict[str, int | str]]:
    return {e.target: dict(e.args) for e in events(text) if e.kind == "set"}


def test_set_up_and_down_follow_the_statement() -> None:
    up = changes(NET + "at 1s s1--s2 set up=50Mb\n")
    assert up == {"s1->s2": {"rate_bps": 50_000_000, "queue_bytes": 312_500}}
    turned = changes(NET + "at 1s s2--s1 set up=50Mb\n")
    assert turned == {"s2->s1": {"rate_bps": 50_000_000, "queue_bytes": 312_500}}


def test_set_relative_starts_from_now() -> None:
    text = NET + "at 1s s1--s2 set latency=15\nat 2s s1--s2 set latency=200% jitter+=1ms\n"
    both = {"delay_ns": 30_000_000, "jitter_ns": 3_000_000}
    assert changes(text) == {"s1->s2": both, "s2->s1": both}


def test_set_rate_of_a_service_link_hits_every_instance() -> None:
    found = changes(NET + "at 1s a--s1 set rate=50%\n")
    assert {args["rate_bps"] for name, args in found.items() if name[0] == "a"} == {5_000_000}
    assert {args["rate_bps"] for name, args in found.items() if name[0] == "s"} == {10_000_000}
    assert len(found) == 8


def test_a_queue_that_was_given_does_not_follow_the_rate() -> None:
    given = NET.replace("jitter=2", "jitter=2 queue=64KB")
    assert changes(given + "at 1s s1->s2 set rate=50Mb\n")["s1->s2"] == {"rate_bps": 50_000_000}
    later = NET + "at 1s s1->s2 set queue=64KB\nat 2s s1->s2 set rate=50Mb\n"
    assert changes(later)["s1->s2"] == {"rate_bps": 50_000_000}


def test_set_unlimited() -> None:
    found = changes(NET + "at 1s s1->s2 set rate=unlimited\n")
    assert found == {"s1->s2": {"rate_bps": 0, "queue_bytes": 16 * 1024 * 1024}}


def test_background_ends_with_its_interval() -> None:
    found = events(NET + "from 1s to 3s s1->s2 background 30Mb\n")
    assert [(e.at_ns // SECOND, e.args) for e in found] == [
        (1, {"rate_bps": 30_000_000}),
        (3, {"rate_bps": 0}),
    ]


def test_background_can_be_replaced_and_freed() -> None:
    text = NET + "at 1s s1->s2 background 30Mb\nat 2s s1->s2 background 40Mb\n"
    found = compiled(text + "at 3s s1->s2 background 0b\n").events
    rates = [e.args["rate_bps"] for e in found if e.kind == "background"]
    assert rates == [30_000_000, 40_000_000, 0]


# --- the end -----------------------------------------------------------------------------------


def test_the_end() -> None:
    assert compiled(NET).timeline.end_ns == 10 * SECOND
    assert compiled(NET + "at 5s a.0 crash\n").timeline.end_ns == 15 * SECOND
    quits = compiled(NET + "at 5s a.0 crash\nat 7s quit\n")
    assert quits.timeline.end_ns == 7 * SECOND
    assert shown(list(quits.events))[-1] == (7.0, "quit", "")


def test_equal_times_keep_the_order_of_the_file() -> None:
    text = (
        NET + "at 5s s1--s2 leave\nat 5s a.0 crash\nfrom 5s to 6s b disconnect 2\nat 5s s1 leave\n"
    )
    found = compiled(text).events
    assert [e.line for e in found if e.at_ns == 5 * SECOND] == [7, 7, 8, 9, 9, 10]
    assert [e.seq for e in found] == list(range(len(found)))


# --- many --------------------------------------------------------------------------------------


def test_the_limit_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.expand.world.MAX_EVENTS", 10)
    with pytest.raises(TdlError) as caught:
        compiled(NET + "from 0s to 60s s1--s2 flap 1s\n")
    assert [d.code for d in caught.value.diagnostics] == ["TS0309"]


def test_a_file_that_grows_by_single_joins_is_walked_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Leaving first makes the needs uncertain, so that the model guesses too low at first."""
    walks = []
    monkeypatch.setattr(
        "compiler.pipeline.expand", lambda *given: (walks.append(1), expand(*given))[1]
    )
    lines = ["at 0s b join 2", "at 1s b leave 1"]
    lines += [f"at {i}s b join 1" for i in range(2, 200)]
    compilation = compiled(NET.replace("b replicas=2", "b") + "\n".join(lines) + "\n")
    assert compilation.topology.services[1].replicas == 199
    assert len(walks) < 12


# --- pause, restart, for a while ---------------------------------------------------------------


def test_a_restart_is_a_crash_and_a_join() -> None:
    assert shown(events(NET + "at 5s a.2 restart\n")) == [
        (5.0, "crash", "a.2"),
        (5.0, "join", "a.2"),
    ]
    assert shown(events(NET + "at 5s a.2 restart after 1.5s\n")) == [
        (5.0, "crash", "a.2"),
        (6.5, "join", "a.2"),
    ]


def test_those_that_are_restarted_come_back() -> None:
    found = events(NET + "at 5s a restart 3 after 2s\n")
    assert [event.kind for event in found] == ["crash"] * 3 + ["join"] * 3
    assert [e.target for e in found[:3]] == [e.target for e in found[3:]]


def test_pause_and_disconnect_for_a_while() -> None:
    text = "at 5s b.1 {0} for 3s\n"
    assert shown(events(NET + text.format("pause"))) == [
        (5.0, "pause", "b.1"),
        (8.0, "resume", "b.1"),
    ]
    assert shown(events(NET + text.format("disconnect"))) == [
        (5.0, "disconnect", "b.1"),
        (8.0, "reconnect", "b.1"),
    ]
    same = events(NET + "from 5s to 8s b.1 pause\n")
    assert shown(same) == shown(events(NET + text.format("pause")))


def test_a_paused_instance_can_be_cut_and_crash() -> None:
    text = NET + "at 1s b.0 pause and b.0 disconnect and b.0 crash\n"
    assert [e.kind for e in events(text)] == ["pause", "disconnect", "crash"]
    assert not compiled(text).plan.verify()


def test_a_pause_changes_nothing_of_the_network() -> None:
    plan = compiled(NET + "at 1s b.0 pause\n").plan
    assert (plan.epochs[1].nodes, plan.epochs[1].links) == ((), ())


def test_programs_are_killed_and_their_host_stays() -> None:
    compilation = compiled(NET + "at 1s b.0 kill\nat 2s b.0 disconnect\nat 3s b.0 reconnect\n")
    assert [e.kind for e in compilation.events][-3:] == ["kill", "disconnect", "reconnect"]
    plan = compilation.plan
    assert (plan.epochs[1].nodes, plan.epochs[1].links) == ((), ())
    assert not plan.verify()


def test_a_join_starts_killed_programs_on_another_host() -> None:
    """Those that are not there come first, and those that were killed are asked for like them."""
    assert shown(events(NET + "at 1s b.1 kill\nat 2s b join 1\n")) == [
        (2.0, "crash", "b.1"),
        (2.0, "join", "b.1"),
    ]
    text = NET + "at 0s b join\nat 1s b.0 kill and b.1 crash\nat 2s b join 1\n"
    assert shown(events(text)) == [(2.0, "join", "b.1")]
    assert shown(events(text + "at 3s b join\n")) == [(3.0, "crash", "b.0"), (3.0, "join", "b.0")]


def test_kills_are_drawn_from_those_that_live() -> None:
    found = events(NET + "from 1s to 9s a kill 4\n")
    assert [e.kind for e in found] == ["kill"] * 4
    assert {e.target for e in found} == {"a.0", "a.1", "a.2", "a.3"}
    found = events(NET + "at 1s b.0 pause\nat 2s b kill 100%\n")
    assert shown(found) == [(2.0, "kill", "b.0"), (2.0, "kill", "b.1")]


def test_a_pause_ends_with_a_kill() -> None:
    done = compiled(NET + "from 1s to 9s b.0 pause\nat 3s b.0 kill\n")
    assert [e.kind for e in done.events][-2:] == ["pause", "kill"]
    [warning] = done.diagnostics
    assert (warning.code, "was killed at 9s" in warning.message) == ("TS0912", True)


# --- who is there at first ---------------------------------------------------------------------


@pytest.mark.parametrize("what", ["crash", "kill", "leave", "disconnect", "pause", "restart"])
def test_a_service_that_does_something_else_first_is_there(what: str) -> None:
    found = compiled(NET + f"at 5s b {what} 1\nat 9s a join\nat 4s a.1 crash\n").events
    assert [e.target for e in found if e.at_ns == 0] == ["a.0", "a.1", "a.2", "a.3", "b.0", "b.1"]


def test_a_service_whose_first_event_is_a_join_is_not() -> None:
    found = compiled(NET + "at 5s b join\nat 6s b crash\nat 7s b join\n").events
    assert [e.target for e in found if e.at_ns == 0] == ["a.0", "a.1", "a.2", "a.3"]


# --- set in an interval ------------------------------------------------------------------------


def delays(text: str) -> list[tuple[float, int]]:
    """When the delay of s1->s2 changes, and to what, in ms."""
    return [
        (e.at_ns / SECOND, int(e.args["delay_ns"]) // 10**6)
        for e in compiled(NET + text).events
        if e.kind == "set" and e.target == "s1->s2" and "delay_ns" in e.args
    ]


def test_an_interval_sets_and_sets_back() -> None:
    assert delays("from 1s to 2s s1--s2 set latency=50") == [(1, 50), (2, 10)]
    found = events(NET + "from 1s to 2s s1->s2 set rate=1Mb loss=1% dist=pareto\n")
    assert [dict(event.args) for event in found] == [
        {"rate_bps": 10**6, "loss_ppb": 10**7, "queue_bytes": 30_000, "distribution": "pareto"},
        {"rate_bps": 10**8, "loss_ppb": 0, "queue_bytes": 625_000, "distribution": "normal"},
    ]


def test_intervals_within_each_other() -> None:
    text = "from 1s to 9s s1--s2 set latency=50\nfrom 3s to 5s s1--s2 set latency=200%"
    assert delays(text) == [(1, 50), (3, 100), (5, 50), (9, 10)]


def test_intervals_that_overlap() -> None:
    text = "from 1s to 5s s1--s2 set latency=50\nfrom 3s to 9s s1--s2 set latency=70"
    assert delays(text) == [(1, 50), (3, 70), (9, 10)]


def test_intervals_that_end_together() -> None:
    text = "from 1s to 9s s1--s2 set latency=50\nfrom 3s to 9s s1--s2 set latency=70"
    assert delays(text) == [(1, 50), (3, 70), (9, 10)]


def test_a_ramp_is_on_the_straight_line_and_stays_at_its_end() -> None:
    steps = [(1.25, 12), (1.5, 15), (1.75, 17), (2, 20)]  # whole ms
    assert delays("from 1s to 2s s1--s2 ramp latency=20 every 250ms") == steps
    assert delays("from 1s to 2s s1--s2 ramp latency+=10ms every 250ms") == steps
    assert delays("from 1s to 2s s1--s2 ramp latency=20 every 600ms") == [(1.6, 16), (2, 20)]
    assert delays("from 1s to 2s s1--s2 ramp latency=20 every 9s") == [(2, 20)]
    assert len(delays("from 1s to 2s s1--s2 ramp latency=20")) == 10, "100 ms if nothing is said"


def test_the_queue_of_a_ramp_follows_its_rate() -> None:
    found = events(NET + "from 1s to 2s s1->s2 ramp rate=50Mb every 500ms\n")
    assert [dict(event.args) for event in found] == [
        {"rate_bps": 75_000_000, "queue_bytes": 468_750},
        {"rate_bps": 50_000_000, "queue_bytes": 312_500},
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("from 1s to 2s s1--s2 ramp rate=unlimited", "TS0215"),
        ("from 1s to 2s s1--s2 ramp jitter=11ms", "TS0215"),
        ("from 1s to 2s s1--s2 ramp latency=10", "TS0911"),
        ("from 1s to 3s s1--s2 ramp latency=20\nat 2050ms s1--s2 set latency=5", "TS0930"),
        ("from 0s to 200000s s1--s2 ramp latency=20 every 1ms", "TS0309"),
    ],
)
def test_a_ramp_that_cannot_be(text: str, code: str) -> None:
    try:
        found = compiled(NET + text + "\n").diagnostics
    except TdlError as error:
        found = tuple(error.diagnostics)
    assert code in {diagnostic.code for diagnostic in found}


def test_a_ramp_ends_where_another_statement_sets_the_same() -> None:
    text = "from 1s to 3s s1--s2 ramp latency=30 every 500ms\nat 2100ms s1--s2 set latency=5"
    assert delays(text) == [(1.5, 15), (2, 20), (2.1, 5)]
    text = "from 0.5s to 9s s1--s2 set latency=50\n" + text.replace("latency=30", "latency=70")
    assert delays(text)[-1] == (2.1, 5), "nothing is set back after it"


@pytest.mark.parametrize("same", ["at 2s s1--s2 set latency=20", "at 2600ms s1--s2 set latency=25"])
def test_a_ramp_ends_also_where_another_statement_sets_the_value_it_is_at(same: str) -> None:
    text = f"from 1s to 3s s1--s2 ramp latency=30 every 500ms\n{same}"
    last = (2, 20) if "2s" in same else (2.5, 25)
    assert delays(text)[-1] == last
    (warning,) = compiled(NET + text).diagnostics
    line = len((NET + text).splitlines())
    assert warning.code == "TS0930"
    assert warning.message.startswith(f"line {line} sets 's1->s2' at 2")


def test_the_later_of_two_ramps_goes_on() -> None:
    text = "from 1s to 3s s1--s2 ramp latency=30 every 500ms\n"
    text += "from 2s to 4s s1--s2 ramp latency=10 every 1s"
    assert delays(text) == [(1.5, 15), (2, 20), (3, 15), (4, 10)]
    assert [one.code for one in compiled(NET + text).diagnostics] == ["TS0930"]


def test_ramps_of_different_properties_do_not_disturb_each_other() -> None:
    text = "from 1s to 2s s1--s2 ramp latency=20 every 500ms\n"
    text += "from 1s to 2s s1--s2 ramp loss=2% every 250ms\nat 1600ms s1--s2 set up=50Mb"
    assert delays(text) == [(1.5, 15), (2, 20)]
    assert compiled(NET + text).diagnostics == ()


def test_what_an_instant_sets_stays() -> None:
    text = "from 1s to 9s s1--s2 set latency=50 loss=1%\nat 3s s1--s2 set latency=7"
    assert delays(text) == [(1, 50), (3, 7)]
    last = [e for e in compiled(NET + text).events if e.at_ns == 9 * SECOND]
    assert [dict(e.args) for e in last] == [{"loss_ppb": 0}] * 2


def test_a_queue_that_was_stated_for_a_while_follows_the_rate_again() -> None:
    text = "from 1s to 2s a.0->s1 set queue=9KB\nat 3s a.0->s1 set rate=20Mb\n"
    found = [e for e in compiled(NET + text).events if e.kind == "set"]
    assert [e.args["queue_bytes"] for e in found] == [9000, 62_500, 125_000]


def test_links_and_bridges_that_leave_in_an_interval_come_back_at_its_end() -> None:
    """It was once, at a drawn moment, and for good."""
    down_and_up = [(5, "link_down", "s1->s2"), (5, "link_down", "s2->s1")]
    down_and_up += [(10, "link_up", "s1->s2"), (10, "link_up", "s2->s1")]
    assert shown(events(NET + "from 5s to 10s s1--s2 leave\n")) == down_and_up
    outage = [(5, "bridge_down", "s1"), (10, "bridge_up", "s1")]
    assert shown(events(NET + "from 5s to 10s s1 leave\n")) == outage
    found = events(NET + "from 5s to 10s a--s1 leave 50%\n")
    links = {event.target.replace("->", "--") for event in found if event.target.startswith("a")}
    assert len(links) == 2
    assert [event.at_ns // SECOND for event in found] == [5] * 4 + [10] * 4


def test_an_outage_keeps_what_else_has_the_link_down() -> None:
    text = NET + "at 7s s1->s2 leave\nfrom 6s to 8s s1--s2 flap 5s\nfrom 5s to 10s s2->s1 leave\n"
    found = shown([event for event in compiled(text).events if event.line])
    assert found == [
        (5, "link_down", "s2->s1"),
        (6, "link_down", "s1->s2"),
        (10, "link_up", "s2->s1"),
    ]


def test_an_outage_that_the_end_cuts_short_is_missed_by_nobody() -> None:
    compilation = compiled(NET + "at 10s quit\nfrom 5s to 10s s1--s2 leave\n")
    assert [d.code for d in compilation.diagnostics] == []
    assert [event.kind for event in compilation.events[-3:]] == ["link_down", "link_down", "quit"]


def test_leave_sometime_is_a_moment_of_its_own_for_good() -> None:
    text = NET + "from 5s to 10s tags=y leave sometime\n"
    found = compiled(text)
    mine = [event for event in found.events if event.line]
    assert {event.target for event in mine} >= {"s1", "s2", "a.0->s1", "s1->a.3"}
    assert len({event.at_ns for event in mine}) == 6
    assert all(event.kind.endswith("_down") for event in mine)
    assert found.timeline.drawn == {0: tuple(event.seq for event in mine)}
