"""Queues that are given in packets or as a time, and what manages them: what a link has of it."""

from __future__ import annotations

import pytest

from compiler.pipeline import compile_source
from compiler.plan.rules.datapath_fit import misfit
from tdl import aqm

NET = "service a\nservice b\nlink a--b latency=1ms rate=10Mb "


def _queues(text: str) -> list[tuple[float, int, int, str]]:
    """When the link from a to b gets other ones, its bytes, packets and discipline."""
    plan = compile_source(NET + text + "\nat 100s quit\n").plan
    now = plan.topology.links[0].state
    found: list[tuple[float, int, int, str]] = []
    for epoch in plan.epochs:
        for link, state in epoch.links:
            now = state if link == 0 else now
        name = now.aqm.partition(";")[0]
        if not found or found[-1][1:] != (now.queue_bytes, now.queue_packets, name):
            found.append((epoch.at_ns / 1e9, now.queue_bytes, now.queue_packets, name))
    return found


def test_a_time_follows_the_rate() -> None:
    text = (
        "queue=20ms\nat 1s a--b set rate=30Mb\nat 2s a--b set queue=200%\nat 3s a--b set rate=10Mb"
    )
    assert _queues(text) == [(0, 25_000, 0, ""), (1, 75_000, 0, ""), (2, 150_000, 0, ""),
                             (3, 50_000, 0, "")]  # fmt: skip


def test_packets_do_not() -> None:
    text = "queue=100pkt\nat 1s a--b set rate=30Mb\nat 2s a--b set queue-=40pkt"
    assert _queues(text) == [(0, 150_000, 100, ""), (2, 90_000, 60, "")]


def test_an_interval_gives_back_what_there_was() -> None:
    text = (
        "queue=20ms\nfrom 1s to 9s a--b set queue=10pkt\nfrom 2s to 3s a--b set rate=20Mb\n"
        "from 4s to 5s a--b set aqm=codel"
    )
    assert _queues(text) == [(0, 25_000, 0, ""), (1, 15_000, 10, ""), (4, 15_000, 10, "codel"),
                             (5, 15_000, 10, ""), (9, 25_000, 0, "")]  # fmt: skip
    later = "queue=20ms\nfrom 1s to 3s a--b set queue=10pkt\nat 2s a--b set rate=20Mb"
    assert _queues(later)[-1] == (3, 50_000, 0, "")


def test_a_ramp_goes_over_packets_and_ends_with_what_is_asked_for() -> None:
    text = "queue=100pkt\nfrom 1s to 2s a--b ramp queue=200pkt every 500ms"
    assert [one[:3] for one in _queues(text)] == [
        (0, 150_000, 100), (1.5, 225_000, 150), (2, 300_000, 200)
    ]  # fmt: skip
    text = "queue=100KB\nfrom 1s to 2s a--b ramp queue=40ms every 500ms\nat 3s a--b set rate=20Mb"
    assert [one[:2] for one in _queues(text)] == [
        (0, 100_000), (1.5, 75_000), (2, 50_000), (3, 100_000)
    ]  # fmt: skip


def test_a_discipline_brings_the_room_that_it_has_in_linux() -> None:
    text = (
        "\nat 1s a--b set aqm=codel\nat 2s a--b set aqm=fq_codel\nat 3s a--b set aqm=pie\n"
        "at 4s a--b set aqm=red\nat 5s a--b set aqm=none queue=10KB"
    )
    default = 62_500
    assert _queues(text) == [
        (0, default, 0, ""), (1, 1_500_000, 1000, "codel"), (2, 15_360_000, 10_240, "fq_codel"),
        (3, 1_500_000, 1000, "pie"), (4, default, 0, "red"), (5, 10_000, 0, ""),
    ]  # fmt: skip
    assert _queues("queue=30KB aqm=codel") == [(0, 30_000, 0, "codel")]


@pytest.mark.parametrize("datapath", ["user", "kernel"])
@pytest.mark.parametrize("change", ["aqm=pie", "queue=10pkt"])
def test_paths_between_hosts_have_neither(datapath: str, change: str) -> None:
    declared = compile_source(NET + change + "\nat 9s quit\n").plan
    found = misfit(declared, datapath)
    assert found is not None
    assert (found.line, found.link) == (0, "a.0->b.0")
    assert "is not possible" in str(found)
    changed = compile_source(NET + f"\nat 1s b->a set {change}\nat 9s quit\n").plan
    found = misfit(changed, datapath)
    assert found is not None
    assert (found.line, found.link) == (4, "b.0->a.0")
    for plan in (declared, changed):
        assert misfit(plan, "hop-exact") is None


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("codel", "codel;target:5000000;interval:100000000;ecn:0"),
        ("codel;ecn;target:2500us", "codel;target:2500000;interval:100000000;ecn:1"),
        ("fq_codel", "fq_codel;target:5000000;interval:100000000;quantum:1500;flows:1024;ecn:1"),
        (
            "fq_codel;quantum:300B;noecn",
            "fq_codel;target:5000000;interval:100000000;quantum:300;flows:1024;ecn:0",
        ),
        ("pie", "pie;target:15000000;tupdate:15000000;alpha:2;beta:20;ecn:0"),
        ("red", "red;min:0;max:0;probability:20000000;avpkt:1000;burst:0;ecn:0"),
        ("none", ""),
    ],
)
def test_a_text_has_all_parameters_and_the_language_those_that_differ(
    words: str, text: str
) -> None:
    assert aqm.canonical(words.split(";")) == text
    assert aqm.canonical(aqm.written(text).split(";")) == text
    assert len(aqm.written(text)) <= len(words)
