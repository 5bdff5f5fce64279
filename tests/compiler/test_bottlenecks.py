"""Bottlenecks: what paths share, and what they have by themselves behind it."""

from __future__ import annotations

from compiler.pipeline import compile_source
from compiler.plan.parts import necks
from compiler.plan.paths.path import path as one_path
from compiler.plan.properties import LinkState, flow_rates
from compiler.plan.rules.datapath_fit import of_links

MB = 10**6
FILE = """\
service a
service b
service c
bottleneck west capacity=50Mb
bottleneck core queue=90KB
path a--b abw-flows=1:4Mb;5:12Mb rtt=20ms {first}
path c--a abw-up=2Mb abw-down=8Mb rtt=60ms {second}
{events}
at 20s quit
"""


def states(first: str = "", second: str = "", events: str = "", at_s: int = 0) -> list[LinkState]:
    text = FILE.format(first=first, second=second, events=events)
    return list(compile_source(text).plan.state_at(at_s * 10**9).links)


def test_one_direction_shares_a_queue() -> None:
    there, back, up, down = states("bottleneck-up=west", "bottleneck-down=west")
    alone = states()
    assert [s.neck for s in (there, back, up, down)] == ["west", "", "", "west"]
    assert (there.capacity_bps, there.rtt_ns) == (50 * MB, 20_000_000)
    assert (down.capacity_bps, down.rtt_ns, down.rate_bps) == (50 * MB, 60_000_000, 8 * MB)
    assert back == alone[1]
    assert up == alone[2]
    # half of the time that the queues may take, at the capacity
    assert abs(2 * there.queue_bytes - alone[0].queue_bytes) <= 1
    [row], [whole] = flow_rates(there.flow_rates), flow_rates(alone[0].flow_rates)
    assert (row.flows, row.rate_bps) == (whole.flows, whole.rate_bps)
    assert abs(2 * row.queue_bytes - whole.queue_bytes) <= 1


def test_a_bottleneck_of_both_directions_has_two_queues() -> None:
    found = states("bottleneck=core", "bottleneck=core")
    assert [s.neck for s in found] == ["core.up", "core.down"] * 2
    assert {s.queue_bytes for s in found} == {90_000}
    assert {s.rtt_ns for s in found} == {0}  # no queue follows from it
    plan = compile_source(
        FILE.format(first="bottleneck=core", second="bottleneck=core", events="")
    ).plan
    assert necks.members(plan.topology.links) == {"core.up": (0, 2), "core.down": (1, 3)}


def test_set_changes_what_a_path_has_of_it() -> None:
    events = "at 2s a--b set abw=6Mb rtt=30ms\nfrom 5s to 6s c--a set abw-down=3Mb loss=1%"
    words = ("bottleneck-up=west", "bottleneck-down=west", events)
    at = {s: states(*words, at_s=s) for s in (1, 3, 5, 7)}
    assert (at[1][0].rate_bps, at[3][0].rate_bps) == (4 * MB, 6 * MB)
    assert (at[3][0].rtt_ns, at[3][0].flow_rates) == (30_000_000, "")
    assert at[3][0].neck == "west"
    assert at[3][0].capacity_bps == 50 * MB
    assert (at[5][3].rate_bps, at[5][3].loss_ppb) == (3 * MB, 10**7)
    assert at[7][3] == at[1][3]


BOTH = ("bottleneck=core", "bottleneck=core")
ONE = ("bottleneck-up=west", "bottleneck-down=west")


