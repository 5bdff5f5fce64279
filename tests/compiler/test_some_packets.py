"""Which packets a link treats as a class of their own, and what these meet, through time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import compile_source
from compiler.plan.datapath_fit import misfit
from compiler.plan.packet_class import VALUES, parse

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
