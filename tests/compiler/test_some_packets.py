"""Which packets a link treats as a class of their own, and what these meet, through time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.packet_class import VALUES, parse
from compiler.plan.rules.datapath_fit import misfit

NET = "service a\nservice b replicas=2\nlink a--b latency=5ms\n"


def _classes(text: str) -> list[tuple[float, str]]:
    """When the link from a to b.0 gets another one."""
    plan = compile_source(NET + text + "\nat 100s quit\n").plan
    found: list[tuple[float, str]] = [(0, "")]
    for epoch in plan.epochs:
        for link, state in epoch.links:
            if link == 0 and found[-1][1] != state.only:
                found.append((epoch.at_ns / 1e9, state.only))
    return found[1:]


def test_services_are_all_their_instances_and_order_is_nothing() -> None:
    one = "at 1s a--b set loss=10% only=udp;to:b;tcp:80;from:a"
    other = "at 1s a--b set loss=10% only=from:a.0;tcp:80;tcp:80;to:b.1;to:b.0;udp"
    wanted = "tcp:80;udp;from:a.0;to:b.0;to:b.1;loss:100000000"
    assert _classes(one) == _classes(other) == [(1, wanted)]


def test_what_is_not_stated_is_the_links_own_and_relative_is_to_what_they_meet() -> None:
    text = (
        "at 1s a--b set loss=10% only=icmp\nat 2s a--b set latency=9ms\n"
        "at 3s a--b set latency+=1ms only=icmp\nat 4s a--b set latency=50ms\n"
        "at 5s a--b set latency=200% only=icmp"
    )
    assert _classes(text) == [
        (1, "icmp;loss:100000000"),
        (3, "icmp;delay:10000000;loss:100000000"),
        (5, "icmp;delay:20000000;loss:100000000"),
    ]


def test_a_class_ends_by_none_and_with_its_interval_and_another_may_begin() -> None:
    text = (
        "from 1s to 2s a--b set reject=100% only=tcp\nfrom 2s to 3s a--b set loss=100% only=udp\n"
        "at 4s a--b set loss=0 only=icmp\nat 5s a--b set only=none\nat 6s a--b set loss=2% only=tcp"
    )
    assert _classes(text) == [
        (1, "tcp;reject:1000000000"),
        (2, "udp;loss:1000000000"),
        (3, ""),
        (4, "icmp;loss:0"),
        (5, ""),
        (6, "tcp;loss:20000000"),
    ]


def test_between_hosts_it_is_refused_with_its_line() -> None:
    plan = compile_source(NET + "at 1s a--b set loss=10% only=tcp\nat 9s quit\n").plan
    for datapath in ("user", "kernel"):
        found = misfit(plan, datapath)
        assert found is not None
        assert (found.line, found.at_ns) == (4, 10**9)
    assert misfit(plan, "hop-exact") is None


@dataclass(frozen=True)
class _Change:
    """`end` 0: for good."""

    begin: int
    end: int
    word: str
    value: int


_WORDS = {"latency": "delay", "loss": "loss", "reject": "reject"}


@st.composite
def _timelines(draw: st.DrawFn) -> list[_Change]:
    count = draw(st.integers(1, 6))
    times = draw(st.permutations(range(1, 2 * count + 1)))
    found = []
    for number in range(count):
        pair = sorted(times[2 * number : 2 * number + 2])
        lasts = draw(st.booleans())
        word = draw(st.sampled_from(sorted(_WORDS)))
        found.append(_Change(pair[0], pair[1] if lasts else 0, word, draw(st.integers(5, 90))))
    return sorted(found, key=lambda one: one.begin)


def _value(changes: list[_Change], word: str, now: int) -> int | None:
    """Of all changes if `word` is empty. What was set for good ends what lasted then; of what
    lasts the one that began last counts."""
    mine = [one for one in changes if word in ("", one.word) and one.begin <= now]
    good = max((one.begin for one in mine if not one.end), default=0)
    lasting = [one for one in mine if one.begin > good and one.end > now]
    if lasting:
        return lasting[-1].value
    return next((one.value for one in mine if one.begin == good), None)


@given(_timelines())
def test_intervals_and_what_is_set_for_good_compose_as_other_properties_do(
    changes: list[_Change],
) -> None:
    lines = []
    for one in changes:
        when = f"from {one.begin}s to {one.end}s" if one.end else f"at {one.begin}s"
        unit = "ms" if one.word == "latency" else "%"
        lines.append(f"{when} a--b set {one.word}={one.value}{unit} only=udp")
    plan = compile_source(NET + "\n".join(lines) + "\nat 100s quit\n").plan
    now = ""
    by_time = {}
    for epoch in plan.epochs:
        now = next((state.only for link, state in epoch.links if link == 0), now)
        by_time[epoch.at_ns // 10**9] = now
    seen = ""
    for second in range(2 * len(changes) + 1):
        seen = by_time.get(second, seen)
        wanted = {}
        for word, name in _WORDS.items():
            value = _value(changes, word, second)
            if value is not None and _value(changes, "", second) is not None:
                wanted[name] = value * 10 ** (6 if word == "latency" else 7)
        assert parse(seen).values == wanted
        assert set(parse(seen).values) <= set(VALUES)


TWO_SIDES = (
    "service web replicas=2\nservice db replicas=2\nbridges s1 s2\n"
    "link web--s1 latency=1ms\nlink db--s2 latency=1ms\nlink s1--s2 latency=20ms\n"
)


def _events(text: str, net: str = NET) -> list[tuple[float, str, str, str]]:
    plan = compile_source(net + text + "\nat 100s quit\n").plan
    return [
        (event.at_ns / 1e9, event.kind, event.target, str(event.args.get("only", event.args)))
        for event in plan.events
        if event.at_ns and event.kind != "quit"
    ]


@given(st.integers(1, 5), st.integers(6, 9), st.booleans(), st.sampled_from(["--", "->"]))
def test_cuts_without_values_are_those_with_all_of_them(
    begin: int, end: int, lasts: bool, way: str
) -> None:
    when = f"from {begin}s to {end}s" if lasts else f"at {begin}s"
    for short, long in (
        ("leave only=udp;to:b", "set loss=100% only=to:b;udp"),
        ("reject only=tcp:80", "set reject=100% only=tcp:80"),
        ("reject", "set reject=100%"),
    ):
        said = _events(f"{when} a{way}b {short}")
        assert said == _events(f"{when} a{way}b {long}")
        assert {kind for _, kind, _, _ in said} == {"set"}
        assert len(said) == (2 if way == "->" else 4) * (1 + lasts)


def test_a_partition_of_some_packets_leaves_the_links_up_until_it_is_healed() -> None:
    text = (
        "at 1s s1--s2 set latency=50ms only=tcp:5432\n"
        "at 2s partition web;db only=tcp:5432\nat 3s heal\n"
        "at 4s s1--s2 set only=none\nat 5s partition web->db only=udp\nat 6s heal"
    )
    slow, cut = "tcp:5432;delay:50000000", "tcp:5432;delay:50000000;loss:1000000000"
    udp = "udp;loss:1000000000"
    both = ("s1->s2", "s2->s1")
    assert _events(text, TWO_SIDES) == [
        *((1, "set", link, slow) for link in both),
        *((2, "set", link, cut) for link in both),
        *((3, "set", link, slow) for link in both),
        *((4, "set", link, "") for link in both),
        (5, "set", "s1->s2", udp),
        (6, "set", "s1->s2", ""),
    ]


def test_partitions_of_some_and_of_all_packets_are_healed_together() -> None:
    text = (
        "at 1s partition web;db only=udp\nat 2s partition web->db only=udp\n"
        "at 3s partition web;db\nat 4s heal"
    )

    found = _events(text, TWO_SIDES)
    assert [one[:3] for one in found if one[0] == 4] == [
        (4, "link_up", "s1->s2"),
        (4, "link_up", "s2->s1"),
        (4, "set", "s1->s2"),
        (4, "set", "s2->s1"),
    ]


def test_a_ramp_of_some_packets_begins_at_what_they_meet_and_leaves_the_rest() -> None:
    text = "from 1s to 2s a->b ramp latency=25ms loss=50% only=icmp every 500ms"
    half, whole = ("icmp;delay:15000000;loss:250000000", "icmp;delay:25000000;loss:500000000")
    assert _events(text) == [
        (at, "set", f"a.0->b.{number}", values)
        for at, values in ((1.5, half), (2, whole))
        for number in range(2)
    ]
    cut = "at 1.7s a->b set only=none"
    assert _events(f"{text}\n{cut}")[2:] == [
        (1.7, "set", f"a.0->b.{number}", "") for number in range(2)
    ]


def test_a_refusal_between_hosts_is_refused_with_its_line() -> None:
    plan = compile_source(NET + "at 1s a--b reject\nat 9s quit\n").plan
    found = misfit(plan, "user")
    assert found is not None
    assert (found.line, found.at_ns) == (4, 10**9)