def test_set_changes_the_capacity_and_the_queue_of_a_bottleneck() -> None:
    events = "at 2s west set capacity=20Mb\nat 4s west set queue=64KB capacity=150%"
    at = {s: states(*ONE, events, at_s=s) for s in (1, 3, 5)}
    assert [(s.capacity_bps, s.neck) for s in at[3]] == [
        (20 * MB, "west"),
        (100 * MB, ""),
        (100 * MB, ""),
        (20 * MB, "west"),
    ]
    # The queue is as long a time as it was, and follows from the paths.
    assert abs(at[1][0].queue_bytes - 5 * at[3][0].queue_bytes // 2) <= 2
    assert at[3][0].rtt_ns == 20_000_000
    assert at[5][0][:6] == (*at[1][0][:5], 64_000)
    assert (at[5][3].capacity_bps, at[5][3].queue_bytes, at[5][3].rtt_ns) == (30 * MB, 64_000, 0)
    assert at[5][1:3] == at[1][1:3]


def test_capacity_and_queue_are_set_back_by_themselves() -> None:
    events = (
        "from 2s to 8s core set capacity=20Mb\nfrom 3s to 5s core set queue=auto\n"
        "at 6s core set queue=50KB"
    )
    at = {s: states(*BOTH, events, at_s=s) for s in (1, 4, 5, 7, 9)}
    assert [{s.capacity_bps // MB for s in at[t]} for t in at] == [{100}, {20}, {20}, {20}, {100}]
    assert [{s.queue_bytes for s in at[t]} for t in (1, 5, 7, 9)] == [
        {90_000},
        {90_000},
        {50_000},
        {50_000},
    ]
    assert all(s.rtt_ns for s in at[4])


def test_only_one_engine_has_them() -> None:
    text = FILE.format(first="bottleneck=core", second="bottleneck=core", events="")
    plan = compile_source(text).plan
    assert of_links(plan, "hop-exact") is None
    for datapath in ("user", "kernel"):
        found = of_links(plan, datapath)
        assert found is not None
        assert found.link == "a.0->b.0"


def test_a_ramp_moves_the_capacity_and_the_queue_of_a_bottleneck() -> None:
    """Of both queues alike, and a queue that is not named stays as it was written."""
    events = "from 2s to 6s core ramp capacity=20Mb queue=10KB every 1s\nat 8s core set queue=9KB"
    at = {s: states(*BOTH, events, at_s=s) for s in (1, 2, 3, 4, 5, 6, 9)}
    assert [{s.capacity_bps // MB for s in at[t]} for t in at] == [
        {100}, {100}, {80}, {60}, {40}, {20}, {20}
    ]  # fmt: skip
    assert [{s.queue_bytes for s in at[t]} for t in at] == [
        {90_000}, {90_000}, {70_000}, {50_000}, {30_000}, {10_000}, {9_000}
    ]  # fmt: skip
    alone = states(*ONE, "from 2s to 4s west ramp capacity=30Mb every 1s", 3)
    assert alone == states(*ONE, "at 2s west set capacity=40Mb", 3)


def test_a_set_ends_a_ramp_of_a_bottleneck() -> None:
    text = FILE.format(
        first=BOTH[0], second=BOTH[1],
        events="from 2s to 6s core ramp capacity=20Mb every 1s\nat 4500ms core set capacity=70Mb",
    )  # fmt: skip
    found = compile_source(text)
    assert "TS0930" in {one.code for one in found.diagnostics}
    assert {s.capacity_bps for s in found.plan.state_at(9 * 10**9).links} == {70 * MB}


def test_paths_with_names_lie_beside_each_other() -> None:
    text = """\
service a replicas=2
service b
bottleneck west
path a--b name=fast abw=4Mb rtt=20ms bottleneck-up=west
path a--b name=slow abw-up=3Mb abw-down=5Mb rtt=50ms bottleneck-up=west
at 5s fast leave
at 6s slow:a.1--b set abw-up=2Mb
at 7s fast:b->a set loss=1%
at 20s quit
"""
    plan = compile_source(text).plan
    names = [link.name for link in plan.topology.links]
    assert names == [
        f"{word}:{ends}" for word in ("fast", "slow") for ends in (
            "a.0->b.0", "b.0->a.0", "a.1->b.0", "b.0->a.1")
    ]  # fmt: skip
    assert necks.members(plan.topology.links) == {"west": (0, 2, 4, 6)}
    used = [one_path(plan.state_at(s * 10**9), 0, 2) for s in (1, 6)]
    assert [names[number] for path in used for number in path.links] == [
        "fast:a.0->b.0",
        "slow:a.0->b.0",
    ]
    last = plan.state_at(9 * 10**9).links
    assert [last[n].rate_bps // MB for n in (4, 5, 6, 7)] == [3, 5, 2, 5]
    assert [last[n].loss_ppb for n in range(4)] == [0, 10**7] * 2
